//! One event of each kind, and some once more with what changes their lines: for the page of messages.

use super::{
    Acquired, AttemptLost, Event, EventsDropped, Extended, ExtensionFailed, GaveUp, GaveUpReason, KeyWithoutExpiry,
    LossReason, Lost, Mismatch, NodeDown, NodeMayEvict, NodeMismatched, NodeNotDurable, NodeQuarantined, NodeUp,
    QuarantineEnded, ReleaseFailed, ReleaseNotificationsRefused, Released, Repaired, ResourceName, Waiting,
    WaitingForItself,
};
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::queue::AskedBecause;
use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use std::time::Duration;

pub(crate) fn all() -> Vec<Event> {
    let second = Duration::from_secs(1);
    let resource = || ResourceName { key: "jobs:orders/42".into(), prefix: "jobs:".len() };
    let address = || "10.0.0.1:6379".to_owned();
    let fault = |fault| NodeFault::new(address(), fault);
    let refused = Fault::new(Phase::Connect, Cause::Refused);
    let denied = |command| Fault::new(Phase::Reply, Cause::NoPermission).with(Detail::Command(command));
    let causes = || {
        let limit = Detail::Limit(second / 10, Some("node_timeout"));
        vec![fault(Fault::new(Phase::Reply, Cause::TimedOut).with(limit))]
    };
    let addresses = vec![address(), "10.0.0.2:6379".to_owned()];
    let acquired = |attempts, round_trips| {
        let (resource, waited, has_waited, position) = (resource(), second, true, Some(1));
        let because = AskedBecause { told: 1, ..AskedBecause::default() };
        Event::Acquired(Acquired { resource, waited, attempts, round_trips, has_waited, position, because })
    };
    let extended = |automatic| Event::Extended(Extended { resource: resource(), ttl: second * 10, automatic });
    let extension_failed = |automatic| {
        let (resource, remaining, causes) = (resource(), second * 4, causes());
        Event::ExtensionFailed(ExtensionFailed { resource, automatic, remaining, causes })
    };
    let lost = |reason| Event::Lost(Lost { resource: resource(), reason, held: second * 8 });
    let notifications = |publishing, command| {
        let fault = fault(denied(command));
        Event::ReleaseNotificationsRefused(ReleaseNotificationsRefused { fault, publishing })
    };
    let mismatched = |mismatch| Event::NodeMismatched(NodeMismatched { address: address(), mismatch });
    let held = second * 8;
    let release_failed =
        |dropped| Event::ReleaseFailed(ReleaseFailed { resource: resource(), dropped, held, causes: causes() });
    let released = |outcome, dropped| Event::Released(Released { resource: resource(), outcome, dropped, held });
    let gave_up = |reason, attempts, causes| {
        let (resource, waited, has_waited) = (resource(), second * 2, reason == GaveUpReason::TimedOut);
        Event::GaveUp(GaveUp { resource, reason, waited, attempts, has_waited, causes })
    };
    vec![
        acquired(3, 1),
        acquired(0, 0),
        Event::AttemptLost(AttemptLost { resource: resource(), attempt: 2, granted: 1, refused: 1, causes: causes() }),
        Event::EventsDropped(EventsDropped { count: 7 }),
        extended(false),
        extended(true),
        extension_failed(false),
        extension_failed(true),
        gave_up(GaveUpReason::Cancelled, 2, Vec::new()),
        gave_up(GaveUpReason::Failed, 0, Vec::new()),
        gave_up(GaveUpReason::Held, 1, Vec::new()),
        gave_up(GaveUpReason::TimedOut, 0, Vec::new()),
        gave_up(GaveUpReason::TooLate, 1, Vec::new()),
        gave_up(GaveUpReason::Unavailable, 3, causes()),
        Event::KeyWithoutExpiry(KeyWithoutExpiry { resource: resource(), addresses }),
        lost(LossReason::KeyGone),
        lost(LossReason::LeaseEnded),
        Event::NodeDown(NodeDown { fault: fault(refused) }),
        Event::NodeMayEvict(NodeMayEvict { address: address(), policy: "allkeys-lru" }),
        mismatched(Mismatch::MaxTtl { noted: second * 60, own: second * 30 }),
        mismatched(Mismatch::Nodes { noted: 3, own: 5 }),
        mismatched(Mismatch::Rights),
        Event::NodeNotDurable(NodeNotDurable { address: address() }),
        Event::NodeQuarantined(NodeQuarantined { address: address(), remaining: second * 60 }),
        Event::NodeUp(NodeUp { address: address() }),
        Event::QuarantineEnded(QuarantineEnded { address: address() }),
        release_failed(false),
        release_failed(true),
        notifications(true, "PUBLISH"),
        notifications(false, "SUBSCRIBE"),
        released(ReleaseOutcome::Expired, false),
        released(ReleaseOutcome::Expired, true),
        released(ReleaseOutcome::Released, false),
        released(ReleaseOutcome::Released, true),
        Event::Repaired(Repaired { resource: resource(), addresses: vec![address()] }),
        Event::Waiting(Waiting { resource: resource() }),
        Event::WaitingForItself(WaitingForItself { resource: resource(), remaining: second * 9 }),
    ]
}

#[test]
fn every_event_is_one_line_of_a_log() {
    let mut lines: Vec<String> = all().iter().map(Event::to_string).collect();
    assert!(lines.iter().all(|line| !line.is_empty() && !line.contains('\n')), "{lines:?}");
    lines.sort_unstable();
    assert!(lines.windows(2).all(|two| two[0] != two[1]), "{lines:?}");
}
