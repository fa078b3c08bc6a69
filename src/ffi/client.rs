//! The client: made of a configuration, and what makes guards of leases.

use super::boundary::{call_or, call_with_error};
use super::code::Code;
use super::config::ConfigHandle;
use super::error_object::ErrorObject;
use super::failure::Failure;
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output, Returned};
use super::held::Held;
use super::lease::LeaseHandle;
use super::no_unload::no_unload;
use crate::{Redlock, ShutdownOutcome};
use std::time::Duration;

/// `quorumlock_client`.
pub(super) struct ClientHandle {
    pub(super) redlock: Redlock,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_new(
    config: Borrowed<ConfigHandle>,
    client: Output<*const ClientHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let config = config.required("config")?;
        let client = client.required("client")?;
        no_unload();
        client.write_handle(ClientHandle {
            redlock: config.builder()?.build()?,
        });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_free(client: Returned<ClientHandle>) {
    call_or((), || client.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_flush_releases(
    client: Borrowed<ClientHandle>,
    timeout_ms: u64,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        client
            .required("client")?
            .redlock
            .flush_releases(Duration::from_millis(timeout_ms))?;
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_shutdown(
    client: Borrowed<ClientHandle>,
    timeout_ms: u64,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let redlock = &client.required("client")?.redlock;
        let outcome = redlock.shutdown(Duration::from_millis(timeout_ms))?;
        let message = outcome.to_string();
        match outcome {
            ShutdownOutcome::Complete => Ok(Code::Ok),
            ShutdownOutcome::Incomplete { unreleased, .. } => Err(Failure {
                causes: unreleased,
                ..Failure::new(Code::ShutdownIncomplete, message)
            }),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_attach(
    client: Borrowed<ClientHandle>,
    lease: Borrowed<LeaseHandle>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let client = client.required("client")?;
        let lease = lease.required("lease")?;
        let guard = guard.required("guard")?;
        let held = client.redlock.attach(lease.take()?)?;
        guard.write_handle(GuardHandle::new(Held::Any(held), 0)?);
        Ok(Code::Ok)
    })
}
