//! A reply that comes after its deadline belongs to the request it answers, and to no later one.
//!
//! To read the `+OK` of another request would be the worst bug this library can have: two holders
//! of one lock. So a late grant meets a later request at every possible moment here: before it is
//! made, while it waits, after it has given up.

use crate::prelude::*;

/// A node that grants the first `SET` so late, and then answers whatever came meanwhile; every
/// other `SET` is refused.
fn late_once(delay: Duration) -> Fake {
    let mut sets = 0;
    Fake::on_command(move |command| match command[0].as_str() {
        "SET" => {
            sets += 1;
            if sets == 1 {
                vec![Act::Wait(delay), say("+OK\r\n")]
            } else {
                vec![say("$-1\r\n")]
            }
        }
        _ => vec![Act::Say(healthy(command))],
    })
}

/// Whether a release has arrived that names the token of the first `SET`.
fn is_undone(fake: &Fake) -> bool {
    let commands = fake.commands();
    let Some(set) = commands.iter().find(|command| command[0] == "SET") else {
        return false;
    };
    let is_release = |name: &str| name == "EVAL";
    commands
        .iter()
        .any(|command| is_release(&command[0]) && command.contains(&set[2]))
}

#[test]
fn a_late_grant_is_never_taken_for_a_later_request() {
    let mut answered = 0;
    // By how much the grant is late, and how long after giving up the next attempt is made.
    for late in [5, 20, 45, 80] {
        for pause in [0, 1, 12, 15, 30, 60, 90] {
            let fake = late_once(NODE_TIMEOUT + Duration::from_millis(late));
            let client = client_within([fake.url()], NODE_TIMEOUT);
            if long_lock(&client, "a").try_lock().is_ok() {
                // The machine held the attempt up until the late answer was there.
                continue;
            }
            thread::sleep(Duration::from_millis(pause));
            let attempt = long_lock(&client, "b").try_lock();
            let case = format!("{late} ms late, next attempt after {pause} ms: {attempt:?}");
            match attempt {
                Ok(None) => answered += 1,
                Ok(Some(_)) => panic!("{case}: granted"),
                // The node is behind with its answers and is not asked, or does not answer in time.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{case}"),
            }
            // The node comes to itself, and the late grant has been undone.
            assert_soon!(
                matches!(long_lock(&client, "c").try_lock(), Ok(None)),
                "{case}"
            );
            assert_soon!(is_undone(&fake), "{case}: the late grant was not undone");
            assert_eq!(
                fake.connections(),
                1,
                "{case}: nothing was out of order on the connection"
            );
        }
    }
    assert!(answered > 0, "no attempt was answered: nothing was shown");
}

#[test]
fn a_grant_that_comes_with_the_next_reply_is_kept_apart_from_it() {
    // This one answers a SET when the next command has arrived, right before that one's answer.
    let fake = Fake::late();
    let client = client_within([fake.url()], NODE_TIMEOUT);
    fails(long_lock(&client, "a").try_lock(), ErrorKind::Unavailable);
    assert!(fake.wait_for("EVAL", 1, SOON));
    for _ in 0..10 {
        assert!(!matches!(long_lock(&client, "b").try_lock(), Ok(Some(_))));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        fake.connections(),
        1,
        "nothing was out of order on the connection"
    );
}

#[test]
fn a_master_that_goes_on_refuses_what_it_must_refuse() {
    let server = Server::start().unwrap();
    // Counts the connections.
    let proxy = Proxy::before(server.port());
    let late = client_within([proxy.url()], NODE_TIMEOUT);
    let other = client([&server]);
    let warm = long_lock(&late, "warm");
    // A handshake by TLS may take longer than the node timeout.
    assert_soon!(can_take(&warm));
    let connections = proxy.connections();
    for pause in [0, 5, 11, 25, 60] {
        // Its own answer makes the node trusted again after the round before.
        assert_soon!(can_take(&warm));
        let held = take(&long_lock(&other, "b"));
        server.pause().unwrap();
        fails(long_lock(&late, "a").try_lock(), ErrorKind::Unavailable);
        server.resume().unwrap();
        thread::sleep(Duration::from_millis(pause));
        let mut answer = None;
        let mut answered = || {
            answer = long_lock(&late, "b").try_lock().ok();
            answer.is_some()
        };
        assert_soon!(answered(), "the node answers again");
        assert!(
            matches!(answer, Some(None)),
            "granted what another client holds"
        );
        unlock(held);
    }
    assert_eq!(
        proxy.connections(),
        connections,
        "nothing was out of order on the connection"
    );
}
