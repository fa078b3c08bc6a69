//! An event as C sees it: one opaque type for all kinds, with a function for each part. A part that
//! a kind does not have is zero or empty.
//!
//! A later version can add parts, and a program that was built before keeps working.

use super::boundary::parts;
use super::fault::FaultObject;
use super::handle::View;
use super::text::Str;
use super::times::{micros, millis};
use crate::event::{Event, LossReason, Mismatch};
use crate::{NodeFault, ReleaseOutcome};
use std::ffi::c_int;
use std::slice::from_ref;
use std::sync::OnceLock;

/// `quorumlock_event`: an event, for the time of a callback.
pub(super) struct EventObject<'e> {
    event: &'e Event,
    faults: Vec<FaultObject>,
    /// Rendered at the first call for it.
    message: OnceLock<String>,
}

impl<'e> EventObject<'e> {
    pub(super) fn new(event: &'e Event) -> EventObject<'e> {
        EventObject {
            event,
            faults: FaultObject::list(causes(event)),
            message: OnceLock::new(),
        }
    }

    pub(super) fn message(&self) -> &str {
        self.message.get_or_init(|| self.event.to_string())
    }
}

/// `quorumlock_kind`. Numbers are never given to anything else.
pub(super) fn kind(event: &Event) -> c_int {
    match event {
        Event::Acquired { .. } => 1,
        Event::AttemptLost { .. } => 2,
        Event::Extended { .. } => 3,
        Event::ExtensionFailed { .. } => 4,
        Event::Lost {
            reason: LossReason::KeyGone,
            ..
        } => 5,
        Event::Lost {
            reason: LossReason::LeaseEnded,
            ..
        } => 6,
        Event::NodeDown { .. } => 7,
        Event::NodeUp { .. } => 8,
        Event::ReleaseFailed { .. } => 9,
        Event::Released {
            outcome: ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_),
            ..
        } => 10,
        Event::Released {
            outcome: ReleaseOutcome::Expired,
            ..
        } => 11,
        Event::Repaired { .. } => 12,
        Event::NodeMayEvict { .. } => 13,
        Event::NodeQuarantined { .. } => 14,
        Event::QuarantineEnded { .. } => 15,
        Event::ReleaseNotificationsRefused {
            is_publishing: true,
            ..
        } => 16,
        Event::ReleaseNotificationsRefused {
            is_publishing: false,
            ..
        } => 17,
        Event::KeyWithoutExpiry { .. } => 18,
        Event::EventsDropped { .. } => 19,
        Event::NodeNotDurable { .. } => 20,
        Event::Waiting { .. } => 21,
        Event::GaveUp { .. } => 22,
        Event::WaitingForItself { .. } => 23,
        Event::NodeMismatched {
            mismatch: Mismatch::MaxTtl { .. },
            ..
        } => 24,
        Event::NodeMismatched {
            mismatch: Mismatch::Nodes { .. },
            ..
        } => 25,
        Event::NodeMismatched {
            mismatch: Mismatch::Rights,
            ..
        } => 26,
        Event::CredentialsFailed { .. } => 27,
        Event::NodeMoved { .. } => 28,
    }
}

fn causes(event: &Event) -> &[NodeFault] {
    match event {
        Event::AttemptLost { causes, .. }
        | Event::ExtensionFailed { causes, .. }
        | Event::GaveUp { causes, .. }
        | Event::ReleaseFailed { causes, .. } => causes,
        Event::CredentialsFailed { fault, .. }
        | Event::NodeDown { fault, .. }
        | Event::ReleaseNotificationsRefused { fault, .. } => from_ref(fault),
        _ => &[],
    }
}

fn addresses(event: &Event) -> Vec<&str> {
    match event {
        Event::KeyWithoutExpiry { nodes, .. } | Event::Repaired { nodes, .. } => {
            nodes.iter().map(|node| &**node).collect()
        }
        Event::NodeMoved { node, master, .. } => vec![node, master],
        _ => event.node().into_iter().collect(),
    }
}

parts! { View<EventObject<'_>>:
    quorumlock_event_kind() -> c_int = |of| kind(of.event);
    quorumlock_event_code() -> Str = |of| Str::of(of.event.code());
    quorumlock_event_message() -> Str = |of| Str::of(of.message());
    quorumlock_event_name() -> Str = |of| of.event.name().map(Str::of).unwrap_or_default();
    quorumlock_event_severity() -> c_int = |of| of.event.severity() as c_int;
    quorumlock_event_address_count() -> usize = |of| addresses(of.event).len();
    quorumlock_event_address(index: usize) -> Str =
        |of| addresses(of.event).get(index).map(|node| Str::of(node)).unwrap_or_default();
    quorumlock_event_fault_count() -> usize = |of| of.faults.len();
    quorumlock_event_fault(index: usize) -> View<FaultObject> = |of| View::of(of.faults.get(index));
    quorumlock_event_waited_us() -> u64 = |of| match of.event {
        Event::Acquired { waited, .. } | Event::GaveUp { waited, .. } => micros(*waited),
        _ => 0,
    };
    quorumlock_event_has_waited() -> c_int = |of| match of.event {
        Event::Acquired { has_waited, .. } | Event::GaveUp { has_waited, .. } => {
            (*has_waited).into()
        }
        _ => 0,
    };
    quorumlock_event_held_us() -> u64 = |of| match of.event {
        Event::Lost { held, .. }
        | Event::ReleaseFailed { held, .. }
        | Event::Released { held, .. } => micros(*held),
        _ => 0,
    };
    quorumlock_event_reason() -> c_int = |of| match of.event {
        Event::GaveUp { reason, .. } => *reason as c_int,
        _ => 0,
    };
    quorumlock_event_attempts() -> u32 = |of| match of.event {
        Event::AttemptLost { attempt, .. } => *attempt,
        Event::Acquired { attempts, .. } | Event::GaveUp { attempts, .. } => *attempts,
        _ => 0,
    };
    quorumlock_event_round_trips() -> u32 = |of| match of.event {
        Event::Acquired { round_trips, .. } => *round_trips,
        _ => 0,
    };
    quorumlock_event_position() -> u32 = |of| match of.event {
        Event::Acquired { position, .. } => position.unwrap_or_default(),
        _ => 0,
    };
    quorumlock_event_told() -> u32 = |of| match of.event {
        Event::Acquired { told, .. } => *told,
        _ => 0,
    };
    quorumlock_event_unasked() -> u32 = |of| match of.event {
        Event::Acquired { unasked, .. } => *unasked,
        _ => 0,
    };
    quorumlock_event_challenges() -> u32 = |of| match of.event {
        Event::Acquired { challenges, .. } => *challenges,
        _ => 0,
    };
    quorumlock_event_granted() -> usize = |of| match of.event {
        Event::AttemptLost { granted, .. } => *granted,
        _ => 0,
    };
    quorumlock_event_refused() -> usize = |of| match of.event {
        Event::AttemptLost { refused, .. } => *refused,
        _ => 0,
    };
    quorumlock_event_nodes() -> usize = |of| match of.event {
        Event::NodeMismatched { mismatch: Mismatch::Nodes { noted, .. }, .. } => *noted,
        _ => 0,
    };
    quorumlock_event_ttl_ms() -> u64 = |of| match of.event {
        Event::Extended { ttl, .. } => millis(*ttl),
        Event::NodeMismatched { mismatch: Mismatch::MaxTtl { noted, .. }, .. } => millis(*noted),
        _ => 0,
    };
    quorumlock_event_remaining_ms() -> u64 = |of| match of.event {
        Event::ExtensionFailed { remaining, .. }
        | Event::NodeQuarantined { remaining, .. }
        | Event::WaitingForItself { remaining, .. } => millis(*remaining),
        _ => 0,
    };
    quorumlock_event_policy() -> Str = |of| match of.event {
        Event::NodeMayEvict { policy, .. } => Str::of(policy),
        _ => Str::default(),
    };
    quorumlock_event_dropped() -> u64 = |of| match of.event {
        Event::EventsDropped { count } => *count,
        _ => 0,
    };
    quorumlock_event_is_automatic() -> c_int = |of| match of.event {
        Event::Extended { is_automatic, .. } | Event::ExtensionFailed { is_automatic, .. } => {
            (*is_automatic).into()
        }
        _ => 0,
    };
    quorumlock_event_is_freed() -> c_int = |of| match of.event {
        Event::ReleaseFailed { is_dropped, .. } | Event::Released { is_dropped, .. } => {
            (*is_dropped).into()
        }
        _ => 0,
    };
}
