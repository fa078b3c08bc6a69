//! What `unlock` and a dropped guard report about the lock: `Expired`, and that it is lost, only
//! where no quorum can have held it.

use crate::prelude::*;
use crate::support::fake::Event;
use quorumlock::event::Event as ClientEvent;

fn is_loss(event: &ClientEvent) -> Option<bool> {
    match event {
        ClientEvent::Lost { .. } => Some(true),
        ClientEvent::ReleaseFailed { .. } => Some(false),
        _ => None,
    }
}

/// One node deletes, one never had the key because it was down at the acquire, one hangs: a quorum
/// held the lock, and may have held it to the end.
#[test]
fn a_node_that_never_had_the_key_does_not_make_a_lock_expired() {
    for is_dropped in [false, true] {
        let mut servers = Server::several(3).unwrap();
        let seen = Seen::nothing();
        let client = client_at(servers.iter().map(Server::url), |builder| {
            builder.max_ttl(LONG_TTL).observer(seen.by(is_loss))
        });
        servers[0].kill();
        let guard = client.mutex("held").ttl(LONG_TTL).lock().unwrap();
        servers[0].restart().unwrap();
        let votes = || {
            let _ = client.mutex("other").ttl(LONG_TTL).try_lock();
            first_node(&client).state() == NodeState::Voting
        };
        assert_soon!(votes(), "{:?}", client.nodes());
        servers[2].pause().unwrap();
        assert!(guard.remaining() > LONG_TTL / 2);
        if is_dropped {
            drop(guard);
            let is_told = || {
                let _ = client.mutex("other").ttl(LONG_TTL).try_lock();
                seen.all().contains(&false)
            };
            assert_soon!(is_told());
        } else {
            let error = guard
                .unlock()
                .expect_err("whether a quorum held it is not known");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert_eq!(error.causes().len(), 1, "{error}");
        }
        assert!(!seen.all().contains(&true), "it was held, and is not lost");
        servers[2].resume().unwrap();
    }
}

/// Two URLs lead to one server, and the release of the one that does not vote runs first there.
#[test]
fn what_a_duplicate_url_deletes_counts_for_the_node_that_votes() {
    let info = |id: char| {
        let run_id = id.to_string().repeat(40);
        say(&bulk(&format!("run_id:{run_id}\r\nrole:master\r\n")))
    };
    // Each answers the first INFO after `late` and a release with `released`.
    let node = |id, late: Duration, set: &'static str, released: &'static str| {
        let mut late = Some(late);
        Fake::scripted(move |_, event| match event {
            Event::Received(command) if is(command, "INFO") => late
                .take()
                .map(Act::Wait)
                .into_iter()
                .chain([info(id)])
                .collect(),
            Event::Received(command) if is(command, "SET") => vec![say(set)],
            Event::Received(command) if is(command, "EVAL") => vec![say(released)],
            Event::Received(command) => vec![Act::Say(healthy(command))],
            Event::Connected => Vec::new(),
        })
    };
    let late = Duration::from_millis(30);
    // What the voter, its duplicate and another node reply to the release, and the result.
    let table = [
        (":0\r\n", ":1\r\n", ":1\r\n", Some(ReleaseOutcome::Released)),
        (":1\r\n", ":0\r\n", ":1\r\n", Some(ReleaseOutcome::Released)),
        (":1\r\n", ":1\r\n", ":0\r\n", None),
        (":0\r\n", ":0\r\n", ":1\r\n", None),
    ];
    for (voter, duplicate, other, expected) in table {
        let fakes = [
            node('a', Duration::ZERO, "+OK\r\n", voter),
            node('a', late, "$-1\r\n", duplicate),
            node('c', late * 2, "+OK\r\n", other),
        ];
        let client = client_at(fakes.iter().map(Fake::url), |builder| {
            builder
                .node_timeout(Duration::from_secs(5))
                .release_notifications(false)
        });
        let guard = client.mutex("k").lock().unwrap();
        let released = guard.unlock().map_err(|error| error.kind());
        assert_eq!(
            released,
            expected.ok_or(ErrorKind::Unavailable),
            "{voter:?} {duplicate:?} {other:?}"
        );
    }
}
