//! What the library does when a server refuses a command inside one of its scripts, on every server
//! at hand.
//!
//! Servers put these errors in different words; `src/protocol/error_texts.txt` has those of eight
//! versions. Here the causes are real, and what counts is what comes of them. `QUORUMLOCK_SERVERS`
//! names further servers, separated by colons.

use crate::prelude::*;

const KEY: &str = "k";
/// Longer than a test lasts.
const TTL: Duration = Duration::from_secs(50);

fn mutex(client: &Redlock) -> Mutex {
    client.mutex(KEY).ttl(TTL)
}

/// Whether the server knows a command.
fn knows(server: &Server, words: &[&str]) -> bool {
    !matches!(server.command(words).unwrap(), Answer::Error(_))
}

/// The cause at the one node for which an extension was not won, or that it was.
#[track_caller]
fn extend(guard: &mut MutexGuard) -> Option<Cause> {
    match guard.extend(TTL).unwrap() {
        ExtendOutcome::Extended => None,
        ExtendOutcome::Failed(faults) => Some(faults[0].cause()),
        lost => panic!("{lost:?}"),
    }
}

/// Logs in as a user with all rights but one. None where there are no rights by user.
fn without(server: &Server, command: &str) -> Option<Redlock> {
    let has_rights = knows(server, &["ACL", "WHOAMI"]);
    let rights = format!("~* +@all -{command}");
    has_rights.then(|| client_of([user(server, &rights)]))
}

#[test]
fn an_extension_whose_script_is_denied_a_command_says_so() {
    for server in servers_with(&[]) {
        for command in ["pexpire", "get"] {
            let Some(client) = without(&server, command) else {
                continue;
            };
            let mut guard = take(&mutex(&client));
            assert_eq!(
                extend(&mut guard),
                Some(Cause::NoPermission),
                "{} without {command}",
                shown(&server)
            );
            ok(&server, &["ACL", "SETUSER", "locker", "+@all"]);
            unlock(guard);
        }
    }
}

#[test]
fn a_release_whose_script_is_denied_a_command_says_so() {
    for server in servers_with(&[]) {
        let Some(client) = without(&server, "del") else {
            continue;
        };
        let guard = take(&mutex(&client));
        let error = guard.unlock().unwrap_err();
        let denied = (server.address(), Phase::Reply, Cause::NoPermission);
        assert_eq!(causes(&error), [denied], "{}", shown(&server));
    }
}

#[test]
fn an_extension_whose_script_does_not_find_a_command_is_a_fault() {
    for server in servers_with(&["--rename-command", "PEXPIRE", ""]) {
        let mut guard = take(&mutex(&client([&server])));
        assert_eq!(
            extend(&mut guard),
            Some(Cause::Server(ServerError::Err)),
            "{}",
            shown(&server)
        );
        unlock(guard);
    }
}

#[test]
fn a_list_under_the_key_is_not_our_token() {
    for server in servers_with(&[]) {
        let guard = take(&mutex(&client([&server])));
        server.command(&["DEL", KEY]).unwrap();
        server.command(&["LPUSH", KEY, "x"]).unwrap();
        assert_eq!(
            guard.unlock().unwrap(),
            ReleaseOutcome::Expired,
            "{}",
            shown(&server)
        );
        assert_eq!(server.command(&["LLEN", KEY]).unwrap(), Answer::Number(1));
    }
}

#[test]
fn a_node_that_shows_in_a_script_that_it_became_a_replica_is_sent_away_and_in_quarantine_afterwards()
 {
    let max_ttl = Duration::from_secs(3);
    for server in servers_with(&[]) {
        let client = client_with([&server], |builder| builder.ttl(max_ttl).max_ttl(max_ttl));
        let guard = take(&client.mutex(KEY).ttl(max_ttl));
        // A replica of a master that is not there: the key stays.
        ok(&server, &["REPLICAOF", "127.0.0.1", "1"]);
        let ExtendOutcome::Failed(faults) = guard.extend(max_ttl).unwrap() else {
            panic!("{}", shown(&server))
        };
        assert_eq!(faults[0].cause(), Cause::ReadOnly, "{}", shown(&server));
        assert_eq!(
            first_node(&client).state(),
            NodeState::Rejected(Cause::ReadOnly),
            "{}",
            shown(&server)
        );
        promote(&server);
        let other = client.mutex("other").ttl(max_ttl);
        let is_quarantined = || cause(&other) == Cause::Quarantined;
        assert_soon!(is_quarantined(), "{}", shown(&server));
    }
}

#[test]
fn what_a_script_is_refused_for_has_its_name() {
    for server in servers_with(&[]) {
        let client = client([&server]);
        let at_release = |guard: MutexGuard<Any>| causes(&guard.unlock().unwrap_err())[0].2;
        let mut plain = take(&mutex(&client));
        let fenced = take(&mutex(&client).fenced());
        ok(&server, &["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(
            cause(&client.mutex("full").ttl(TTL).fenced()),
            Cause::OutOfMemory
        );
        assert_eq!(
            extend(&mut plain),
            None,
            "memory is no reason to lose a lock"
        );
        ok(&server, &["CONFIG", "SET", "maxmemory", "0"]);
        // Before 6.2, a server counts its replicas only for a command of a client, not of a script.
        let version = server.info("redis_version").unwrap();
        if version.starts_with("5.") || version.starts_with("6.0.") {
            continue;
        }
        ok(&server, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let too_few = Cause::Server(ServerError::NoReplicas);
        assert_eq!(extend(&mut plain), Some(too_few), "{}", shown(&server));
        assert_eq!(
            [plain.erase(), fenced.erase()].map(at_release),
            [too_few; 2],
            "{}",
            shown(&server)
        );
        ok(&server, &["CONFIG", "SET", "min-replicas-to-write", "0"]);
    }
}
