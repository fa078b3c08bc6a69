//! What one call that wants a lock asks for.

use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::client::Client;
use crate::api::watchdog::Watchdog;
use crate::events::error::{Error, ErrorKind};
use crate::protocol::lock_key::LockKey;
use std::time::Duration;

/// One call that wants a lock.
#[derive(Clone, Copy)]
pub(super) struct LockCall<'m> {
    pub(super) client: &'m Client,
    pub(super) key: &'m LockKey,
    pub(super) ttl: Ttl,
    pub(super) watchdog: Option<&'m Watchdog>,
    pub(super) is_fenced: bool,
    pub(super) at_least: Duration,
    pub(super) limit: WaitLimit,
    pub(super) called_at: Readings,
    /// The time from which the wait for an available quorum counts.
    pub(super) started: Timestamp,
    /// Whether another thread of this client held the lock before.
    pub(super) is_handed_on: bool,
}

impl LockCall<'_> {
    /// The name of the resource, without the prefix.
    pub(super) fn resource(&self) -> &str {
        self.client.resource(self.key.title())
    }

    /// The error of a wait that was cancelled.
    pub(super) fn cancelled(&self) -> Error {
        Error::new(ErrorKind::Cancelled, format!("the wait for {:?} was cancelled", self.resource()))
    }
}
