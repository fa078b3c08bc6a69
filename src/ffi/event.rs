//! An event as C sees it: one opaque type for all kinds, with a function for each part.
//!
//! A later version can add parts, and a program that was built before keeps working.

use super::boundary::call_or;
use super::error_object::{FaultObject, faults, show};
use super::handle::View;
use super::text::Str;
use crate::event::{self, GaveUpReason, LossReason, Mismatch, Severity};
use crate::{NodeFault, ReleaseOutcome};
use std::ffi::c_int;
use std::ptr::null;
use std::sync::OnceLock;
use std::time::Duration;

/// `quorumlock_kind`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) enum Kind {
    #[default]
    None = 0,
    Acquired = 1,
    AttemptLost = 2,
    Extended = 3,
    ExtensionFailed = 4,
    LostKey = 5,
    LostTime = 6,
    NodeDown = 7,
    NodeUp = 8,
    ReleaseFailed = 9,
    Released = 10,
    Expired = 11,
    Repaired = 12,
    NodeMayEvict = 13,
    NodeQuarantined = 14,
    QuarantineEnded = 15,
    PublishRefused = 16,
    SubscribeRefused = 17,
    KeyWithoutExpiry = 18,
    EventsDropped = 19,
    NodeNotDurable = 20,
    Waiting = 21,
    GaveUp = 22,
    WaitingForItself = 23,
    MaxTtlDiffers = 24,
    NodeCountDiffers = 25,
    NodeKeyDenied = 26,
}

/// `quorumlock_reason`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) enum ReasonNumber {
    #[default]
    None = 0,
    Cancelled = 1,
    Failed = 2,
    Held = 3,
    TimedOut = 4,
    TooLate = 5,
    Unavailable = 6,
}

/// `quorumlock_severity`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) enum SeverityNumber {
    None = 0,
    Debug = 1,
    Info = 2,
    Warning = 3,
    Error = 4,
}

/// `quorumlock_event`: an event and its parts, for the time of a callback.
pub(super) struct EventObject<'e> {
    event: &'e event::Event,
    parts: Parts<'e>,
    faults: Vec<FaultObject>,
    /// Rendered at the first call for it.
    message: OnceLock<String>,
}

/// The parts of an event. A part that its kind does not have is zero or empty.
#[derive(Default)]
struct Parts<'e> {
    kind: Kind,
    name: &'e str,
    addresses: Vec<&'e str>,
    causes: &'e [NodeFault],
    policy: &'static str,
    waited: Duration,
    held: Duration,
    reason: ReasonNumber,
    has_waited: bool,
    ttl: Duration,
    remaining: Duration,
    attempts: u32,
    round_trips: u32,
    position: u32,
    told: u32,
    unasked: u32,
    challenges: u32,
    granted: usize,
    refused: usize,
    nodes: usize,
    dropped: u64,
    is_automatic: bool,
    is_freed: bool,
}

impl<'e> EventObject<'e> {
    pub(super) fn new(event: &'e event::Event) -> EventObject<'e> {
        let parts = Parts::of(event);
        EventObject { event, faults: faults(parts.causes), parts, message: OnceLock::new() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.parts.kind
    }

    pub(super) fn message(&self) -> &str {
        self.message.get_or_init(|| self.event.to_string())
    }
}

impl<'e> Parts<'e> {
    /// A table: what each kind of event has.
    fn of(event: &'e event::Event) -> Parts<'e> {
        use event::Event;
        let at = |kind, address| Parts { kind, addresses: vec![address], ..Parts::default() };
        let because =
            |kind, fault: &'e NodeFault| Parts { causes: std::slice::from_ref(fault), ..at(kind, fault.address()) };
        let all = |addresses: &'e [String]| addresses.iter().map(String::as_str).collect();
        match event {
            Event::Acquired(event) => Parts {
                kind: Kind::Acquired,
                name: event.resource(),
                waited: event.waited(),
                attempts: event.attempts(),
                has_waited: event.has_waited(),
                round_trips: event.round_trips(),
                position: event.position().unwrap_or(0),
                told: event.told(),
                unasked: event.unasked(),
                challenges: event.challenges(),
                ..Parts::default()
            },
            Event::AttemptLost(event) => Parts {
                kind: Kind::AttemptLost,
                name: event.resource(),
                attempts: event.attempt(),
                granted: event.granted(),
                refused: event.refused(),
                causes: event.causes(),
                ..Parts::default()
            },
            Event::EventsDropped(event) => {
                Parts { kind: Kind::EventsDropped, dropped: event.count(), ..Parts::default() }
            }
            Event::Extended(event) => Parts {
                kind: Kind::Extended,
                name: event.resource(),
                ttl: event.ttl(),
                is_automatic: event.is_automatic(),
                ..Parts::default()
            },
            Event::ExtensionFailed(event) => Parts {
                kind: Kind::ExtensionFailed,
                name: event.resource(),
                remaining: event.remaining(),
                is_automatic: event.is_automatic(),
                causes: event.causes(),
                ..Parts::default()
            },
            Event::GaveUp(event) => Parts {
                kind: Kind::GaveUp,
                name: event.resource(),
                reason: reason(event.reason()),
                waited: event.waited(),
                attempts: event.attempts(),
                has_waited: event.has_waited(),
                causes: event.causes(),
                ..Parts::default()
            },
            Event::KeyWithoutExpiry(event) => Parts {
                kind: Kind::KeyWithoutExpiry,
                name: event.resource(),
                addresses: all(event.addresses()),
                ..Parts::default()
            },
            Event::Lost(event) => {
                Parts { kind: lost(event.reason()), name: event.resource(), held: event.held(), ..Parts::default() }
            }
            Event::NodeDown(event) => because(Kind::NodeDown, event.fault()),
            Event::NodeMayEvict(event) => Parts { policy: event.policy(), ..at(Kind::NodeMayEvict, event.address()) },
            Event::NodeMismatched(event) => match event.mismatch() {
                Mismatch::MaxTtl { noted, .. } => Parts { ttl: noted, ..at(Kind::MaxTtlDiffers, event.address()) },
                Mismatch::Nodes { noted, .. } => Parts { nodes: noted, ..at(Kind::NodeCountDiffers, event.address()) },
                Mismatch::Rights => at(Kind::NodeKeyDenied, event.address()),
            },
            Event::NodeNotDurable(event) => at(Kind::NodeNotDurable, event.address()),
            Event::NodeQuarantined(event) => {
                Parts { remaining: event.remaining(), ..at(Kind::NodeQuarantined, event.address()) }
            }
            Event::NodeUp(event) => at(Kind::NodeUp, event.address()),
            Event::QuarantineEnded(event) => at(Kind::QuarantineEnded, event.address()),
            Event::ReleaseFailed(event) => Parts {
                kind: Kind::ReleaseFailed,
                name: event.resource(),
                held: event.held(),
                is_freed: event.is_dropped(),
                causes: event.causes(),
                ..Parts::default()
            },
            Event::ReleaseNotificationsRefused(event) => because(refused(event.is_publishing()), event.fault()),
            Event::Released(event) => Parts {
                kind: released(event.outcome()),
                name: event.resource(),
                held: event.held(),
                is_freed: event.is_dropped(),
                ..Parts::default()
            },
            Event::Repaired(event) => Parts {
                kind: Kind::Repaired,
                name: event.resource(),
                addresses: all(event.addresses()),
                ..Parts::default()
            },
            Event::Waiting(event) => Parts { kind: Kind::Waiting, name: event.resource(), ..Parts::default() },
            Event::WaitingForItself(event) => Parts {
                kind: Kind::WaitingForItself,
                name: event.resource(),
                remaining: event.remaining(),
                ..Parts::default()
            },
        }
    }
}

fn lost(reason: LossReason) -> Kind {
    match reason {
        LossReason::KeyGone => Kind::LostKey,
        LossReason::LeaseEnded => Kind::LostTime,
    }
}

fn reason(reason: GaveUpReason) -> ReasonNumber {
    match reason {
        GaveUpReason::Cancelled => ReasonNumber::Cancelled,
        GaveUpReason::Failed => ReasonNumber::Failed,
        GaveUpReason::Held => ReasonNumber::Held,
        GaveUpReason::TimedOut => ReasonNumber::TimedOut,
        GaveUpReason::TooLate => ReasonNumber::TooLate,
        GaveUpReason::Unavailable => ReasonNumber::Unavailable,
    }
}

fn severity(severity: Severity) -> SeverityNumber {
    match severity {
        Severity::Debug => SeverityNumber::Debug,
        Severity::Info => SeverityNumber::Info,
        Severity::Warning => SeverityNumber::Warning,
        Severity::Error => SeverityNumber::Error,
    }
}

fn refused(is_publishing: bool) -> Kind {
    if is_publishing { Kind::PublishRefused } else { Kind::SubscribeRefused }
}

fn released(outcome: ReleaseOutcome) -> Kind {
    match outcome {
        ReleaseOutcome::Expired => Kind::Expired,
        ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_) => Kind::Released,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_kind(event: View<EventObject<'_>>) -> Kind {
    call_or(Kind::None, || Some(event.get()?.kind()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_message(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.message())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_name(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.parts.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address_count(event: View<EventObject<'_>>) -> usize {
    call_or(0, || Some(event.get()?.parts.addresses.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address(event: View<EventObject<'_>>, index: usize) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.parts.addresses.get(index)?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault_count(event: View<EventObject<'_>>) -> usize {
    call_or(0, || Some(event.get()?.faults.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault(event: View<EventObject<'_>>, index: usize) -> *const FaultObject {
    call_or(null(), || Some(show(&event.get()?.faults, index)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_waited_us(event: View<EventObject<'_>>) -> u64 {
    call_or(0, || Some(micros(event.get()?.parts.waited)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_has_waited(event: View<EventObject<'_>>) -> c_int {
    call_or(0, || Some(event.get()?.parts.has_waited.into()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_held_us(event: View<EventObject<'_>>) -> u64 {
    call_or(0, || Some(micros(event.get()?.parts.held)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_reason(event: View<EventObject<'_>>) -> ReasonNumber {
    call_or(ReasonNumber::None, || Some(event.get()?.parts.reason))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_severity(event: View<EventObject<'_>>) -> SeverityNumber {
    call_or(SeverityNumber::None, || Some(severity(event.get()?.event.severity())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_attempts(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.attempts))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_round_trips(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.round_trips))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_position(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.position))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_told(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.told))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_unasked(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.unasked))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_challenges(event: View<EventObject<'_>>) -> u32 {
    call_or(0, || Some(event.get()?.parts.challenges))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_granted(event: View<EventObject<'_>>) -> usize {
    call_or(0, || Some(event.get()?.parts.granted))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_refused(event: View<EventObject<'_>>) -> usize {
    call_or(0, || Some(event.get()?.parts.refused))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_nodes(event: View<EventObject<'_>>) -> usize {
    call_or(0, || Some(event.get()?.parts.nodes))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_ttl_ms(event: View<EventObject<'_>>) -> u64 {
    call_or(0, || Some(millis(event.get()?.parts.ttl)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_remaining_ms(event: View<EventObject<'_>>) -> u64 {
    call_or(0, || Some(millis(event.get()?.parts.remaining)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_policy(event: View<EventObject<'_>>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(event.get()?.parts.policy)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_dropped(event: View<EventObject<'_>>) -> u64 {
    call_or(0, || Some(event.get()?.parts.dropped))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_automatic(event: View<EventObject<'_>>) -> c_int {
    call_or(0, || Some(event.get()?.parts.is_automatic.into()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_freed(event: View<EventObject<'_>>) -> c_int {
    call_or(0, || Some(event.get()?.parts.is_freed.into()))
}
