//! A fence that no clock explains, on some of the nodes: they are left out, report it, and spoil no
//! number of the others.

use crate::prelude::*;
use quorumlock::algorithm::fence::LEAD_LIMIT;

const KEY: &str = "quorumlock-fence:k";
/// 2⁵³ − 2, released.
const ABSURD: &str = "9007199254740990 0 ";
const HOUR: u64 = 3_600_000_000;

fn set(server: &Server, text: &str) {
    ok(server, &["SET", KEY, text]);
}

#[test]
fn one_absurd_fence_on_one_node_of_five_costs_that_node_alone() {
    let servers = Server::several(5).unwrap();
    set(&servers[2], ABSURD);
    let clients = [client(&servers), client(&servers)];
    let mut last = FencingToken::try_from(0_u64).unwrap();
    for round in 0..20 {
        // The release of the other client may still be on its way to a node.
        let guard = wait_for(&long_lock(&clients[round % 2], "k").fenced());
        let token = guard.fence();
        assert!(token > last && token.get() < micros() + HOUR, "{token}");
        last = token;
        unlock(guard);
        assert_eq!(
            value(&servers[2], KEY).as_deref(),
            Some(ABSURD),
            "it is left alone, and ends with its retention"
        );
    }
    // The fault is visible on the node, which goes on to count for other locks.
    let is_seen = || {
        let _ = long_lock(&clients[0], "k").fenced().try_lock();
        let status = &clients[0].nodes().unwrap()[2];
        status
            .last_fault()
            .is_some_and(|fault| fault.cause() == Cause::FenceAhead)
    };
    assert_soon!(is_seen());
    unlock(take(&long_lock(&clients[0], "other").fenced()));
    // With a quorum of healthy nodes and no more, as well.
    let few = client(&servers[1..4]);
    let guard = wait_for(&long_lock(&few, "k").fenced());
    assert!(guard.fence() > last);
}

#[test]
fn a_majority_of_absurd_fences_is_an_error_that_says_what_to_check() {
    let servers = Server::several(3).unwrap();
    servers[..2].iter().for_each(|server| set(server, ABSURD));
    let client = client(&servers);
    let error = failure(&long_lock(&client, "k").fenced());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let ahead = |server: &Server| (server.address(), Phase::Reply, Cause::FenceAhead);
    assert_eq!(causes(&error), [ahead(&servers[0]), ahead(&servers[1])]);
    shows(&error, "check the clocks of this machine and the node");
    assert_eq!(value(&servers[0], KEY).as_deref(), Some(ABSURD));
    assert_soon!(
        value(&servers[2], KEY).is_none_or(|value| value.ends_with(' ')),
        "it is undone"
    );
}

#[test]
fn the_client_leaves_out_a_node_that_gives_an_absurd_fence_out() {
    // Neither its clock nor its script is what it should be.
    let liar = Fake::on_command(|command| match command {
        _ if command.get(4).is_some_and(|word| word == "acquire") => {
            vec![say("$16\r\n9007199254740991\r\n")]
        }
        _ if command.get(4).is_some_and(|word| word == "release") => vec![say(":1\r\n")],
        _ => vec![crate::support::fake::Act::Say(healthy(command))],
    });
    let servers = Server::several(2).unwrap();
    let urls = [liar.url(), servers[0].url(), servers[1].url()];
    let mutex = long_lock(&client_of(urls), "k").fenced();
    for _ in 0..5 {
        let guard = take(&mutex);
        assert!(guard.fence().get() < micros() + HOUR);
        unlock(guard);
    }
    let alone = client_within([liar.url()], Duration::from_secs(1));
    assert_eq!(cause(&long_lock(&alone, "k").fenced()), Cause::FenceAhead);
}

/// What the script answers to this request, on a real server or an embedded node: one reply, as it
/// is written.
fn run(server: &Server, words: &[&str]) -> Answer {
    server
        .command(&[&["EVAL", kinds::fenced::SCRIPT.text, "1", KEY], words].concat())
        .unwrap()
}

#[test]
fn a_node_gives_out_no_fence_and_is_raised_to_none_that_its_clock_does_not_explain() {
    let server = Server::start().unwrap();
    let ours = "1".repeat(40);
    let kept = "600000";
    let acquire = || run(&server, &["acquire", &ours, "60000", kept, "1"]);
    let raise = |fence: u64| run(&server, &["raise", &ours, &fence.to_string(), kept]);
    for (lead, is_given) in [(LEAD_LIMIT, true), (LEAD_LIMIT + HOUR, false)] {
        set(&server, &format!("{} 0 ", micros() + lead));
        assert_eq!(matches!(acquire(), Answer::Text(_)), is_given, "{lead}");
    }
    set(&server, "1 0 ");
    assert!(matches!(acquire(), Answer::Text(_)));
    assert_eq!(raise(micros() + LEAD_LIMIT), Answer::Number(1));
    let before = value(&server, KEY);
    for fence in [micros() + LEAD_LIMIT + HOUR, (1 << 53) - 1] {
        assert_eq!(raise(fence), Answer::Number(-3));
    }
    assert_eq!(value(&server, KEY), before, "and nothing is written");
}
