//! The user of the manual, with a right to some keys alone: what `doctor`, `nodes` and `ls` find
//! with it.

use super::deployment::{Deployment, Ended, run};
use crate::clients::{ask, ok};
use crate::support::capable::has_users;
use crate::support::server::Server;
use std::fs;
use std::path::Path;
use std::thread;

/// How many servers are asked at once.
const THREADS: usize = 4;

/// The words of the rule in the manual for locks of all kinds of `orders/…`, behind the user's
/// name.
fn rule() -> Vec<String> {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/operations.md"))
            .unwrap();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("ACL SETUSER locks "))
        .expect("a rule")
        .to_owned();
    assert!(
        line.contains(
            " ~orders/* ~quorumlock-*:orders/* ~quorumlock-node: resetchannels &quorumlock:* "
        ),
        "{line}"
    );
    line.split(' ').map(str::to_owned).collect()
}

/// Servers with that user.
struct Users(Deployment);

impl Users {
    /// Grants that user these rights too, and takes this word of the rule away.
    fn with(&self, more: &[&str], lacking: &str) {
        let words: Vec<String> = rule().into_iter().filter(|word| word != lacking).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let set = [
            &["ACL", "SETUSER", "locks", "reset"],
            words.as_slice(),
            more,
        ]
        .concat();
        let set = |server: &Server| ok(server, &set);
        self.0.servers.iter().for_each(set);
    }

    fn asks(&self, words: &[&str]) -> Ended {
        let mut tool = self.0.tool(words);
        tool.env("QUORUMLOCK_UNAVAILABLE_AFTER", "100ms");
        tool.env(
            "QUORUMLOCK_NODES",
            self.0.urls().replace("redis://", "redis://locks:password@"),
        );
        run(tool)
    }
}

#[test]
fn doctor_finds_the_user_of_the_manual_fine() {
    if !has_users() {
        return;
    }
    let users = Users(Deployment::of(1));
    users.with(&[], "");
    let fine = users.asks(&["doctor", "--names", "orders/"]);
    assert_eq!(fine.code, Some(0), "{}", fine.all());
    // Its keys are not known: they are asked for, and not guessed.
    let unknown = users.asks(&["doctor"]);
    let is_asked =
        unknown.out.contains("fault: names: ") && unknown.out.contains("by --names or --prefix");
    assert!(
        unknown.code == Some(2) && is_asked && !unknown.out.contains("ACL SETUSER"),
        "{}",
        unknown.all()
    );
    // A user that may read its own patterns need not name them.
    users.with(&["+acl"], "");
    let own = users.asks(&["doctor"]);
    assert_eq!((own.code, users.0.keys()), (Some(0), 0), "{}", own.all());
}

#[test]
fn doctor_advises_the_right_that_is_missing_and_no_more_than_the_manual() {
    if !has_users() {
        return;
    }
    let rule = rule();
    let rights: Vec<&String> = rule
        .iter()
        .filter(|word| word.starts_with(['~', '&', '+']))
        // Only a node in cluster mode is asked for it (`hazards`).
        .filter(|word| *word != "+cluster|info")
        .collect();
    let advises = |users: &Users, lacking: &String| {
        users.with(&[], lacking);
        let found = users.asks(&["doctor", "--names", "orders/"]);
        let lines = found
            .out
            .split("ACL SETUSER locks ")
            .skip(1)
            .filter_map(|rest| rest.lines().next());
        let advised: Vec<String> = lines
            .flat_map(|line| line.split(' '))
            .map(str::to_owned)
            .collect();
        assert!(
            advised.iter().all(|word| rule.contains(word)),
            "{lacking}: {}",
            found.all()
        );
        assert!(
            found.code != Some(0) && advised.contains(lacking),
            "{lacking}: {}",
            found.all()
        );
    };
    // A lock that cannot be released is waited for: each thread has a server of its own.
    thread::scope(|scope| {
        for part in 0..THREADS {
            let rights = &rights;
            let advises = &advises;
            scope.spawn(move || {
                let users = Users(Deployment::of(1));
                rights
                    .iter()
                    .skip(part)
                    .step_by(THREADS)
                    .for_each(|lacking| advises(&users, lacking));
            });
        }
    });
}

#[test]
fn doctor_says_what_it_does_not_see_without_info() {
    if !has_users() {
        return;
    }
    let users = Users(Deployment::of(1));
    users.with(&[], "+info");
    let found = users.asks(&["doctor", "--names", "orders/", "--durable"]);
    let is_said = found
        .out
        .contains("warning: no-info: the user may not run INFO: version, role, persistence");
    assert!(found.code == Some(1) && is_said, "{}", found.all());
    for invented in ["Redis", "appends nothing", "up for", "not-durable"] {
        assert!(!found.out.contains(invented), "{invented}: {}", found.all());
    }
}

#[test]
fn ls_and_scan_need_scan_and_leave_out_the_keys_of_others() {
    if !has_users() {
        return;
    }
    let users = Users(Deployment::of(3));
    for server in &users.0.servers {
        ask(server, &["SET", "orders/1", &"1".repeat(40), "PX", "50000"]);
        ask(server, &["SET", "secret", "of another program"]);
    }
    users.with(&[], "");
    for words in [["ls"], ["scan"]] {
        let refused = users.asks(&words);
        assert!(
            refused.code == Some(69) && refused.err.contains("SCAN: permission denied"),
            "{}",
            refused.all()
        );
    }
    users.with(&["+scan"], "");
    let listed = users.asks(&["ls"]);
    let is_listed = listed.out.lines().count() == 2 && listed.out.contains("orders/1  held");
    assert!(
        listed.code == Some(0) && is_listed && listed.err.is_empty(),
        "{}",
        listed.all()
    );
    let scanned = users.asks(&["scan"]);
    assert_eq!((scanned.code, scanned.all().as_str()), (Some(0), ""));
    assert_eq!(users.asks(&["show", "orders/1"]).code, Some(0));
    assert_eq!(users.asks(&["break", "orders/1", "--yes"]).code, Some(0));
    // A lock is not called free because it must not be read.
    let hidden = users.asks(&["show", "secret"]);
    assert!(
        hidden.code == Some(69) && hidden.out.contains("unknown"),
        "{}",
        hidden.all()
    );
}

#[test]
fn a_probe_tries_a_lock_of_a_name_that_the_user_has_a_right_to() {
    if !has_users() {
        return;
    }
    let users = Users(Deployment::of(3));
    users.with(&[], "");
    assert_eq!(users.asks(&["nodes", "--names", "orders/"]).code, Some(0));
    assert_eq!(users.asks(&["nodes", "--prefix", "orders/"]).code, Some(0));
    let refused = users.asks(&["nodes"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("by --names or --prefix"),
        "{}",
        refused.all()
    );
    users.with(&[], "+set");
    let refused = users.asks(&["nodes", "--names", "orders/"]);
    assert!(
        refused.code == Some(2) && refused.out.matches("may not run SET").count() == 3,
        "{}",
        refused.all()
    );
}
