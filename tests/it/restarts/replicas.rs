//! Masters that were replicas between two attempts: their keys were replaced by another master's,
//! and neither their process nor their connections show it. On every server at hand;
//! `QUORUMLOCK_SERVERS` names further ones.

use super::*;
use std::thread::sleep;

/// Longer than a server takes to copy another one's data.
const MAX_TTL: Duration = Duration::from_secs(20);
/// Longer than a connection goes without another look at its server.
const IDLE: Duration = Duration::from_millis(1100);

/// Two servers of each kind at hand.
fn pairs() -> impl Iterator<Item = [Server; 2]> {
    pairs_with(&[])
}

/// [`pairs`], with further arguments.
fn pairs_with(arguments: &'static [&'static str]) -> impl Iterator<Item = [Server; 2]> {
    let start = move |binary| {
        let arguments = [&["--repl-diskless-sync-delay", "0"], arguments].concat();
        let plan = Server::plan().binary(binary).arguments(&arguments);
        [0; 2].map(|_| plan.clone().start().unwrap())
    };
    binaries().unwrap().into_iter().map(start)
}

/// The settings of a client of this server.
fn brief(server: &Server) -> Builder {
    builder([server]).max_ttl(MAX_TTL)
}

/// Makes a server follow another one until it has its data.
#[track_caller]
fn follow(server: &Server, master: &Server) {
    shard::follow(server, master);
    assert_soon!(is_synchronised(server), "{}", server.log());
}

/// Makes it a replica of the other one, and a master again: its keys are gone.
#[track_caller]
fn lose_keys(server: &Server, other: &Server) {
    follow(server, other);
    promote(server);
    assert_eq!(value(server, KEY), None);
}

/// Does everything to a server that changes its replication ids, or might, and takes no key away.
fn stir(server: &Server, other: &Server) {
    follow(other, server);
    promote(other);
    ok(server, &["CONFIG", "SET", "repl-backlog-ttl", "1"]);
    let is_freed = || server.info("repl_backlog_active").unwrap() == "0";
    assert_soon!(is_freed(), "its backlog is not freed");
    follow(other, server);
    promote(other);
}

#[test]
fn a_master_that_was_a_replica_between_two_attempts_gives_no_lock_away_on_the_same_connection() {
    for [server, other] in pairs() {
        let theirs = brief(&server).build().unwrap();
        acquaint(&theirs);
        let held = take(&brief(&server).build().unwrap().mutex(KEY).ttl(MAX_TTL));
        lose_keys(&server, &other);
        sleep(IDLE);
        let name = shown(&server);
        let before = connections(&server);
        let attempt = theirs.mutex(KEY).ttl(MAX_TTL).try_lock();
        assert!(!held.remaining().is_zero(), "too slow");
        let error = attempt.expect_err(&format!("two at once on {name}"));
        assert_eq!(causes(&error)[0].2, Cause::Quarantined, "{name}");
        // One connection asks for this number.
        assert_eq!(connections(&server), before + 1, "it connected again");
        assert!(matches!(
            first_node(&theirs).state(),
            NodeState::Quarantined { .. }
        ));
    }
}

#[test]
fn a_master_that_stays_one_counts_whatever_becomes_of_its_replication_ids() {
    for [server, other] in pairs() {
        let client = brief(&server).build().unwrap();
        acquaint(&client);
        let id = server.info("master_replid").unwrap();
        let guard = take(&client.mutex(KEY).ttl(MAX_TTL * 3 / 4));
        stir(&server, &other);
        assert_ne!(
            server.info("master_replid").unwrap(),
            id,
            "nothing was shown of {}",
            shown(&server)
        );
        sleep(IDLE);
        drop(take(&client.mutex("other").ttl(MAX_TTL)));
        ok(&server, &["FLUSHALL"]);
        server.command(&["DEBUG", "RELOAD"]).unwrap();
        ask(&server, &["CLIENT", "KILL", "TYPE", "normal"]);
        let before = connections(&server);
        let is_taken = || can_take(&client.mutex("other").ttl(MAX_TTL));
        assert!(
            eventually(SOON, is_taken) && connections(&server) > before + 1,
            "it did not connect again"
        );
        sleep(IDLE);
        drop(take(&client.mutex("other").ttl(MAX_TTL)));
        // The key was flushed: that is a loss, and no quarantine.
        assert!(matches!(
            guard.extend(MAX_TTL).unwrap(),
            ExtendOutcome::Lost | ExtendOutcome::Failed(_)
        ));
        assert_eq!(
            first_node(&client).state(),
            NodeState::Voting,
            "{}",
            shown(&server)
        );
    }
}

#[test]
fn a_durable_node_that_has_loaded_its_former_id_counts_and_so_does_every_node_without_the_guard() {
    let durable: fn(&Server) -> Builder = |server| {
        let url = format!("{}?durable=true", server.url());
        Redlock::builder().node(url).max_ttl(MAX_TTL)
    };
    let off: fn(&Server) -> Builder = |server| brief(server).restart_policy(RestartPolicy::Off);
    // What is declared durable must append its writes.
    let durable =
        pairs_with(&["--appendonly", "yes", "--appendfsync", "always"]).map(|pair| (pair, durable));
    for ([mut server, other], builder) in durable.chain(pairs().map(|pair| (pair, off))) {
        let client = builder(&server).build().unwrap();
        acquaint(&client);
        follow(&other, &server);
        assert_soon!(server.command(&["SAVE"]).unwrap() == Answer::Text("OK".into()));
        server.restart().unwrap();
        let is_taken = || can_take(&client.mutex(KEY).ttl(MAX_TTL));
        assert_soon!(is_taken(), "{}", shown(&server));
        assert_eq!(
            first_node(&client).state(),
            NodeState::Voting,
            "{}",
            shown(&server)
        );
    }
}
