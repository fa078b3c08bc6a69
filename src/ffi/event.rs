//! An event as C sees it: one opaque type for all kinds, with a function for each part. A part that
//! a kind does not have is zero or empty.
//!
//! A later version can add parts, and a program that was built before keeps working.

use super::boundary::parts;
use super::fault::FaultObject;
use super::handle::View;
use super::text::Str;
use super::times::{micros, millis};
use crate::event::Event::{self, *};
use crate::event::{LossReason, Mismatch};
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
        Acquired { .. } => 1,
        AttemptLost { .. } => 2,
        Extended { .. } => 3,
        ExtensionFailed { .. } => 4,
        Lost {
            reason: LossReason::KeyGone,
            ..
        } => 5,
        Lost {
            reason: LossReason::LeaseEnded,
            ..
        } => 6,
        NodeDown { .. } => 7,
        NodeUp { .. } => 8,
        ReleaseFailed { .. } => 9,
        Released {
            outcome: ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_),
            ..
        } => 10,
        Released {
            outcome: ReleaseOutcome::Expired,
            ..
        } => 11,
        Repaired { .. } => 12,
        NodeMayEvict { .. } => 13,
        NodeQuarantined { .. } => 14,
        QuarantineEnded { .. } => 15,
        ReleaseNotificationsRefused {
            is_publishing: true,
            ..
        } => 16,
        ReleaseNotificationsRefused {
            is_publishing: false,
            ..
        } => 17,
        KeyWithoutExpiry { .. } => 18,
        EventsDropped { .. } => 19,
        NodeNotDurable { .. } => 20,
        Waiting { .. } => 21,
        GaveUp { .. } => 22,
        WaitingForItself { .. } => 23,
        NodeMismatched {
            mismatch: Mismatch::MaxTtl { .. },
            ..
        } => 24,
        NodeMismatched {
            mismatch: Mismatch::Nodes { .. },
            ..
        } => 25,
        NodeMismatched {
            mismatch: Mismatch::Rights,
            ..
        } => 26,
        CredentialsFailed { .. } => 27,
        NodeMoved { .. } => 28,
    }
}

fn causes(event: &Event) -> &[NodeFault] {
    match event {
        AttemptLost { causes, .. }
        | ExtensionFailed { causes, .. }
        | GaveUp { causes, .. }
        | ReleaseFailed { causes, .. } => causes,
        CredentialsFailed { fault, .. }
        | NodeDown { fault, .. }
        | ReleaseNotificationsRefused { fault, .. } => from_ref(fault),
        _ => &[],
    }
}

fn addresses(event: &Event) -> Vec<&str> {
    match event {
        KeyWithoutExpiry { nodes, .. } | Repaired { nodes, .. } => {
            nodes.iter().map(|node| &**node).collect()
        }
        NodeMoved { node, master, .. } => vec![node, master],
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
}

/// Parts that are fields of some kinds of events.
macro_rules! fields {
    ($($name:ident -> $type:ty: $kinds:pat => $value:expr;)*) => {
        parts! { View<EventObject<'_>>: $(
            $name() -> $type = |of| match *of.event {
                $kinds => $value,
                _ => <$type>::default(),
            };
        )* }
    };
}

fields! {
    quorumlock_event_waited_us -> u64:
        Acquired { waited, .. } | GaveUp { waited, .. } => micros(waited);
    quorumlock_event_has_waited -> c_int:
        Acquired { has_waited, .. } | GaveUp { has_waited, .. } => has_waited.into();
    quorumlock_event_held_us -> u64:
        Lost { held, .. } | ReleaseFailed { held, .. } | Released { held, .. } => micros(held);
    quorumlock_event_reason -> c_int: GaveUp { reason, .. } => reason as c_int;
    quorumlock_event_attempts -> u32:
        AttemptLost { attempt: attempts, .. }
        | Acquired { attempts, .. }
        | GaveUp { attempts, .. } => attempts;
    quorumlock_event_round_trips -> u32: Acquired { round_trips, .. } => round_trips;
    quorumlock_event_position -> u32: Acquired { position, .. } => position.unwrap_or_default();
    quorumlock_event_told -> u32: Acquired { told, .. } => told;
    quorumlock_event_unasked -> u32: Acquired { unasked, .. } => unasked;
    quorumlock_event_challenges -> u32: Acquired { challenges, .. } => challenges;
    quorumlock_event_granted -> usize: AttemptLost { granted, .. } => granted;
    quorumlock_event_refused -> usize: AttemptLost { refused, .. } => refused;
    quorumlock_event_nodes -> usize:
        NodeMismatched { mismatch: Mismatch::Nodes { noted, .. }, .. } => noted;
    quorumlock_event_ttl_ms -> u64:
        Extended { ttl: noted, .. }
        | NodeMismatched { mismatch: Mismatch::MaxTtl { noted, .. }, .. } => millis(noted);
    quorumlock_event_remaining_ms -> u64:
        ExtensionFailed { remaining, .. }
        | NodeQuarantined { remaining, .. }
        | WaitingForItself { remaining, .. } => millis(remaining);
    quorumlock_event_policy -> Str: NodeMayEvict { policy, .. } => Str::of(policy);
    quorumlock_event_dropped -> u64: EventsDropped { count } => count;
    quorumlock_event_is_automatic -> c_int:
        Extended { is_automatic, .. } | ExtensionFailed { is_automatic, .. } => is_automatic.into();
    quorumlock_event_is_freed -> c_int:
        ReleaseFailed { is_dropped, .. } | Released { is_dropped, .. } => is_dropped.into();
}
