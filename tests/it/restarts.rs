//! Nodes that were restarted and have forgotten what they promised: their votes do not count until
//! it has ended.
//!
//! A client that has met a node before it was restarted is *acquainted* here. [`node_status`] is
//! about the status of nodes, [`replicas`] about masters that were replicas meanwhile.

mod node_status;
mod replicas;

use crate::incarnations::{MAX_TTL, brief};
use crate::prelude::*;

const KEY: &str = "k";

/// The lock, for as long as it may last.
fn longest(client: &Redlock) -> Mutex {
    client.mutex(KEY).ttl(MAX_TTL)
}

/// Lets a client meet all of its nodes.
#[track_caller]
fn acquaint(client: &Redlock) {
    let met = || {
        drop(take(&client.mutex("before").ttl(Duration::from_secs(1))));
        all_vote(client)
    };
    assert_soon!(met(), "{:?}", client.nodes());
}

#[test]
fn a_single_node_is_unavailable_until_all_that_it_may_have_forgotten_has_ended() {
    let mut server = [Server::start().unwrap()];
    let client = brief(&server).build().unwrap();
    let mutex = longest(&client);
    drop(take(&mutex));
    server[0].restart().unwrap();
    let restarted = Instant::now();
    let expected = (server[0].address(), Phase::Reply, Cause::Quarantined);
    let error = failure(&mutex);
    assert_eq!(
        (error.kind(), causes(&error)),
        (ErrorKind::Unavailable, vec![expected])
    );
    for word in [
        "1 of 1 nodes failed, 1 must answer",
        "may have forgotten locks, does not vote for another ",
        "max_ttl (4 s)",
        "durable",
    ] {
        shows(&error, word);
    }
    // It was asked, not only for its note, and its key was released again.
    assert!(calls(&server[0], "set") > 1);
    gone_for_good(&server, KEY);
    assert_soon!(can_take(&mutex));
    assert!(
        restarted.elapsed() >= MAX_TTL,
        "too soon: {:?}",
        restarted.elapsed()
    );
    assert!(
        restarted.elapsed() < MAX_TTL + SOON / 2,
        "too late: {:?}",
        restarted.elapsed()
    );
    // A second restart counts like the first.
    server[0].restart().unwrap();
    assert_eq!(cause(&mutex), Cause::Quarantined);
}

#[test]
fn a_durable_node_counts_at_once_and_has_its_keys() {
    let mut server = [durable().start().unwrap()];
    let build = |node: String| Redlock::builder().node(node).node_timeout(SOON / 10);
    let client = build(server[0].url()).durable(true).build().unwrap();
    let theirs = build(format!("{}?durable=true", server[0].url()))
        .build()
        .unwrap();
    assert!(first_node(&client).is_durable() && first_node(&theirs).is_durable());
    acquaint(&theirs);
    let guard = take(&client.mutex(KEY));
    server[0].restart().unwrap();
    assert_soon!(
        matches!(theirs.mutex(KEY).try_lock(), Ok(None)),
        "it is still held"
    );
    assert_soon!(guard.extend(MAX_TTL).unwrap() == ExtendOutcome::Extended);
    unlock(guard);
    unlock(take(&theirs.mutex(KEY)));
}

/// While a server loads its append-only file, its `INFO` contains `aof_enabled:0`.
#[test]
fn a_durable_node_that_is_met_while_it_loads_its_data_is_durable() {
    skip_unless!(has_slow_loading());
    let slowly = durable().arguments(&["--key-load-delay", "300"]);
    let mut server = slowly.start().unwrap();
    let fill = "for i = 1, 4000 do redis.call('SET', 'filler:' .. i, i) end";
    server.command(&["EVAL", fill, "0"]).unwrap();
    let client = client_at([server.url()], |builder| {
        builder.durable(true).node_timeout(SOON)
    });
    acquaint(&client);
    let mut was_loading = false;
    thread::scope(|scope| {
        let restart = scope.spawn(|| server.restart().unwrap());
        while !restart.is_finished() {
            let failed = client.mutex(KEY).try_lock().err();
            was_loading |= failed
                .is_some_and(|error| causes(&error).iter().any(|cause| cause.2 == Cause::Loading));
            assert!(first_node(&client).is_durable());
        }
    });
    assert!(was_loading, "no attempt has met the node while it loads");
    assert_soon!(
        matches!(client.mutex(KEY).try_lock(), Ok(Some(_))),
        "it counts at once"
    );
}

/// A declaration that the server itself contradicts does not count: not in this process of it, nor
/// in the next.
#[test]
fn a_node_declared_durable_that_appends_nothing_to_disk_is_not() {
    for (parameter, are_durable) in [("", true), ("?durable=true", false)] {
        let mut servers = Server::several(3).unwrap();
        let urls = servers
            .iter()
            .map(|server| format!("{}{parameter}", server.url()));
        let client = brief([]).nodes(urls).durable(are_durable).build().unwrap();
        acquaint(&client);
        assert!(all_nodes(&client, |node| !node.is_durable()));
        for server in &mut servers {
            server.restart().unwrap();
        }
        assert!(
            causes(&failure(&longest(&client)))
                .iter()
                .all(|cause| cause.2 == Cause::Quarantined)
        );
    }
}

#[test]
fn a_node_that_turns_out_to_be_a_replica_is_sent_away_and_does_not_count_when_it_is_a_master_again()
{
    let master = Server::start().unwrap();
    let node = [Server::start().unwrap()];
    let client = brief(&node).build().unwrap();
    let mutex = longest(&client);
    let held = take(&mutex);
    // It keeps its connections and its run id, and loses its keys.
    let run_id = node[0].info("run_id").unwrap();
    follow(&node[0], &master);
    assert_soon!(is_synchronised(&node[0]));
    let refused = failure(&client.mutex("other").ttl(MAX_TTL));
    // It refuses to write, or was asked first what it is, as after a second of silence.
    let refusal = causes(&refused)[0].2;
    assert!(
        matches!(refusal, Cause::NotMaster | Cause::ReadOnly),
        "{refused}"
    );
    assert_eq!(first_node(&client).state(), NodeState::Rejected(refusal));
    promote(&node[0]);
    assert_eq!(node[0].command(&["GET", KEY]).unwrap(), Answer::Nil);
    let promoted = Instant::now();
    let is_quarantined = || cause(&client.mutex("other").ttl(MAX_TTL)) == Cause::Quarantined;
    assert_soon!(is_quarantined());
    assert_eq!(node[0].info("run_id").unwrap(), run_id);
    drop(held);
    assert_soon!(can_take(&mutex));
    assert!(promoted.elapsed() >= MAX_TTL);
}
