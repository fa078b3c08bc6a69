//! The client: made of a configuration, and what makes guards of leases.

use super::boundary::{calls, frees};
use super::code::Code;
use super::config::ConfigHandle;
use super::failure::Failure;
use super::fault::FaultObject;
use super::guard::GuardHandle;
use super::lease::LeaseHandle;
use super::no_unload::no_unload;
use crate::{Redlock, ShutdownOutcome};
use std::time::Duration;

/// `quorumlock_client`.
pub(super) struct ClientHandle {
    pub(super) redlock: Redlock,
}

frees! { quorumlock_client_free(ClientHandle); }

calls! {
    fn quorumlock_client_new(&config: ConfigHandle; new client: ClientHandle; error) {
        no_unload();
        let redlock = config.builder()?.build()?;
        ClientHandle { redlock }
    }

    fn quorumlock_client_flush_releases(&client: ClientHandle, timeout_ms: u64; error) {
        let redlock = &client.redlock;
        redlock.flush_releases(Duration::from_millis(timeout_ms))?;
        Ok(Code::Ok)
    }

    fn quorumlock_client_shutdown(&client: ClientHandle, timeout_ms: u64; error) {
        let redlock = &client.redlock;
        let outcome = redlock.shutdown(Duration::from_millis(timeout_ms))?;
        let message = outcome.to_string();
        match outcome {
            ShutdownOutcome::Complete => Ok(Code::Ok),
            ShutdownOutcome::Incomplete { unreleased, .. } => Err(Failure {
                faults: FaultObject::list(&unreleased),
                ..Failure::new(Code::ShutdownIncomplete, message)
            }),
        }
    }

    fn quorumlock_client_attach(
        &client: ClientHandle,
        &lease: LeaseHandle;
        new guard: GuardHandle;
        error
    ) {
        GuardHandle::new(client.redlock.attach(lease.take()?)?)?
    }
}
