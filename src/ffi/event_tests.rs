//! The line of each kind of event, for the page of messages.

use super::event::{Event, Kind};
use super::header_tests::numbers;
use crate::NodeFault;
use crate::algorithm::fault::{Cause, Fault, Phase};
use std::time::Duration;

const ADDRESS: &str = "10.0.0.1:6379";

/// One event of each kind, and some once more with what changes their lines.
fn events() -> Vec<Event> {
    let of = |kind| Event::of(kind, "orders/42");
    let here = |kind| Event::of(kind, "").at([ADDRESS]);
    let because =
        |event: Event, phase, cause| event.because(&[NodeFault::new(ADDRESS.to_owned(), Fault::new(phase, cause))]);
    let denied = |event| because(event, Phase::Reply, Cause::NoPermission);
    let timed_out = |event| because(event, Phase::Reply, Cause::TimedOut);
    let second = Duration::from_secs(1);
    vec![
        Event { waited: second, attempts: 3, ..of(Kind::Acquired) },
        timed_out(Event { attempts: 2, granted: 1, refused: 1, ..of(Kind::AttemptLost) }),
        Event { ttl: second * 10, ..of(Kind::Extended) },
        Event { ttl: second * 10, is_automatic: true, ..of(Kind::Extended) },
        timed_out(Event { remaining: second * 4, ..of(Kind::ExtensionFailed) }),
        timed_out(Event { remaining: second * 4, is_automatic: true, ..of(Kind::ExtensionFailed) }),
        of(Kind::LostKey),
        of(Kind::LostTime),
        because(here(Kind::NodeDown), Phase::Connect, Cause::Refused),
        here(Kind::NodeUp),
        timed_out(of(Kind::ReleaseFailed)),
        of(Kind::Released),
        Event { is_freed: true, ..of(Kind::Released) },
        of(Kind::Expired),
        of(Kind::Repaired).at([ADDRESS]),
        Event { policy: "allkeys-lru", ..here(Kind::NodeMayEvict) },
        Event { remaining: second * 60, ..here(Kind::NodeQuarantined) },
        here(Kind::QuarantineEnded),
        denied(here(Kind::PublishRefused)),
        denied(here(Kind::SubscribeRefused)),
        of(Kind::KeyWithoutExpiry).at([ADDRESS, "10.0.0.2:6379"]),
        Event { dropped: 7, ..Event::of(Kind::EventsDropped, "") },
        here(Kind::NodeNotDurable),
    ]
}

/// The name of each kind of event, and the line that a program is shown.
pub(crate) fn lines() -> Vec<(&'static str, String)> {
    let names = numbers();
    let name =
        |number| *names.iter().find(|(name, is)| name.starts_with("QUORUMLOCK_EVENT_") && **is == number).unwrap().0;
    events().into_iter().map(|event| (name(event.kind as i32), event.message().to_owned())).collect()
}

#[test]
fn every_kind_of_event_has_a_line() {
    let mut shown: Vec<&str> = lines().into_iter().map(|(name, _)| name).collect();
    shown.sort_unstable();
    shown.dedup();
    let mut all: Vec<&str> = numbers().into_keys().filter(|name| name.starts_with("QUORUMLOCK_EVENT_")).collect();
    all.retain(|name| *name != "QUORUMLOCK_EVENT_NONE");
    assert_eq!(shown, all);
}
