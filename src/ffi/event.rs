//! What a program's observer is told: one kind of thing for all events, with functions that ask for its parts.
//!
//! So an event can tell more in a later version, and programs that were built before need not know.

use super::boundary::value;
use super::handle::Seen;
use super::report::{Fault, faults, show};
use super::text::Str;
use crate::{Human, NodeFault};
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
}

/// `quorumlock_event`. What does not belong to its kind is zero, or empty.
#[derive(Default)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
    pub(super) faults: Vec<Fault>,
    /// Made when it is asked for.
    pub(super) message: OnceLock<String>,
    pub(super) policy: &'static str,
    pub(super) waited: Duration,
    pub(super) ttl: Duration,
    pub(super) remaining: Duration,
    pub(super) attempts: u32,
    pub(super) round_trips: u32,
    pub(super) granted: usize,
    pub(super) refused: usize,
    pub(super) dropped: u64,
    pub(super) is_automatic: bool,
    pub(super) is_freed: bool,
}

impl Event {
    /// Of a resource, or of none if the name is empty.
    pub(super) fn of(kind: Kind, name: &str) -> Event {
        Event { kind, name: name.to_owned(), ..Event::default() }
    }

    pub(super) fn at<'a>(self, addresses: impl IntoIterator<Item = &'a str>) -> Event {
        Event { addresses: addresses.into_iter().map(str::to_owned).collect(), ..self }
    }

    pub(super) fn because(self, causes: &[NodeFault]) -> Event {
        Event { faults: faults(causes), ..self }
    }

    pub(super) fn message(&self) -> &str {
        self.message.get_or_init(|| self.render())
    }

    fn render(&self) -> String {
        let Event { name, attempts, .. } = self;
        let by_itself = if self.is_automatic { "automatically " } else { "" };
        let how = if self.is_freed { ", by freeing its guard" } else { "" };
        let mut line = match self.kind {
            Kind::None => String::new(),
            Kind::Acquired => format!("acquired {name:?} in {}, at attempt {attempts}", Human(self.waited)),
            Kind::AttemptLost => {
                format!("attempt {attempts} for {name:?} lost: {} granted, {} refused", self.granted, self.refused)
            }
            Kind::Extended => format!("{by_itself}extended {name:?} by {}", Human(self.ttl)),
            Kind::ExtensionFailed => {
                format!("{name:?} could not be {by_itself}extended, lock held for another {}", Human(self.remaining))
            }
            Kind::KeyWithoutExpiry => {
                format!("the key of {name:?} has no expiry, and is never freed: {}", self.addresses.join(", "))
            }
            Kind::LostKey => format!("lock {name:?} lost: the key is gone on a majority of nodes"),
            Kind::LostTime => format!("lock {name:?} lost: lease expired"),
            Kind::NodeDown => "a node is down".to_owned(),
            Kind::NodeUp => format!("{} is up", self.addresses.join(", ")),
            Kind::ReleaseFailed => format!("the release of {name:?} was not confirmed{how}"),
            Kind::Released => format!("released {name:?}{how}"),
            Kind::Expired => format!("released {name:?} after its lease had expired{how}"),
            Kind::NodeMayEvict => format!("{} may evict locks ({})", self.addresses.join(", "), self.policy),
            Kind::NodeNotDurable => format!(
                "{} is declared durable but appends nothing to disk (aof_enabled:0); the declaration is ignored",
                self.addresses.join(", ")
            ),
            Kind::NodeQuarantined => {
                format!(
                    "{} restarted or was a replica, does not vote for {}",
                    self.addresses.join(", "),
                    Human(self.remaining)
                )
            }
            Kind::QuarantineEnded => format!("{} votes again after its quarantine", self.addresses.join(", ")),
            Kind::PublishRefused => "the node denies PUBLISH: other clients are not notified of releases".to_owned(),
            Kind::SubscribeRefused => "the node denies SUBSCRIBE: this client is not notified of releases".to_owned(),
            Kind::EventsDropped => {
                format!("{} events were dropped: the observer is too slow", self.dropped)
            }
            Kind::Repaired => format!("set the key of {name:?} again at {}", self.addresses.join(", ")),
        };
        for (index, fault) in self.faults.iter().enumerate() {
            line += if index == 0 { " [" } else { "; " };
            line += &fault.message;
        }
        if !self.faults.is_empty() {
            line.push(']');
        }
        line
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_kind(event: Seen<Event>) -> Kind {
    value(Kind::None, || Some(event.look()?.kind))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_message(event: Seen<Event>) -> Str {
    value(Str::EMPTY, || Some(Str::of(event.look()?.message())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_name(event: Seen<Event>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&event.look()?.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address_count(event: Seen<Event>) -> usize {
    value(0, || Some(event.look()?.addresses.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_address(event: Seen<Event>, index: usize) -> Str {
    value(Str::EMPTY, || Some(Str::of(event.look()?.addresses.get(index)?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault_count(event: Seen<Event>) -> usize {
    value(0, || Some(event.look()?.faults.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_fault(event: Seen<Event>, index: usize) -> *const Fault {
    value(null(), || Some(show(&event.look()?.faults, index)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_waited_us(event: Seen<Event>) -> u64 {
    value(0, || Some(micros(event.look()?.waited)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_attempts(event: Seen<Event>) -> u32 {
    value(0, || Some(event.look()?.attempts))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_round_trips(event: Seen<Event>) -> u32 {
    value(0, || Some(event.look()?.round_trips))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_granted(event: Seen<Event>) -> usize {
    value(0, || Some(event.look()?.granted))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_refused(event: Seen<Event>) -> usize {
    value(0, || Some(event.look()?.refused))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_ttl_ms(event: Seen<Event>) -> u64 {
    value(0, || Some(millis(event.look()?.ttl)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_remaining_ms(event: Seen<Event>) -> u64 {
    value(0, || Some(millis(event.look()?.remaining)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_policy(event: Seen<Event>) -> Str {
    value(Str::EMPTY, || Some(Str::of(event.look()?.policy)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_dropped(event: Seen<Event>) -> u64 {
    value(0, || Some(event.look()?.dropped))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_automatic(event: Seen<Event>) -> c_int {
    value(0, || Some(event.look()?.is_automatic.into()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_event_is_freed(event: Seen<Event>) -> c_int {
    value(0, || Some(event.look()?.is_freed.into()))
}
