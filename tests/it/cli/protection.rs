//! Restart protection as `nodes` and `doctor` show it: since when each node votes, why not, and
//! until when; what the deployment guarantees; and what the restart policies mean, as the manual
//! describes them.

use super::deployment::{Deployment, Ended, PATIENT, prints, run};
use crate::clients::{ask, ok};
use crate::incarnations::NO_LONGER_NEW;
use crate::support::capable::has_users;
use crate::support::server::Server;
use std::fs;
use std::path::Path;
use std::thread;

const NOTHING_TOLD: &str =
    "it tells nothing of losses (no right to its key, no INFO or no scripts)";

/// A deployment that a program has used.
fn known(count: usize) -> Deployment {
    let deployment = Deployment::of(count);
    assert_eq!(asks(&deployment, &["nodes"]).code, Some(0));
    thread::sleep(NO_LONGER_NEW);
    deployment
}

fn asks(deployment: &Deployment, words: &[&str]) -> Ended {
    run(deployment.tool(words))
}

/// How often the output contains these words.
#[track_caller]
fn says_times(ended: &Ended, words: &str, times: usize) {
    assert_eq!(
        ended.out.matches(words).count(),
        times,
        "{words}: {}",
        ended.all()
    );
}

/// The values of these numbers, node by node; none of a null.
fn numbers(ended: &Ended, name: &str) -> Vec<Option<u64>> {
    let name = format!("\"{name}\":");
    ended
        .out
        .split(&name)
        .skip(1)
        .map(|rest| rest.split([',', '}']).next().unwrap().parse().ok())
        .collect()
}

#[test]
fn nodes_that_have_lost_nothing_have_counted_since_the_deployment_began() {
    let deployment = known(3);
    let nodes = prints(&deployment, &["nodes"], 0, &[]);
    says_times(&nodes, ", votes counted for ", 3);
    let guarantee =
        "guarantee: one valid holder, if at most 1 of 3 nodes loses its keys within max_ttl\n";
    let doctor = prints(&deployment, &["doctor"], 0, &[guarantee]);
    says_times(&doctor, "\n  votes counted for ", 3);
    says_times(&doctor, "; the deployment began with it ", 3);
    for command in ["nodes", "doctor"] {
        let json = prints(&deployment, &[command, "--json"], 0, &[]);
        says_times(&json, "\"note\":\"founder\"", 3);
        let counted = numbers(&json, "votes_counted_ms");
        let least = NO_LONGER_NEW.as_millis() as u64;
        assert!(
            counted.len() == 3 && counted.iter().all(|time| time.unwrap() >= least),
            "{}",
            json.all()
        );
        assert_eq!(
            (counted, numbers(&json, "quarantine_ms")),
            (numbers(&json, "note_age_ms"), vec![None; 3])
        );
    }
    let guarantee =
        "\"restart_policy\":\"observed: a program that has just started does not count a node";
    let json = prints(&deployment, &["doctor", "--json"], 0, &[guarantee]);
    assert!(
        json.out
            .contains("\"guarantee\":\"one valid holder, if at most 1 of 3 nodes"),
        "{}",
        json.all()
    );
}

#[test]
fn a_node_that_came_back_empty_says_why_it_waits_and_for_how_long() {
    let mut deployment = known(3);
    deployment.servers[1].restart().unwrap();
    let address = deployment.servers[1].address();
    let line = format!("{address}: in quarantine, known for ");
    let nodes = prints(
        &deployment,
        &["nodes"],
        1,
        &[&line, " left, it joined or lost its keys "],
    );
    says_times(&nodes, ", votes counted for ", 2);
    let fault = "fault: quarantine: its votes do not count for another ";
    let fault_line = format!("{address}: does not vote\n");
    let doctor = prints(
        &deployment,
        &["doctor"],
        1,
        &[
            &fault_line,
            fault,
            " s: it joined or lost its keys ",
            "; wait\n",
        ],
    );
    says_times(&doctor, "fault: ", 1);
    let json = prints(
        &deployment,
        &["nodes", "--json"],
        1,
        &["\"note\":\"since\""],
    );
    let waits = numbers(&json, "quarantine_ms");
    let age = numbers(&json, "note_age_ms");
    assert!(
        (59_999..=60_001).contains(&(waits[1].unwrap() + age[1].unwrap())),
        "{}",
        json.all()
    );
    assert_eq!(
        (waits[0], waits[2], numbers(&json, "votes_counted_ms")[1]),
        (None, None, None)
    );
}

#[test]
fn a_node_that_has_waited_has_counted_since_its_wait_has_ended() {
    let deployment = Deployment::of(3);
    let brief = ["--max-ttl", "500ms"];
    let with_brief = |command| [&[command], &brief[..]].concat();
    assert_eq!(asks(&deployment, &with_brief("nodes")).code, Some(0));
    thread::sleep(NO_LONGER_NEW);
    deployment.servers[0].command(&["FLUSHALL"]).unwrap();
    assert_eq!(asks(&deployment, &with_brief("nodes")).code, Some(1));
    thread::sleep(NO_LONGER_NEW);
    let doctor = asks(&deployment, &with_brief("doctor"));
    says_times(&doctor, "; it joined or lost its keys ", 1);
    says_times(&doctor, "  votes counted for ", 3);
    let json = prints(
        &deployment,
        &[&with_brief("doctor")[..], &["--json"]].concat(),
        0,
        &["\"note\":\"since\""],
    );
    let counted = numbers(&json, "votes_counted_ms")[0].unwrap();
    let age = numbers(&json, "note_age_ms")[0].unwrap();
    assert!((499..=501).contains(&(age - counted)), "{}", json.all());
}

#[test]
fn a_node_without_the_right_is_shown_with_what_that_costs() {
    if !has_users() {
        return;
    }
    let deployment = known(3);
    // All keys but the node's own.
    let user = ["ACL", "SETUSER", "default", "resetkeys", "~*[^:]"];
    ok(&deployment.servers[2], &user);
    prints(&deployment, &["nodes"], 0, &[&format!(", {NOTHING_TOLD}")]);
    let address = deployment.servers[2].address();
    let weaker = format!(
        "guarantee: one valid holder, if none of the 2 other nodes loses its keys within max_ttl, and {address} loses \
         none, of which it would tell nothing\n"
    );
    let votes = format!("\n  votes count; {NOTHING_TOLD}\n");
    let advice = "warning: acl: the user lacks rights that restart protection needs: a program that has just started \
                  does not see that the node has lost its keys; ACL SETUSER default ~quorumlock-node:\n";
    prints(&deployment, &["doctor"], 1, &[&weaker, &votes, advice]);
    // The rule that is shown is enough.
    deployment.servers[2]
        .command(&["ACL", "SETUSER", "default", "~quorumlock-node:"])
        .unwrap();
    prints(&deployment, &["doctor"], 0, &["at most 1 of 3 nodes"]);
}

#[test]
fn programs_with_other_settings_are_a_warning_of_each_node() {
    let mut deployment = known(3);
    let longer = prints(
        &deployment,
        &["doctor", "--max-ttl", "2m"],
        1,
        &[", this one has 2 min: all wait for 2 min; set "],
    );
    says_times(
        &longer,
        "warning: max_ttl: another program has noted a max_ttl of 60 s",
        3,
    );
    // It has stored the longer one, so the others have the mismatch now.
    let shorter = prints(
        &deployment,
        &["doctor"],
        1,
        &["as the manual says (raise or lower max_ttl)\n"],
    );
    says_times(
        &shorter,
        "warning: max_ttl: another program has noted a max_ttl of 2 min, this one has 60 s: all",
        3,
    );
    deployment.servers.extend(Server::several(2).unwrap());
    let more = asks(&deployment, &["doctor", "--max-ttl", "2m"]);
    says_times(
        &more,
        "warning: nodes: another program has noted 3 nodes, this one has 5: two may hold a lock",
        3,
    );
    assert!(
        more.out
            .contains(", and all programs have the same nodes\n"),
        "{}",
        more.all()
    );
    let json = asks(&deployment, &["nodes", "--json", "--max-ttl", "2m"]);
    says_times(&json, "\"mismatches\":[\"nodes\"]", 3);
}

#[test]
fn the_guarantee_is_that_of_the_deployment_as_it_is() {
    let single = known(1);
    let lost = "guarantee: one valid holder, if the node does not lose its keys ";
    let restarted = "and is not restarted: it writes nothing to disk\n";
    prints(
        &single,
        &[&["doctor"], &PATIENT[..]].concat(),
        0,
        &[&format!("{lost}within max_ttl, {restarted}")],
    );
    prints(
        &single,
        &["doctor", "--restart-policy", "off"],
        0,
        &[
            &format!("{lost}while a lock is held, {restarted}"),
            "\n  votes count, by restart policy off; the deployment ",
        ],
    );
    let strict = [
        "doctor",
        "--restart-policy",
        "strict",
        "--unavailable-after",
        "100ms",
    ];
    let waits = "fault: quarantine: its votes do not count for another ";
    prints(
        &single,
        &strict,
        2,
        &[
            "guarantee: one valid holder, whatever keys nodes lose\n",
            waits,
        ],
    );
    ask(&single.servers[0], &["CONFIG", "SET", "save", "3600 1"]);
    ask(
        &single.servers[0],
        &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"],
    );
    prints(
        &single,
        &[&["doctor"], &PATIENT[..]].concat(),
        0,
        &[&format!("{lost}within max_ttl\n")],
    );

    let durable = Deployment {
        servers: (0..3)
            .map(|_| Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap())
            .collect(),
    };
    prints(
        &durable,
        &[&["doctor", "--durable"], &PATIENT[..]].concat(),
        0,
        &[
            " keep their keys, as declared\n",
            "\n  votes count, because it is declared durable; the deployment began with it ",
        ],
    );
    let limit = ["CONFIG", "SET", "maxmemory", "100mb"];
    durable.servers[1].command(&limit).unwrap();
    ask(
        &durable.servers[1],
        &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"],
    );
    let address = durable.servers[1].address();
    let evicts = format!(
        "at most 1 of 3 nodes loses its keys within max_ttl, and {address} (volatile-lru) evicts no lock\n"
    );
    prints(&durable, &["doctor"], 1, &[&evicts]);
    let mut absent = known(3);
    absent.servers[0].kill();
    let unknown = format!(
        "within max_ttl, and {} remembers losses, which is not known\n",
        absent.servers[0].address()
    );
    prints(&absent, &["doctor"], 1, &[&unknown]);
}

#[test]
fn the_manual_and_doctor_say_the_same_of_each_policy() {
    let deployment = Deployment::of(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = [
        "README.md",
        "src/docs/choosing.md",
        "src/docs/command_line.md",
        "src/ffi/quorumlock.h",
    ];
    for policy in ["observed", "strict", "off"] {
        let doctor = asks(
            &deployment,
            &[
                "doctor",
                "--restart-policy",
                policy,
                "--unavailable-after",
                "100ms",
            ],
        );
        let begin = format!("restart policy {policy}: ");
        let line = doctor
            .out
            .lines()
            .find_map(|line| line.strip_prefix(&begin))
            .unwrap();
        for page in pages {
            let text = fs::read_to_string(root.join(page))
                .unwrap()
                .replace('`', "");
            let words = text
                .split_whitespace()
                .filter(|word| *word != "*")
                .collect::<Vec<_>>()
                .join(" ");
            assert!(
                words.to_lowercase().contains(line),
                "{page} says something else than {line:?}"
            );
        }
    }
}
