//! A permit that another thread of its program takes over when it is released.
//!
//! ```text
//!   a thread waits here, and other programs do ──► passed on: not announced
//!                    │
//!                    └── passed on for long enough ──► left: announced, and not taken here
//! ```
//!
//! An announcement wakes every program that waits, and each asks in vain while the thread here takes the slot. What is
//! passed on and not taken is announced late: when the thread has given up, or its attempt has failed.

use super::permit::Permit;
use crate::algorithm::contention::Handover;

impl Permit {
    /// Decides how the slot goes on that is about to be released, if another thread of this client waits for one.
    pub(super) fn hand_over(&mut self) {
        let Permit { guard, slot } = self;
        if !guard.is_freed_by_release() || !slot.is_wanted() {
            return;
        }
        let engine = guard.client().engine();
        let (handover, now) = (engine.hand_over(guard.key()), engine.now());
        match handover {
            Handover::Open => {}
            Handover::Passed => {
                slot.pass_on(guard.claim().has_waited);
                guard.claim().is_passed_on = true;
            }
            Handover::Left => slot.leave_to_others(now),
        }
    }

    /// Announces what was passed on to threads that do not wait any more. To be called after the release.
    pub(super) fn announce_unclaimed(&self) {
        let client = self.guard.client();
        if !client.is_inherited() {
            self.slot.take_unclaimed().iter().for_each(|key| client.engine().announce(key));
        }
    }
}
