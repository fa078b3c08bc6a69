//! The tests about nodes that hang, die, come late, break and come back, over TLS: with the same
//! results.
//!
//! They run in a process where all servers that they start listen by TLS, and where the system's
//! root is the one that has issued their certificates. So the tests are what they are without TLS,
//! and so are their clients. The proxies are in front of the servers, and stall, cut, trickle and
//! reset records.

use super::*;

/// Which further tests run, by the beginnings of their names; all if it is empty.
const TESTS_VARIABLE: &str = "QUORUMLOCK_TLS_TESTS";

/// What cannot be the same over TLS, and why.
const LEFT_OUT: [&str; 30] = [
    // They speak to a server, or write its URL, without TLS.
    "addresses::",
    "connecting::nodes_that_will_never_vote",
    "embedded_vs_real::",
    "fencing::scripts::nodes_without_scripts",
    "forms::a_user_that",
    "forms::a_user_without",
    "harness::",
    "labels::holders::taking_a_lock",
    "messages::",
    "observing::",
    "permanent_errors::permanent_faults_on_a_majority",
    "readme::",
    "reconnect::a_client_that_is_built_before",
    "restarts::node_status::nodes_are_shown_as_they_are",
    "script_errors::",
    "waking::losses::a_user_that",
    // They start programs of other languages, or processes that start servers.
    "capi::",
    "cli::",
    "nemesis::",
    // TLS costs more than it may.
    "budget::",
    // They need no server.
    "fuzz_bodies::",
    "tidy::",
    "tls::",
    // The server has a Unix socket of its own choice.
    "client_exit::many_guards_that_are_dropped_in_a_row",
    // A time to live of 60 ms is shorter than a handshake takes without optimization.
    "loss_callbacks::a_callback_may_use_the_client",
    // The connection is refused before TLS begins, and so without a word.
    "faults::a_server_with_too_many_clients",
    // All nodes are expected to be connected when a quorum has answered. A handshake by TLS takes
    // longer, and one that is not needed goes on with the next call.
    "node_figures::faults_are_counted",
    "reentrant::a_lock_that_the_nodes_lost",
    "reentrant::a_thousand_levels",
    "watchdog::the_thread_is_started",
];

/// Runs these tests in a process of servers with TLS: four at once, because they sleep for most of
/// their time.
fn over_tls(tests: &[&str]) {
    run(tests, "4", |_| true);
}

/// The same with tests of programs in C, whose library has TLS as well.
pub(super) fn over_tls_in_c(tests: &[&str]) {
    run(tests, "1", |test| test != "capi::");
}

fn run(tests: &[&str], threads: &str, is_left_out: fn(&str) -> bool) {
    let authority = Authority::new();
    authority.issue("node", Particulars::named("IP:127.0.0.1,DNS:localhost"));
    let binary = std::env::current_exe().expect("the path of this test binary");
    let list = succeeds(Command::new(&binary).arg("--list"));
    for name in tests.iter().chain(&LEFT_OUT) {
        // A module of the feature.
        let is_off = *name == "cli::" && cfg!(not(feature = "cli"));
        assert!(is_off || list.contains(name), "no test is called {name}");
    }
    let mut command = Command::new(binary);
    command.args(tests).args(["--test-threads", threads]);
    let left_out = LEFT_OUT.iter().filter(|test| is_left_out(test));
    command.args(left_out.flat_map(|test| ["--skip", test]));
    command
        .env(TLS_VARIABLE, authority.directory())
        .env("SSL_CERT_FILE", authority.path("ca.crt"));
    let text = succeeds(&mut command);
    assert!(
        !text.contains(" 0 passed"),
        "no test is left of {tests:?}\n{text}"
    );
}

#[test]
fn hung_killed_and_late_ones() {
    skip_unless!(has_tls());
    over_tls(&[
        "hung_nodes::",
        "late_replies::",
        "late_sets::",
        "recovery::",
        "watchdog::restarts::a_node_that_comes_back_empty",
        "reconnect::connections_that_were_closed",
    ]);
}

#[test]
fn servers_of_a_shard_that_name_their_master() {
    skip_unless!(has_tls());
    over_tls(&[
        "clusters::a_url_of_a_replica",
        "clusters::a_new_master_counts",
        "clusters::a_lock_of_each_kind",
    ]);
}

#[test]
fn connections_that_break_stall_and_overflow() {
    skip_unless!(has_tls());
    over_tls(&[
        "backlog::",
        "cancelling::",
        "client_exit::guards_that_are_dropped",
        "pending_releases::",
        "poll_failures::",
    ]);
}

#[test]
fn children_of_fork() {
    skip_unless!(has_tls());
    over_tls(&["forking::", "descriptors::"]);
}

#[test]
fn further_ones() {
    skip_unless!(has_tls());
    let tests = std::env::var(TESTS_VARIABLE);
    let tests = tests
        .as_deref()
        .unwrap_or("faults::the_right faults::a_database");
    over_tls(&tests.split_whitespace().collect::<Vec<_>>());
}
