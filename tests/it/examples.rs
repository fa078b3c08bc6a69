//! The programs in `examples/` that are named by a need: each is short, and does on real servers
//! what it describes.

use crate::capi::library::{cargo, finishes};
use crate::credentials::{servers_with_users, set_all_passwords};
use crate::prelude::*;

/// The folder of the programs, which are built the first time: with what the tests were built with,
/// so that only the programs are compiled.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let mut command = cargo("build --quiet --offline --profile test --examples");
        command.args("--workspace --exclude opentelemetry_example --all-features".split(' '));
        command.arg("--target-dir").arg(target);
        // What the build of a dependency depends on, if `cargo test` has set it.
        without_variables(&mut command, "CARGO_MANIFEST_");
        without_variables(&mut command, "CARGO_PKG_");
        finishes(command.current_dir(root()));
        target.join("debug/examples")
    })
}

fn example(name: &str, servers: &[Server]) -> Command {
    let mut command = program(built().join(name));
    command
        .env("QUORUMLOCK_NODES", servers.each(Server::url).join(","))
        .env("QUORUMLOCK_NODE_TIMEOUT", "1s");
    command
}

/// Lets another client have the lock, whether it is held or not.
fn steal(servers: &[Server], key: &str, millis: &str) {
    ask_each(servers, &["SET", key, "another", "PX", millis]);
}

#[test]
fn each_fits_a_screen_and_is_shown() {
    let pages = ["README.md", "src/docs/recipes.md"];
    let pages = pages.map(text_of);
    let mut seen = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        seen += 1;
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(lines < 60, "{name} has {lines} lines");
        assert!(pages.iter().all(|page| page.contains(name)), "{name}");
    }
    assert_eq!(seen, 6);
}

#[test]
fn one_machine_does_the_job_of_a_night_and_one_that_loses_it_says_so() {
    let servers = Server::several(3).unwrap();
    let run = |night: &str| Running::start(example("run_once_a_night", &servers).arg(night));
    let machines = [run("2026-11-22"), run("2026-11-22")];
    let said = machines
        .map(|machine| machine.end(SOON).exits(0).out)
        .concat();
    let late = run("2026-11-22").end(SOON).exits(0).out;
    let elsewhere = "2026-11-22: another machine does it\n";
    assert_eq!(said.matches("2026-11-22: part").count(), 3, "{said}");
    assert_eq!(said.matches("2026-11-22: done\n").count(), 1, "{said}");
    assert_eq!(said.matches(elsewhere).count(), 1, "{said}");
    assert_eq!(late, elsewhere);
    let next = run("2026-11-23");
    next.heard("part 1");
    steal(&servers, "nightly-report/2026-11-23", "60000");
    let why = "the lock ended before the job did";
    next.end(SOON).exits(1).hides("done").reports(why);
}

#[test]
fn another_program_leads_when_the_leader_has_died_or_lost_its_lock() {
    let servers = Server::several(3).unwrap();
    let first = Running::start(example("leader", &servers));
    first.heard("leader\nscheduled\n");
    let second = Running::start(example("leader", &servers));
    has_entries(&servers, "scheduler/leader", 1);
    first.stopped().hides("no longer");
    second.heard("leader\nscheduled\n");
    steal(&servers, "scheduler/leader", "2000");
    second.heard("no longer leader\nleader\nscheduled\n");
    second.stopped().begins("leader\n");
}

#[test]
fn three_jobs_run_at_a_time_whichever_program_runs_them() {
    let servers = Server::several(3).unwrap();
    let began = Instant::now();
    let programs = ["a", "b"].map(|program| {
        let mut command = example("limit_workers", &servers);
        let mut running = Running::start(command.stdin(Stdio::piped()));
        let mut input = running.child.stdin.take().unwrap();
        for job in 1..=6 {
            writeln!(input, "{program}{job}").unwrap();
        }
        running
    });
    let said = programs
        .map(|program| program.end(SOON * 3).exits(0).out)
        .concat();
    // 12 jobs of 400 ms, in rounds of three. Without a limit, 8 threads need two rounds.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(4 * 400), "{took:?}");
    assert_eq!(said.matches(": done\n").count(), 12, "{said}");
    for slot in 0..3 {
        assert!(said.contains(&format!(": permit {slot}\n")), "{said}");
    }
    assert!(!said.contains("permit 3"), "{said}");
}

#[test]
fn storage_refuses_the_write_of_a_holder_that_was_paused() {
    let servers = Server::several(3).unwrap();
    let ended = Running::start(example("stock_with_fence", &servers)).end(SOON);
    let said = ended.exits(0).out;
    let lines: Vec<&str> = said.lines().collect();
    let [first, other, late, last] = lines[..] else {
        panic!("{said}")
    };
    assert_eq!(
        [first, other, last],
        ["sold, left: 9", "other program: Some(8)", "sold, left: 7"]
    );
    assert!(late.starts_with("late write: fencing token "), "{late}");
    assert!(late.contains(" is stale: "), "{late}");
}

#[test]
fn a_token_is_replaced_while_invoices_are_written() {
    skip_unless!(has_users());
    let servers = servers_with_users(3, "old");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("token");
    fs::write(&file, "old\n").unwrap();
    let urls: Vec<String> = servers.each(|server| format!("redis://app@{}", server.address()));
    let mut command = example("reload_credentials", &servers);
    let program = Running::start(command.arg(&file).env("QUORUMLOCK_NODES", urls.join(",")));
    program.heard("invoice 1\n");
    set_all_passwords(&servers, &["old", "new"]);
    fs::write(&file, "new\n").unwrap();
    program.heard("invoice 15\n"); // three seconds: each connection has logged in anew
    set_all_passwords(&servers, &["new"]);
    ask_each(&servers, &["CLIENT", "KILL", "TYPE", "normal"]);
    program.heard("invoice 25\n");
    // A token that no server accepts changes nothing but what is printed.
    fs::write(&file, "wrong\n").unwrap();
    program.heard("invoice 35\n");
    program.stopped().reports("credentials");
}

#[test]
fn a_pod_finishes_what_it_has_begun_and_leaves_nothing_behind() {
    for nodes in [1, 3] {
        let servers = Server::several(nodes).unwrap();
        let pod = Running::start(example("graceful_shutdown", &servers));
        pod.heard(": begins");
        let begun = Instant::now();
        pod.send(Signal::SIGTERM);
        pod.heard("told to end");
        let ended = pod.end(SOON);
        let keys = servers.each(|server| server.keys().unwrap());
        let took = begun.elapsed();
        let output = &ended.exits(0).out;
        assert!(keys.iter().all(Vec::is_empty), "{keys:?}");
        assert_eq!(output.matches(": begins").count(), 1, "{output}");
        assert_eq!(output.matches(": done, ").count(), 1, "{output}");
        // The waits end before the job does.
        let (before, after) = output.split_once(": done, ").unwrap();
        let refused = "cannot lock \"reports/daily\": the client is shut down\n";
        assert_eq!(before.matches(refused).count(), 2, "{output}");
        assert!(after.contains("shutdown complete\n"), "{output}");
        assert!(took > Duration::from_millis(700), "{took:?}");
    }
}

/// While another program has the lock, nothing is to be waited for.
#[test]
fn a_pod_that_only_waits_ends_at_once() {
    let servers = Server::several(3).unwrap();
    let program = example("graceful_shutdown", &servers);
    let other = client(&servers);
    let guard = long_lock(&other, "reports/daily").lock().unwrap();
    let pod = Running::start(program);
    has_entries(&servers, "reports/daily", 1);
    let begun = Instant::now();
    pod.send(Signal::SIGTERM);
    let ended = pod.end(SOON);
    let took = begun.elapsed();
    ended.exits(0);
    assert!(took < Duration::from_secs(1), "{took:?}");
    has_entries(&servers, "reports/daily", 0);
    drop(guard);
}
