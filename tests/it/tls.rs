//! TLS with real servers: locks, wake-ups, resumption, client certificates, and what each fault is
//! called.
//!
//! Certificates are issued by openssl, each test's by a CA of its own ([`certificates`]).

mod absent;
mod breaks;
#[cfg(feature = "tls-native-roots")]
mod c;
pub(crate) mod certificates;
#[cfg(feature = "embedded-tls")]
mod embedded;
mod faults;
mod locks;
#[cfg(feature = "tls-native-roots")]
mod nodes;
mod page;
mod peer;
mod records;
mod renewal;
mod wire;

use crate::prelude::*;
use certificates::*;

const SECOND: Duration = Duration::from_secs(1);
/// Both versions of TLS, as servers call them.
const PROTOCOLS: [&str; 2] = ["TLSv1.3", "TLSv1.2"];

/// A client of these nodes with a node timeout of one second.
fn client_over<U: Into<String>>(
    urls: impl IntoIterator<Item = U>,
    tls: quorumlock::Tls,
) -> Redlock {
    client_at(urls, |builder| builder.tls(tls).node_timeout(SECOND))
}
