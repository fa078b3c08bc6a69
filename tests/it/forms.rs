//! The forms of a release, on every server at hand: the script by its text and by its hash, and
//! what becomes of a lock where scripts are not allowed.
//!
//! `QUORUMLOCK_SERVERS` names further servers, separated by colons.

use crate::prelude::*;

#[track_caller]
fn works(client: &Redlock, server: &Server, pairs: u64) {
    for _ in 0..pairs {
        let guard = take(&long_lock(client, "k"));
        assert!(is_held(&client.mutex("k")));
        unlock(guard);
    }
    gone_for_good([server], "k");
}

/// By its text once, and by its hash from then on. The note of a new node is one script more.
#[test]
fn every_server_is_released_by_the_script() {
    for server in servers() {
        works(&client([&server]), &server, 5);
        let used = ["eval", "evalsha"].map(|command| calls(&server, command));
        assert_eq!(used, [1 + 1, 5 - 1], "{}", shown(&server));
    }
}

#[test]
fn servers_call_the_scripts_what_we_call_them() {
    for server in servers() {
        for script in [
            kinds::fenced::SCRIPT,
            kinds::permit::SCRIPT,
            kinds::plain::SCRIPT,
            kinds::read_write::SCRIPT,
        ] {
            let loaded = server.command(&["SCRIPT", "LOAD", script.text]).unwrap();
            assert_eq!(loaded, Answer::Text(script.sha1.to_owned()));
        }
    }
}

#[test]
fn a_server_that_forgets_its_scripts_gets_them_again_within_the_same_call() {
    for server in servers() {
        let mutex = long_lock(&client([&server]), "k");
        for _ in 0..5 {
            let guard = take(&mutex);
            server.command(&["SCRIPT", "FLUSH"]).unwrap();
            unlock(guard);
            unlock(take(&mutex));
        }
        gone_for_good([&server], "k");
        // By text the first one, the three whose hash was not known any more, and all after that,
        // and the note of the node; by hash three that were known, and those three.
        let sent = ["eval", "evalsha"].map(|command| calls(&server, command));
        assert_eq!(sent, [7 + 1, 6]);
    }
}

#[test]
fn a_user_without_evalsha_releases_by_the_text_of_the_script() {
    for server in with_users(servers()) {
        let url = user(&server, "~* +@all -evalsha");
        works(&client_of([url]), &server, 6);
        // And the note of the node.
        assert_eq!(calls(&server, "eval"), 6 + 1);
    }
}

#[test]
fn different_servers_make_one_quorum() {
    let servers = servers();
    let mutex = long_lock(&client(&servers), "k");
    for _ in 0..10 {
        unlock(take(&mutex));
    }
    gone_for_good(&servers, "k");
}

#[test]
fn a_user_that_may_not_run_scripts_takes_a_lock_and_is_told_that_it_cannot_release_it() {
    for server in with_users(servers()) {
        let url = user(&server, "~* +set +info");
        let guard = take(&long_lock(&client_of([url]), "k"));
        let error = guard.unlock().unwrap_err();
        has_cause(&error, &server.address(), Phase::Reply, Cause::NoScripts);
    }
    for server in servers_with(&["--rename-command", "EVAL", ""]) {
        let error = take(&long_lock(&client([&server]), "k"))
            .unlock()
            .unwrap_err();
        has_cause(&error, &server.address(), Phase::Reply, Cause::NoScripts);
    }
}
