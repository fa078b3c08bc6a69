//! Whether those who wait for a lock can be told of its release on a connection.

use super::hint::Told;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Voice {
    /// Why not, if that was found out.
    refused: Option<Cause>,
    is_news: bool,
}

impl Voice {
    /// Takes what became of a hint; gives how many heard it.
    pub(super) fn told(&mut self, told: Told) -> u8 {
        match told {
            Told::Listeners(number) => number,
            Told::Nobody(cause) => {
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
