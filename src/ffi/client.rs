//! The client: made of a configuration, and what makes guards of leases.

use super::boundary::{enter, value};
use super::code::Code;
use super::config::Config;
use super::guard::Guard;
use super::handle::{Lent, Output, Returned};
use super::lease::Lease;
use super::pin::pin;
use super::report::Report;
use crate::Redlock;
use std::time::Duration;

/// `quorumlock_client`.
pub(super) struct Client {
    pub(super) redlock: Redlock,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_new(
    config: Lent<Config>,
    client: Output<*const Client>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let config = config.content("config")?;
        let client = client.required("client")?;
        pin();
        client.give(Client { redlock: config.builder()?.build()? });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_free(client: Returned<Client>) {
    value((), || client.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_close(client: Lent<Client>, timeout_ms: u64, error: Output<*const Report>) -> Code {
    enter(error, || {
        client.content("client")?.redlock.close(Duration::from_millis(timeout_ms))?;
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_attach(
    client: Lent<Client>,
    lease: Lent<Lease>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let client = client.content("client")?;
        let lease = lease.content("lease")?;
        let guard = guard.required("guard")?;
        let held = client.redlock.attach(lease.take()?)?;
        let name = held.resource().into();
        guard.give(Guard::new(name, held)?);
        Ok(Code::Ok)
    })
}
