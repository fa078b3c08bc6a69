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

frees! { quorumlock_client_free(Redlock); }

calls! {
    fn quorumlock_client_new(&config: ConfigHandle; new client: Redlock; error) {
        no_unload();
        config.builder()?.build()?
    }

    fn quorumlock_client_flush_releases(&client: Redlock, timeout_ms: u64; error) {
        client.flush_releases(Duration::from_millis(timeout_ms))?;
        Ok(Code::Ok)
    }

    fn quorumlock_client_shutdown(&client: Redlock, timeout_ms: u64; error) {
        let outcome = client.shutdown(Duration::from_millis(timeout_ms))?;
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
        &client: Redlock,
        &lease: LeaseHandle;
        new guard: GuardHandle;
        error
    ) {
        GuardHandle::new(client.attach(lease.take()?)?)?
    }
}
