//! An event as C sees it: one opaque type for all kinds, with a function for each part. A part that
//! a kind does not have is zero or empty.
//!
//! A later version can add parts, and a program that was built before keeps working.

use super::boundary::call_or;
use super::error_object::{FaultObject, faults, show};
use super::handle::View;
use super::text::Str;
use super::times::{micros, millis};
use crate::event::{Event, LossReason, Mismatch};
use crate::{NodeFault, ReleaseOutcome};
use std::ffi::c_int;
use std::ptr::null;
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
            faults: faults(causes(event)),
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

/// A number of an event; zero without one.
fn number<N: Default>(
    event: &View<EventObject<'_>>,
    number: impl FnOnce(&Event) -> Option<N>,
) -> N {
    call_or(N::default(), || number(event.get()?.event))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_kind(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| Some(kind(event)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_code(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.event.code())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_message(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.message())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_name(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.event.name()?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address_count(event: View<EventObject<'_>>) -> usize {
    number(&event, |event| Some(addresses(event).len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address(event: View<EventObject<'_>>, index: usize) -> Str {
    call_or(Str::EMPTY, || {
        Some(Str::of(addresses(event.get()?.event).get(index)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault_count(event: View<EventObject<'_>>) -> usize {
    number(&event, |event| Some(causes(event).len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault(
    event: View<EventObject<'_>>,
    index: usize,
) -> *const FaultObject {
    call_or(null(), || Some(show(&event.get()?.faults, index)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_waited_us(event: View<EventObject<'_>>) -> u64 {
    number(&event, |event| match event {
        Event::Acquired { waited, .. } | Event::GaveUp { waited, .. } => Some(micros(*waited)),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_has_waited(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| match event {
        Event::Acquired { has_waited, .. } | Event::GaveUp { has_waited, .. } => {
            Some((*has_waited).into())
        }
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_held_us(event: View<EventObject<'_>>) -> u64 {
    number(&event, |event| match event {
        Event::Lost { held, .. }
        | Event::ReleaseFailed { held, .. }
        | Event::Released { held, .. } => Some(micros(*held)),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_reason(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| match event {
        Event::GaveUp { reason, .. } => Some(*reason as c_int),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_severity(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| Some(event.severity() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_attempts(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { attempts, .. }
        | Event::AttemptLost {
            attempt: attempts, ..
        }
        | Event::GaveUp { attempts, .. } => Some(*attempts),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_round_trips(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { round_trips, .. } => Some(*round_trips),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_position(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { position, .. } => *position,
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_told(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { told, .. } => Some(*told),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_unasked(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { unasked, .. } => Some(*unasked),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_challenges(event: View<EventObject<'_>>) -> u32 {
    number(&event, |event| match event {
        Event::Acquired { challenges, .. } => Some(*challenges),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_granted(event: View<EventObject<'_>>) -> usize {
    number(&event, |event| match event {
        Event::AttemptLost { granted, .. } => Some(*granted),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_refused(event: View<EventObject<'_>>) -> usize {
    number(&event, |event| match event {
        Event::AttemptLost { refused, .. } => Some(*refused),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_nodes(event: View<EventObject<'_>>) -> usize {
    number(&event, |event| match event {
        Event::NodeMismatched {
            mismatch: Mismatch::Nodes { noted, .. },
            ..
        } => Some(*noted),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_ttl_ms(event: View<EventObject<'_>>) -> u64 {
    number(&event, |event| match event {
        Event::Extended { ttl, .. } => Some(millis(*ttl)),
        Event::NodeMismatched {
            mismatch: Mismatch::MaxTtl { noted, .. },
            ..
        } => Some(millis(*noted)),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_remaining_ms(event: View<EventObject<'_>>) -> u64 {
    number(&event, |event| match event {
        Event::ExtensionFailed { remaining, .. }
        | Event::NodeQuarantined { remaining, .. }
        | Event::WaitingForItself { remaining, .. } => Some(millis(*remaining)),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_policy(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || match event.get()?.event {
        Event::NodeMayEvict { policy, .. } => Some(Str::of(policy)),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_dropped(event: View<EventObject<'_>>) -> u64 {
    number(&event, |event| match event {
        Event::EventsDropped { count } => Some(*count),
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_automatic(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| match event {
        Event::Extended { is_automatic, .. } | Event::ExtensionFailed { is_automatic, .. } => {
            Some((*is_automatic).into())
        }
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_freed(event: View<EventObject<'_>>) -> c_int {
    number(&event, |event| match event {
        Event::ReleaseFailed { is_dropped, .. } | Event::Released { is_dropped, .. } => {
            Some((*is_dropped).into())
        }
        _ => None,
    })
}
