//! Restart protection as `nodes` and `doctor` show it: since when each node votes, why not, and
//! until when; what the deployment guarantees; and what the restart policies mean, as the manual
//! describes them.

use super::*;
use crate::incarnations::NO_LONGER_NEW;

const NOTHING_TOLD: &str =
    "it tells nothing of losses (no right to its key, no INFO or no scripts)";

/// A deployment that a program has used.
fn known(count: usize) -> Deployment {
    let deployment = Deployment::of(count);
    deployment.succeeds("nodes");
    thread::sleep(NO_LONGER_NEW);
    deployment
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
    deployment
        .succeeds("nodes")
        .prints_times(", votes counted for ", 3);
    let guarantee =
        "guarantee: one valid holder, if at most 1 of 3 nodes loses its keys within max_ttl\n";
    deployment
        .succeeds("doctor")
        .prints(guarantee)
        .prints_times("\n  votes counted for ", 3)
        .prints_times("; the deployment began with it ", 3);
    for command in ["nodes", "doctor"] {
        let json = deployment
            .succeeds(&[command, "--json"])
            .prints_times("\"note\":\"founder\"", 3);
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
    let policy =
        "\"restart_policy\":\"observed: a program that has just started does not count a node";
    deployment
        .succeeds("doctor --json")
        .prints(policy)
        .prints("\"guarantee\":\"one valid holder, if at most 1 of 3 nodes");
}

#[test]
fn a_node_that_came_back_empty_says_why_it_waits_and_for_how_long() {
    let mut deployment = known(3);
    deployment.servers[1].restart().unwrap();
    let address = deployment.servers[1].address();
    deployment
        .ends(1, "nodes")
        .prints(&format!("{address}: in quarantine, known for "))
        .prints(" left, it joined or lost its keys ")
        .prints_times(", votes counted for ", 2);
    deployment
        .ends(1, "doctor")
        .prints(&format!("{address}: does not vote\n"))
        .prints("fault: quarantine: its votes do not count for another ")
        .prints(" s: it joined or lost its keys ")
        .prints("; wait\n")
        .prints_times("fault: ", 1);
    let json = deployment
        .ends(1, "nodes --json")
        .prints("\"note\":\"since\"");
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
    deployment.succeeds("nodes --max-ttl 500ms");
    thread::sleep(NO_LONGER_NEW);
    command_each(&deployment.servers[..1], "FLUSHALL");
    deployment.ends(1, "nodes --max-ttl 500ms");
    thread::sleep(NO_LONGER_NEW);
    deployment
        .run("doctor --max-ttl 500ms")
        .prints_times("; it joined or lost its keys ", 1)
        .prints_times("  votes counted for ", 3);
    let json = deployment
        .succeeds("doctor --max-ttl 500ms --json")
        .prints("\"note\":\"since\"");
    let counted = numbers(&json, "votes_counted_ms")[0].unwrap();
    let age = numbers(&json, "note_age_ms")[0].unwrap();
    assert!((499..=501).contains(&(age - counted)), "{}", json.all());
}

#[test]
fn a_node_without_the_right_is_shown_with_what_that_costs() {
    skip_unless!(has_users());
    let deployment = known(3);
    // All keys but the node's own.
    let user = ["ACL", "SETUSER", "default", "resetkeys", "~*[^:]"];
    ok(&deployment.servers[2], &user);
    deployment
        .succeeds("nodes")
        .prints(&format!(", {NOTHING_TOLD}"));
    let address = deployment.servers[2].address();
    let weaker = format!(
        "guarantee: one valid holder, if none of the 2 other nodes loses its keys within max_ttl, and {address} loses \
         none, of which it would tell nothing\n"
    );
    let advice = "warning: acl: the user lacks rights that restart protection needs: a program that has just started \
                  does not see that the node has lost its keys; ACL SETUSER default ~quorumlock-node:\n";
    deployment
        .ends(1, "doctor")
        .prints(&weaker)
        .prints(&format!("\n  votes count; {NOTHING_TOLD}\n"))
        .prints(advice);
    // The rule that is shown is enough.
    let remedy = "ACL SETUSER default ~quorumlock-node:";
    command_each(&deployment.servers[2..], remedy);
    deployment.succeeds("doctor").prints("at most 1 of 3 nodes");
}

#[test]
fn programs_with_other_settings_are_a_warning_of_each_node() {
    let mut deployment = known(3);
    let warning = "warning: max_ttl: another program has noted a max_ttl of 60 s";
    deployment
        .ends(1, "doctor --max-ttl 2m")
        .prints(", this one has 2 min: all wait for 2 min; set ")
        .prints_times(warning, 3);
    // It has stored the longer one, so the others have the mismatch now.
    let warning =
        "warning: max_ttl: another program has noted a max_ttl of 2 min, this one has 60 s: all";
    deployment
        .ends(1, "doctor")
        .prints("as the manual says (raise or lower max_ttl)\n")
        .prints_times(warning, 3);
    deployment.servers.extend(Server::several(2).unwrap());
    let warning =
        "warning: nodes: another program has noted 3 nodes, this one has 5: two may hold a lock";
    deployment
        .run("doctor --max-ttl 2m")
        .prints_times(warning, 3)
        .prints(", and all programs have the same nodes\n");
    deployment
        .run("nodes --json --max-ttl 2m")
        .prints_times("\"mismatches\":[\"nodes\"]", 3);
}

#[test]
fn the_guarantee_is_that_of_the_deployment_as_it_is() {
    let single = known(1);
    let patient = format!("doctor {PATIENT}");
    let lost = "guarantee: one valid holder, if the node does not lose its keys ";
    let restarted = "and is not restarted: it writes nothing to disk\n";
    single
        .succeeds(&patient)
        .prints(&format!("{lost}within max_ttl, {restarted}"));
    single
        .succeeds("doctor --restart-policy off")
        .prints(&format!("{lost}while a lock is held, {restarted}"))
        .prints("\n  votes count, by restart policy off; the deployment ");
    single
        .ends(
            2,
            "doctor --restart-policy strict --unavailable-after 100ms",
        )
        .prints("guarantee: one valid holder, whatever keys nodes lose\n")
        .prints("fault: quarantine: its votes do not count for another ");
    command_each(&single.servers, &["CONFIG", "SET", "save", "3600 1"]);
    let goes_on = "CONFIG SET stop-writes-on-bgsave-error no";
    command_each(&single.servers, goes_on);
    single
        .succeeds(&patient)
        .prints(&format!("{lost}within max_ttl\n"));

    let durable = Deployment {
        servers: (0..3).map(|_| durable().start().unwrap()).collect(),
    };
    durable
        .succeeds(&format!("{patient} --durable"))
        .prints(" keep their keys, as declared\n")
        .prints("\n  votes count, because it is declared durable; the deployment began with it ");
    let evicting = &durable.servers[1..2];
    command_each(evicting, "CONFIG SET maxmemory 100mb");
    command_each(evicting, "CONFIG SET maxmemory-policy volatile-lru");
    durable.ends(1, "doctor").prints(&format!(
        "at most 1 of 3 nodes loses its keys within max_ttl, and {} (volatile-lru) evicts no lock\n",
        evicting[0].address()
    ));
    let mut absent = known(3);
    absent.servers[0].kill();
    absent.ends(1, "doctor").prints(&format!(
        "within max_ttl, and {} remembers losses, which is not known\n",
        absent.servers[0].address()
    ));
}

#[test]
fn the_manual_and_doctor_say_the_same_of_each_policy() {
    let deployment = Deployment::of(1);
    let pages = [
        "README.md",
        "src/docs/choosing.md",
        "src/docs/command_line.md",
        "src/ffi/quorumlock.h",
    ];
    for policy in ["observed", "strict", "off"] {
        let options = format!("--restart-policy {policy} --unavailable-after 100ms");
        let doctor = deployment.run(&format!("doctor {options}"));
        let begin = format!("restart policy {policy}: ");
        let mut lines = doctor.out.lines();
        let line = lines.find_map(|line| line.strip_prefix(&begin)).unwrap();
        for page in pages {
            let text = text_of(page).replace('`', "");
            let words = text.split_whitespace().filter(|word| *word != "*");
            let words = words.collect::<Vec<_>>().join(" ");
            assert!(
                words.to_lowercase().contains(line),
                "{page} says something else than {line:?}"
            );
        }
    }
}
