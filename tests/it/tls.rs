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
