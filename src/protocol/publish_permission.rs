//! Whether those who wait for a lock can be told of its release on a connection.

use super::hint::PublishOutcome;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct PublishPermission {
    /// Why not, if that was found out.
    refused: Option<Cause>,
    is_news: bool,
}

impl PublishPermission {
    /// Takes what became of a hint; gives how many heard it.
    pub(super) fn told(&mut self, told: PublishOutcome) -> u8 {
        match told {
            PublishOutcome::Listeners(number) => number,
            PublishOutcome::Nobody(cause) => {
                self.is_news |= self.refused.replace(cause).is_none();
                0
            }
        }
    }

    /// Whether it is worth trying.
    pub(super) fn may_tell(&self) -> bool {
        self.refused.is_none()
    }

    /// Why not, if that was found out and not asked since.
    pub(super) fn take_refusal(&mut self) -> Option<Fault> {
        self.refused
            .filter(|_| std::mem::take(&mut self.is_news))
            .map(|cause| Fault::new(Phase::Reply, cause).with(Detail::Command("PUBLISH")))
    }
}
