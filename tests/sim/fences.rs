//! The rule about fences: they grow, always. No clock, no pause and no lease matters to it, so it
//! has no exceptions but one: nodes that forget what they have written.
//!
//! 1. No two acquisitions of a resource have the same fence.
//! 2. An acquisition whose attempt began when another guard had been given has the greater one.
//!    What counts is true time.

use crate::plan::Bounds;
use crate::world::World;
use crate::{kernel, keys};
use quorumlock::FencingToken;
use std::time::Duration;

/// The wall clock of the running client, in microseconds since 1970.
pub(crate) fn wall_clock() -> Duration {
    kernel::may_be_interrupted();
    kernel::with(|world| world.wall_clock(world.current_client()))
}

/// A guard was given, with this fence.
pub(crate) fn given(hold: usize, fence: Option<FencingToken>) {
    kernel::with(|world| {
        let Some(fence) = fence.map(FencingToken::get) else {
            let resource = world.judge.holds[hold].resource;
            if (keys::FENCED..keys::READ_WRITE).contains(&resource) {
                world.violate(
                    "fences grow",
                    "a fenced lock was taken, and has no fence".to_owned(),
                );
            }
            return;
        };
        world.judge.holds[hold].fence = Some(fence);
        world.judge_fence(hold, fence);
    });
}

impl World {
    fn judge_fence(&mut self, hold: usize, fence: u64) {
        // Also if a strict guard is between: what is forgotten are the fences, and only clocks are
        // left to go by.
        if self.judge.memory.has_losses() || self.plan.bounds == Bounds::Eviction {
            return;
        }
        let holds = &self.judge.holds;
        let resource = holds[hold].resource;
        let token = holds[hold].token;
        let begun = self.judge.tokens[token].drawn_at;
        let others = holds
            .iter()
            .enumerate()
            .filter(|(other, it)| *other != hold && it.resource == resource);
        let wrong = others.filter_map(|(_, other)| {
            let theirs = other.fence?;
            (theirs == fence || other.since < begun && theirs > fence)
                .then_some((other.token, theirs))
        });
        if let Some((other, theirs)) = wrong.max() {
            let text = format!(
                "r{resource}: attempt {token} has fence {fence}, and attempt {other} before it {theirs}"
            );
            self.violate("fences grow", text);
        }
    }
}
