//! `nodes`, `show`, `ls`, `scan`, `break` and `bench`.

use super::deployment::{Deployment, run, wait};
use crate::clients::{LONG_TTL, SOON, client};
use crate::embedded_vs_real::fenced_values;
use crate::read_write::as_embedded;
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::server::Answer;
use crate::support::sides::Sides;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quorumlock::Redlock;
use std::process::Child;
use std::time::Duration;

const OURS: &str = "1111111111111111111111111111111111111111";
const THEIRS: &str = "2222222222222222222222222222222222222222";

/// Sets a key on some nodes, for so many milliseconds.
fn set(deployment: &Deployment, nodes: &[usize], key: &str, value: &str, millis: &str) {
    for &node in nodes {
        let set = deployment.servers[node].command(&["SET", key, value, "PX", millis]).unwrap();
        assert_eq!(set, Answer::Text("OK".into()));
    }
}

fn hold(deployment: &Deployment, words: &[&str]) -> Child {
    let tool = deployment.tool(&[&["run"], words, &["--", "sleep", "99"]].concat()).spawn().unwrap();
    let before = deployment.servers.len();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() >= before));
    tool
}

fn end(tool: Child) {
    kill(Pid::from_raw(tool.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(wait(tool).code, Some(143));
}

#[test]
fn nodes_is_a_probe() {
    let mut deployment = Deployment::of(3);
    let code = |deployment: &Deployment| {
        let ended = run(deployment.tool(&["nodes"]));
        assert_eq!(ended.out.lines().count(), 3, "{}", ended.all());
        ended.code
    };
    assert_eq!(code(&deployment), Some(0));
    deployment.servers[0].kill();
    assert_eq!(code(&deployment), Some(1));
    let json = run(deployment.tool(&["nodes", "--json"]));
    assert!(json.out.contains("\"state\":\"down\"") && json.out.contains("\"state\":\"voting\""), "{}", json.out);
    deployment.servers[1].kill();
    assert_eq!(code(&deployment), Some(2));
}

#[test]
fn ls_tells_held_split_and_orphaned_locks_apart() {
    let deployment = Deployment::of(5);
    set(&deployment, &[0, 1, 2], "held", OURS, "50000");
    set(&deployment, &[3], "held", THEIRS, "90000");
    set(&deployment, &[0, 1], "split", OURS, "50000");
    set(&deployment, &[2, 3], "split", THEIRS, "50000");
    set(&deployment, &[4], "orphan", OURS, "50000");
    set(&deployment, &[0, 1, 2, 3, 4], "quorumlock-fence:rest", "7 0 ", "50000");
    deployment.servers[0].command(&["SET", "other", "no lock"]).unwrap();
    let ended = run(deployment.tool(&["ls"]));
    let lines: Vec<Vec<&str>> = ended.out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let line = |name: &str| lines.iter().find(|line| line[0] == name).unwrap_or_else(|| panic!("{}", ended.all()));
    assert_eq!(
        line("held")[1..5],
        ["held", "3/5:", "1,2,3", "49.9"].map(|word| if word == "49.9" { line("held")[4] } else { word })
    );
    assert_eq!((line("held").last(), line("split")[1], line("orphan")[1]), (Some(&"111111…"), "split", "orphan"));
    assert_eq!(line("orphan")[2..4], ["1/5:", "5"]);
    assert_eq!((line("rest")[1], line("rest").contains(&"fenced")), ("free", true));
    assert!(lines.iter().all(|line| line[0] != "other"), "what is no lock is for scan");
    assert!(!ended.all().contains("1111111"), "more than six digits");
    let some = run(deployment.tool(&["ls", "sp*", "--json"]));
    assert!(some.out.contains("\"split\"") && !some.out.contains("\"held\""), "{}", some.out);
}

#[test]
fn a_holder_with_a_label_is_shown_by_it() {
    let deployment = Deployment::of(3);
    for kind in [&["--label", "billing@host7", "a"][..], &["--fenced", "--label", "billing@host7", "a"]] {
        let holder = hold(&deployment, kind);
        let ended = run(deployment.tool(&["ls"]));
        assert!(
            ended.out.lines().any(|line| line.contains("held") && line.ends_with("billing@host7")),
            "{}",
            ended.all()
        );
        end(holder);
        deployment.servers.iter().for_each(|server| drop(server.command(&["FLUSHALL"]).unwrap()));
    }
}

#[test]
fn show_gives_the_holder_of_each_node_and_the_time_of_a_quorum() {
    let deployment = Deployment::of(3);
    set(&deployment, &[0], "a", OURS, "10000");
    set(&deployment, &[1, 2], "a", OURS, "50000");
    let ended = run(deployment.tool(&["show", "a", "--json"]));
    let remaining = ended.out.split("\"remaining_ms\":").nth(1).and_then(|text| text.split(',').next()).unwrap();
    assert!((40_000..50_000).contains(&remaining.parse::<u32>().unwrap()), "two of three have it so long: {remaining}");
    deployment.servers[2].pause().unwrap();
    let ended = run(deployment.tool(&["show", "a"]));
    assert!(ended.out.contains("held by 111111…, on 2 of 3 nodes") && ended.out.contains("unknown, no reply"));
    deployment.servers[1].pause().unwrap();
    let ended = run(deployment.tool(&["show", "a"]));
    assert!(ended.code == Some(69) && ended.out.contains("\"a\": unknown"), "{}", ended.all());
    deployment.servers.iter().for_each(|server| server.resume().unwrap());
}

#[test]
fn scan_finds_each_kind_of_key_that_should_not_be() {
    let deployment = Deployment::of(3);
    let clean = run(deployment.tool(&["scan"]));
    assert_eq!((clean.code, clean.all().as_str()), (Some(0), ""));
    let kinds = || {
        let ended = run(deployment.tool(&["scan"]));
        assert_eq!(ended.code, Some(1));
        ended.out.split(": ").nth(1).unwrap_or_default().to_owned()
    };
    let faults: [(&[&str], &str); 5] = [
        (&["SET", "x", OURS], "no-expiry"),
        (&["SET", "x", OURS, "PX", "90000"], "too-long"),
        (&["SET", "x", "word", "PX", "9000"], "foreign"),
        (&["HSET", "x", "a", "b"], "no-expiry"),
        (&["SET", "quorumlock-fence:x", "7 0 ", "PX", "9000"], "fence-at-rest"),
    ];
    for (words, kind) in faults {
        deployment.servers[1].command(&["FLUSHALL"]).unwrap();
        deployment.servers[1].command(words).unwrap();
        assert_eq!(kinds(), kind, "{words:?}");
    }
    assert_eq!(run(deployment.tool(&["scan", "--ignore", "fence-at-rest"])).code, Some(0));
    let others = run(deployment.tool(&["scan", "--prefix", "jobs/"]));
    assert_eq!(others.code, Some(0), "keys without the prefix belong to others: {}", others.all());
}

#[test]
fn a_prefix_is_behind_the_marker_and_not_shown() {
    let deployment = Deployment::of(1);
    let keys = ["jobs/a", "quorumlock-fence:jobs/a", "quorumlock-rw:jobs/a", "jobs/quorumlock-rw:a"];
    let values = [OURS.to_owned(), format!("7 9999999999999 {OURS}"), format!("w 9999999999999 {OURS}")];
    for (key, value) in keys.iter().zip(values.iter().chain([&values[0]])) {
        set(&deployment, &[0], key, value, "50000");
    }
    for key in ["a", "quorumlock-fence:a", "quorumlock-fence:other:jobs/a"] {
        set(&deployment, &[0], key, "word", "50000");
    }
    let listed = |words: &[&str]| {
        let json = run(deployment.tool(&[words, &["--prefix", "jobs/", "--json"]].concat()));
        let names = json.out.split("\"name\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed(&["ls"]), ["a", "quorumlock-rw:a", "a", "a"]);
    for words in [["ls", "a"], ["ls", "a*"], ["show", "a"]] {
        assert_eq!(listed(&words), ["a", "a", "a"], "{words:?}");
    }
    assert_eq!(listed(&["ls", "b*"]), [""; 0]);
    assert_eq!(
        run(deployment.tool(&["scan", "--prefix", "jobs/", "--max-ttl", "1d", "--ignore", "too-long"])).all(),
        ""
    );
    set(&deployment, &[0], keys[1], "7 0 ", "50000");
    let found = run(deployment.tool(&["scan", "--prefix", "jobs/", "--ignore", "too-long", "--json"])).out;
    assert!(found.contains("\"name\":\"a\",\"key\":\"quorumlock-fence:jobs/a\",\"kind\":\"fence-at-rest\""), "{found}");
    let broken = run(deployment.tool(&["break", "a", "--prefix", "jobs/", "--yes"]));
    assert_eq!(broken.code, Some(0), "{}", broken.all());
    let left = |key: &str| deployment.servers[0].command(&["EXISTS", key]).unwrap();
    let gone = [keys[0], keys[2]].map(left);
    assert_eq!((gone, left(keys[3])), ([Answer::Number(0), Answer::Number(0)], Answer::Number(1)));
}

#[test]
fn scan_goes_through_more_keys_than_one_reply_has() {
    let deployment = Deployment::of(1);
    let script = "for i = 1, 5000 do redis.call('SET', 'k' .. i, ARGV[1], 'PX', 50000) end";
    deployment.servers[0].command(&["EVAL", script, "0", OURS]).unwrap();
    let ended = run(deployment.tool(&["ls"]));
    assert_eq!(ended.out.lines().count(), 5001);
}

#[test]
fn break_deletes_what_was_read_and_keeps_the_fence() {
    if !has_users() {
        return;
    }
    let deployment = Deployment::of(3);
    let holder = hold(&deployment, &["--fenced", "a"]);
    let value = |node: usize| match deployment.servers[node].command(&["GET", "quorumlock-fence:a"]).unwrap() {
        Answer::Text(value) => value,
        other => panic!("{other:?}"),
    };
    let fence = value(0).split(' ').next().unwrap().to_owned();
    let unsaid = run(deployment.tool(&["break", "a"]));
    assert!(unsaid.code == Some(64) && value(0).len() > 40, "{}", unsaid.all());
    // Servers that compare and delete by themselves would delete the fence.
    for server in &deployment.servers {
        server.command(&["ACL", "SETUSER", "few", "on", ">few", "~*", "+@all", "-eval"]).unwrap();
    }
    let few = deployment.urls().replace("redis://", "redis://few:few@");
    let refused = run(deployment.tool(&["break", "a", "--yes", "--nodes", &few]));
    assert!(refused.code == Some(1) && value(0).len() > 40, "{}", refused.all());
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert_eq!(broken.code, Some(0), "{}", broken.all());
    assert!(broken.out.contains("the holder may believe in its lock for another"), "{}", broken.all());
    assert_eq!(value(1), format!("{fence} 0 "));
    assert_eq!(wait(holder).code, Some(70), "the holder finds out at its next extension");
    set(&deployment, &[0, 1], "plain", OURS, "50000");
    assert_eq!(run(deployment.tool(&["break", "plain", "--yes"])).code, Some(0));
    assert_eq!(deployment.servers[0].command(&["EXISTS", "plain"]).unwrap(), Answer::Number(0));
    let free = run(deployment.tool(&["break", "plain", "--yes"]));
    assert!(free.code == Some(0) && free.out.contains("is not held"), "{}", free.all());
}

#[test]
fn readers_and_writers_are_listed_and_broken() {
    let deployment = Deployment::of(3);
    let clients: Vec<Redlock> = (0..2).map(|_| client(&deployment.servers)).collect();
    let of = |client: &Redlock| Sides::of(client, "a").ttl(LONG_TTL);
    let listed = |kind: &str| {
        let is_listed = || {
            let out = run(deployment.tool(&["ls", "a"])).out;
            let line = out.lines().nth(1).unwrap_or_default().to_owned();
            let holder = line.split_whitespace().last().unwrap_or_default().to_owned();
            let is_whole = line.starts_with("a ") && line.contains(" held ") && line.contains(" 3/3 ");
            is_whole && line.contains(kind) && holder.ends_with('…') && holder.chars().count() == 7
        };
        assert!(eventually(SOON, is_listed), "{kind}: {}", run(deployment.tool(&["ls"])).all());
        let scanned = run(deployment.tool(&["scan"]));
        assert_eq!((scanned.code, scanned.all().as_str()), (Some(0), ""));
    };
    let readers: Vec<_> = clients.iter().map(|client| of(client).read.lock().unwrap()).collect();
    listed(" 2 readers ");
    let shown = run(deployment.tool(&["show", "a"]));
    assert!(shown.out.starts_with("read-write lock \"a\": held, 2 readers, by "), "{}", shown.all());
    assert_eq!(shown.out.matches(": 2 readers, the last one ").count(), 3, "{}", shown.all());
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert!(broken.code == Some(0) && broken.out.contains("the holder may believe"), "{}", broken.all());
    assert_eq!(deployment.keys(), 0);
    let writer = of(&clients[0]).write.lock().unwrap();
    listed(" writer ");
    assert_eq!(run(deployment.tool(&["break", "a"])).code, Some(64));
    assert_eq!(run(deployment.tool(&["break", "a", "--yes"])).code, Some(0));
    assert_eq!(deployment.keys(), 0);
    drop((readers, writer));
    set(&deployment, &[0, 1], "quorumlock-rw:a", OURS, "50000");
    let found = run(deployment.tool(&["scan"]));
    assert!(found.code == Some(1) && found.out.matches(": foreign: ").count() == 2, "{}", found.all());
    set(&deployment, &[0, 1], "quorumlock-rw:a", "q 9999999999999", "50000");
    let free = run(deployment.tool(&["ls", "--json"]));
    assert!(free.out.contains("\"read_write\":true,\"state\":\"free\",\"token\":null"), "{}", free.all());
}

#[test]
fn the_number_of_a_writer_is_shown_and_outlives_it() {
    let deployment = Deployment::of(3);
    let client = client(&deployment.servers);
    let mutex = Sides::of(&client, "a").ttl(LONG_TTL).fenced();
    let value = || match deployment.servers[0].command(&["GET", "quorumlock-rw:a"]).unwrap() {
        Answer::Text(value) => value,
        other => panic!("{other:?}"),
    };
    let shows = |state: &str, holder: &str, fence: u64| {
        let shown = run(deployment.tool(&["show", "a"]));
        let line = shown.out.lines().next().unwrap_or_default();
        let is_shown =
            line.starts_with(&format!("read-write lock \"a\": {state}")) && line.ends_with(&format!(", fence {fence}"));
        assert!(is_shown && line.contains(holder), "{}", shown.all());
        let json = run(deployment.tool(&["ls", "--json"]));
        let is_listed =
            json.out.contains(&format!("\"state\":\"{state}\"")) && json.out.contains("\"read_write\":true");
        assert!(is_listed && json.out.contains(&format!("\"fence\":{fence}")), "{}", json.all());
    };
    let writer = mutex.write.lock().unwrap();
    let fence = u64::from(writer.fence());
    shows("held", ", writer, by ", fence);
    assert_eq!(run(deployment.tool(&["scan"])).code, Some(0));
    let reader = writer.downgrade().unwrap();
    shows("held", ", 1 reader, by ", fence);
    let kept = value().split_inclusive(' ').take(3).collect::<String>();
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert!(broken.code == Some(0) && broken.out.matches(": deleted").count() == 3, "{}", broken.all());
    assert_eq!(format!("{} ", value()), kept);
    drop(reader);
    shows("free", "", fence);
    let scanned = run(deployment.tool(&["scan"]));
    assert!(scanned.code == Some(1) && scanned.out.matches(": fence-at-rest: ").count() == 3, "{}", scanned.all());
    let writer = mutex.write.lock().unwrap();
    assert!(u64::from(writer.fence()) > fence);
    assert_eq!(run(deployment.tool(&["break", "a", "--yes"])).code, Some(0));
    assert!(value().starts_with(&format!("f {} ", writer.fence())) && !value().contains('w'), "{}", value());
    drop(writer);
    // A number that its node does not keep any more.
    set(&deployment, &[0, 1, 2], "quorumlock-rw:a", &format!("f 7 5 r 9999999999999:{OURS}"), "50000");
    let shown = run(deployment.tool(&["show", "a"]));
    assert!(shown.out.contains("held, 1 reader, by") && !shown.out.contains("fence"), "{}", shown.all());
    set(&deployment, &[0, 1, 2], "quorumlock-rw:a", "f 7 5 ", "50000");
    assert_eq!(run(deployment.tool(&["scan"])).out.matches(": foreign: ").count(), 3);
}

/// What the scripts take for a lock of their kind is one here, and what they leave alone is foreign.
#[test]
fn scan_calls_foreign_what_the_scripts_call_so() {
    let deployment = Deployment::of(1);
    let tables = [("quorumlock-rw:", as_embedded::values()), ("quorumlock-fence:", fenced_values())];
    for (mark, values) in tables {
        for (index, (value, _)) in values.iter().enumerate() {
            set(&deployment, &[0], &format!("{mark}{index}."), value, "50000");
        }
        let scanned = run(deployment.tool(&["scan"]));
        for (index, (value, is_read)) in values.iter().enumerate() {
            let is_foreign = scanned.out.contains(&format!(": foreign: \"{mark}{index}.\", "));
            assert_eq!(is_foreign, !is_read, "{mark} {value:?}");
        }
        deployment.servers[0].command(&["FLUSHALL"]).unwrap();
    }
}

#[test]
fn a_closed_pipe_and_a_holder_that_goes_on_are_no_failures() {
    let deployment = Deployment::of(1);
    let holder = hold(&deployment, &["a"]);
    let program = env!("CARGO_BIN_EXE_quorumlock");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$0\" ls | true; \"$0\" --help | head -1 >/dev/null; echo done"]).arg(program);
    let ended = run({
        shell.env("QUORUMLOCK_NODES", deployment.urls());
        shell
    });
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("done\n", ""));
    end(holder);
}

#[test]
fn bench_measures_pairs() {
    let deployment = Deployment::of(3);
    let ended = run(deployment.tool(&["bench", "--duration", "200ms", "--threads", "2", "--json"]));
    assert!(ended.code == Some(0) && ended.out.contains("\"pairs_per_second\":"), "{}", ended.all());
    assert_eq!(deployment.keys(), 0);
}
