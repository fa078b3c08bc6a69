//! One event of each kind, and some once more with what changes their lines: for the page of
//! messages.

use crate::event::{Event, GaveUpReason, LossReason, Mismatch};
use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn all() -> Vec<Event> {
    let second = Duration::from_secs(1);
    let name: Arc<str> = "orders/42".into();
    let name = || Arc::clone(&name);
    let node: Arc<str> = "10.0.0.1:6379".into();
    let node = || Arc::clone(&node);
    let fault = |fault| NodeFault::new(node(), fault);
    let refused = Fault::new(Phase::Connect, Cause::Refused);
    let denied =
        |command| Fault::new(Phase::Reply, Cause::NoPermission).with(Detail::Command(command));
    let causes = || {
        let limit = Detail::Limit(second / 10, Some("node_timeout"));
        vec![fault(Fault::new(Phase::Reply, Cause::TimedOut).with(limit))]
    };
    let acquired = |attempts, round_trips| Event::Acquired {
        name: name(),
        waited: second,
        attempts,
        has_waited: true,
        position: Some(1),
        round_trips,
        told: 1,
        unasked: 0,
        challenges: 0,
    };
    let extended = |is_automatic| Event::Extended {
        name: name(),
        ttl: second * 10,
        is_automatic,
    };
    let extension_failed = |is_automatic| Event::ExtensionFailed {
        name: name(),
        is_automatic,
        remaining: second * 4,
        causes: causes(),
    };
    let held = second * 8;
    let lost = |reason| Event::Lost {
        name: name(),
        reason,
        held,
    };
    let notifications = |is_publishing, command| Event::ReleaseNotificationsRefused {
        node: node(),
        fault: fault(denied(command)),
        is_publishing,
    };
    let mismatched = |mismatch| Event::NodeMismatched {
        node: node(),
        mismatch,
    };
    let release_failed = |is_dropped| Event::ReleaseFailed {
        name: name(),
        held,
        is_dropped,
        causes: causes(),
    };
    let released = |outcome, is_dropped| Event::Released {
        name: name(),
        held,
        is_dropped,
        outcome,
    };
    let gave_up = |reason, attempts, causes| Event::GaveUp {
        name: name(),
        reason,
        waited: second * 2,
        attempts,
        has_waited: reason == GaveUpReason::TimedOut,
        causes,
    };
    vec![
        acquired(3, 1),
        acquired(0, 0),
        Event::AttemptLost {
            name: name(),
            attempt: 2,
            granted: 1,
            refused: 1,
            causes: causes(),
        },
        Event::EventsDropped { count: 7 },
        extended(false),
        Event::CredentialsFailed {
            node: node(),
            fault: fault(Fault::new(
                Phase::Handshake,
                Cause::Credentials(CredentialsError::Failed),
            )),
        },
        extended(true),
        extension_failed(false),
        extension_failed(true),
        gave_up(GaveUpReason::Cancelled, 2, Vec::new()),
        gave_up(GaveUpReason::Failed, 0, Vec::new()),
        gave_up(GaveUpReason::Held, 1, Vec::new()),
        gave_up(GaveUpReason::TimedOut, 0, Vec::new()),
        gave_up(GaveUpReason::TooLate, 1, Vec::new()),
        gave_up(GaveUpReason::Unavailable, 3, causes()),
        gave_up(GaveUpReason::ShutDown, 1, Vec::new()),
        Event::KeyWithoutExpiry {
            name: name(),
            key: "jobs:orders/42".into(),
            nodes: vec![node(), "10.0.0.2:6379".into()],
        },
        lost(LossReason::KeyGone),
        lost(LossReason::LeaseEnded),
        Event::NodeDown {
            node: node(),
            fault: fault(refused),
        },
        Event::NodeMayEvict {
            node: node(),
            policy: "allkeys-lru",
        },
        Event::NodeMoved {
            node: node(),
            master: "10.0.0.7:6379".into(),
        },
        mismatched(Mismatch::MaxTtl {
            noted: second * 60,
            own: second * 30,
        }),
        mismatched(Mismatch::Nodes { noted: 3, own: 5 }),
        mismatched(Mismatch::Rights),
        Event::NodeNotDurable { node: node() },
        Event::NodeQuarantined {
            node: node(),
            remaining: second * 60,
        },
        Event::NodeUp { node: node() },
        Event::QuarantineEnded { node: node() },
        release_failed(false),
        release_failed(true),
        notifications(true, "PUBLISH"),
        notifications(false, "SUBSCRIBE"),
        released(ReleaseOutcome::Expired, false),
        released(ReleaseOutcome::Expired, true),
        released(ReleaseOutcome::Released, false),
        released(ReleaseOutcome::Released, true),
        Event::Repaired {
            name: name(),
            nodes: vec![node()],
        },
        Event::Waiting { name: name() },
        Event::WaitingForItself {
            name: name(),
            remaining: second * 9,
        },
    ]
}

#[test]
fn every_event_is_one_line_of_a_log() {
    let mut lines: Vec<String> = all().iter().map(Event::to_string).collect();
    assert!(
        lines
            .iter()
            .all(|line| !line.is_empty() && !line.contains('\n')),
        "{lines:?}"
    );
    lines.sort_unstable();
    assert!(lines.windows(2).all(|two| two[0] != two[1]), "{lines:?}");
}

#[test]
fn an_event_is_about_a_lock_or_a_node_and_its_code_is_its_name() {
    for event in all() {
        let is_about_either = event.name().is_some() != event.node().is_some();
        assert!(
            is_about_either || matches!(event, Event::EventsDropped { .. }),
            "{event:?}"
        );
        let variant: String = format!("{event:?}")
            .chars()
            .take_while(|letter| letter.is_alphabetic())
            .collect();
        let same = |letter: &char| *letter != '_';
        assert!(
            event
                .code()
                .chars()
                .filter(same)
                .eq(variant.to_lowercase().chars()),
            "{event:?}"
        );
    }
}
