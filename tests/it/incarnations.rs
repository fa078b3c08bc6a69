//! What nodes remember of themselves protects every program, also one that has just started.
//!
//! Each client here is a *fresh program*: it has met no node before.

use crate::prelude::*;

/// Long enough to be restarted in, and short enough to be waited for.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(4);
/// After this, a node that is empty has lost its keys, and is no part of a new deployment.
pub(crate) const NO_LONGER_NEW: Duration = Duration::from_millis(1100);

/// The settings of a client of these servers, under which quarantines end within a test.
pub(crate) fn brief<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Builder {
    builder(servers).ttl(MAX_TTL).max_ttl(MAX_TTL)
}

fn fresh<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Redlock {
    brief(servers).build().unwrap()
}

fn hold<'s>(servers: impl IntoIterator<Item = &'s Server>) -> MutexGuard {
    take(&fresh(servers).mutex("held"))
}

/// Servers of a deployment that is not new.
fn known(count: usize) -> Vec<Server> {
    let servers = Server::several(count).unwrap();
    drop(hold(&servers));
    thread::sleep(NO_LONGER_NEW);
    servers
}

/// What a node remembers, word by word; none if nothing.
fn note(server: &Server) -> Vec<String> {
    value(server, "quorumlock-node:").map_or(Vec::new(), |note| {
        note.split(' ').map(str::to_owned).collect()
    })
}

/// Until the lock ends, no other program gets it. Returns how many have tried.
#[track_caller]
pub(crate) fn excludes(held: &MutexGuard, fresh: impl Fn() -> Redlock) -> usize {
    let mut tries = 0;
    while held.remaining() > Duration::from_millis(50) {
        let attempt = fresh().mutex("held").try_lock();
        assert!(
            !matches!(attempt, Ok(Some(_))),
            "two at once: {attempt:?} and {held:?}"
        );
        tries += 1;
        thread::sleep(Duration::from_millis(20));
    }
    tries
}

/// Another program does not get the lock while the first one holds it, and gets it when nodes have
/// waited.
#[track_caller]
fn no_two_hold<'s>(held: &MutexGuard, servers: impl IntoIterator<Item = &'s Server> + Clone) {
    let tries = excludes(held, || fresh(servers.clone()));
    assert!(tries > 1, "{tries} tries");
    let free = || can_take(&fresh(servers.clone()).mutex("held"));
    assert_soon!(free(), "it is never free again");
}

#[test]
fn a_node_that_comes_back_empty_does_not_help_a_fresh_program_to_a_lock_that_is_held() {
    let mut servers = known(3);
    servers[2].kill();
    let held = hold(&servers);
    servers[1].restart().unwrap();
    servers[2].restart().unwrap();
    no_two_hold(&held, &servers);
}

#[test]
fn flushed_nodes_do_not_help_a_fresh_program_to_a_lock_that_is_held() {
    let servers = known(3);
    let held = hold(&servers);
    ask_each(&servers[..2], &["FLUSHALL"]);
    no_two_hold(&held, &servers);
}

/// One managed endpoint: the node has the address of the promoted replica from then on.
#[test]
fn a_replica_that_lags_and_is_promoted_gives_nothing_away() {
    let mut servers = known(1);
    let replica = Server::with(&["--repl-diskless-sync-delay", "0"]).unwrap();
    follow(&replica, &servers[0]);
    assert_soon!(note(&replica) == note(&servers[0]));
    // It learns nothing more.
    promote(&replica);
    let held = hold(&servers);
    servers[0].kill();
    assert!(value(&replica, "held").is_none(), "it lags");
    no_two_hold(&held, [&replica]);
}

#[test]
fn a_flush_of_all_nodes_costs_no_wait() {
    let servers = known(3);
    let met = fresh(&servers);
    let earlier = note(&servers[0]);
    drop(take(&met.mutex("held")));
    thread::sleep(NO_LONGER_NEW);
    ask_each(&servers, &["FLUSHALL"]);
    drop(take(&met.mutex("held")));
    drop(hold(&servers));
    assert!(note(&servers[0])[1] == "f" && note(&servers[0]) != earlier);
}

/// Both change the name of the history, and neither loses a key.
#[test]
fn neither_a_first_replica_nor_a_backup_refuses_a_lock() {
    let servers = known(3);
    let replicas = Server::several(3).unwrap();
    let earlier: Vec<_> = servers.each(|server| server.info("master_replid").unwrap());
    for (server, replica) in servers.iter().zip(&replicas) {
        follow(replica, server);
        assert_soon!(note(replica) == note(server));
    }
    assert!(
        servers
            .iter()
            .zip(earlier)
            .any(|(server, earlier)| server.info("master_replid").unwrap() != earlier)
    );
    drop(hold(&servers));
    assert!(servers.all(|server| note(server)[1] == "f"));
}

/// Such a program is protected by what it has met itself.
#[test]
fn a_user_without_the_right_locks_all_the_same() {
    skip_unless!(has_users());
    let servers = known(3);
    let rights = "~held ~quorumlock-queue:* resetchannels &quorumlock:* +@all";
    let urls = servers.each(|server| user(server, rights));
    let client = client_at(urls, |builder| builder.ttl(MAX_TTL).max_ttl(MAX_TTL));
    drop(take(&client.mutex("held")));
}

#[test]
fn servers_without_scripts_lock_all_the_same() {
    let plan = Server::plan().without(&["EVAL", "EVALSHA"]);
    let bare = plan.several(3).unwrap();
    drop(hold(&bare));
    assert!(bare.all(|server| note(server).is_empty()));
}

/// A fresh program on a known deployment asks for nothing more than its lock; on a new one, each
/// node is noted once.
#[test]
fn a_known_deployment_costs_no_further_command() {
    let servers = Server::several(3).unwrap();
    for programs in 1..=3 {
        drop(take(&fresh(&servers).mutex(format!("job {programs}"))));
        // Each of them sets a key and releases it by a script, and the first one has each node
        // noted by another.
        let asked = |server: &Server| {
            (
                calls(server, "set"),
                calls(server, "eval"),
                calls(server, "evalsha"),
            )
        };
        let expected = (programs + 1, programs + 1, 0);
        let have_asked = || servers.all(|server| asked(server) == expected);
        assert_soon!(have_asked(), "{:?}", servers.each(asked));
        assert!(
            servers.all(|server| matches!(server.command(&["DBSIZE"]), Ok(Answer::Number(1..=2))))
        );
    }
}
