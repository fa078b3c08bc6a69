//! `examples/pod`, which is told to end by `SIGTERM`. The test binary starts itself as that
//! program.

#[path = "../../../examples/pod/workers.rs"]
#[allow(clippy::print_stdout, clippy::print_stderr)]
mod workers;

use crate::capi::library::Running;
use crate::clients::{SOON, client, client_of, long_lock};
use crate::support::process::eventually;
use crate::support::queues::has_entries;
use crate::support::server::Server;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quorumlock::Watchdog;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The nodes of the program, in the environment of the process that is one.
const NODES: &str = "POD_NODES";
/// How long its jobs take.
const WORK: &str = "POD_WORK_MS";
const LOCK: &str = "reports/daily";

/// Not a test of its own: the program, in a process that another test has started.
#[test]
fn is_the_program_where_a_test_starts_it() {
    let Ok(nodes) = std::env::var(NODES) else {
        return;
    };
    let work = std::env::var(WORK).unwrap().parse().unwrap();
    let redlock = client_of(nodes.split(','));
    let code = workers::run(&redlock, Duration::from_millis(work), SOON / 5);
    // Not by a return: that would let the clients go.
    std::process::exit(i32::from(code != ExitCode::SUCCESS));
}

fn start(servers: &[Server], work: Duration) -> Running {
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "shutdown::pod::is_the_program_where_a_test_starts_it",
            "--exact",
        ])
        .args(["--nocapture", "--test-threads=1"])
        .env(NODES, urls.join(","))
        .env(WORK, work.as_millis().to_string());
    Running::start(command.stdin(Stdio::null()))
}

fn terminate(pod: &Running) {
    let pid = Pid::from_raw(pod.child.id() as i32);
    kill(pid, Signal::SIGTERM).unwrap();
}

/// The keys of locks and queues, right after the end of a program.
fn keys(servers: &[Server]) -> Vec<Vec<String>> {
    servers
        .iter()
        .map(|server| server.keys().unwrap())
        .collect()
}

#[test]
fn it_finishes_what_it_has_begun_and_leaves_nothing_behind() {
    for nodes in [1, 3] {
        let servers = Server::several(nodes).unwrap();
        let pod = start(&servers, Duration::from_secs(1));
        pod.heard("begins");
        let begun = Instant::now();
        terminate(&pod);
        pod.heard("told to end");
        let ending = pod.end(SOON);
        let found = keys(&servers);
        let (output, took) = (&ending.output, begun.elapsed());
        assert_eq!(ending.status.code(), Some(0), "{output}{}", ending.errors);
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
        assert_eq!(output.matches(": begins").count(), 1, "{output}");
        assert_eq!(
            output.matches(": done, lock valid: true").count(),
            1,
            "{output}"
        );
        let refused = format!("cannot lock {LOCK:?}: the client is shut down");
        // The waits end before the job does.
        let (before, after) = output.split_once(": done").unwrap();
        assert_eq!(before.matches(&refused).count(), 2, "{output}");
        assert!(after.contains("pod: shutdown complete\n"), "{output}");
        assert!(took > Duration::from_millis(700), "{took:?}");
    }
}

/// While another program has the lock, nothing is to be waited for.
#[test]
fn it_ends_at_once_where_it_only_waits() {
    let servers = Server::several(3).unwrap();
    let other = client(&servers);
    let guard = long_lock(&other, LOCK).lock().unwrap();
    let pod = start(&servers, Duration::ZERO);
    has_entries(&servers, LOCK, 1);
    let begun = Instant::now();
    terminate(&pod);
    let ending = pod.end(SOON);
    let took = begun.elapsed();
    assert_eq!(ending.status.code(), Some(0), "{}", ending.errors);
    assert!(took < Duration::from_secs(1), "{took:?}");
    has_entries(&servers, LOCK, 0);
    drop(guard);
}

/// It exits when its time is over, and its lock lasts for its time to live.
#[test]
fn it_tells_what_it_leaves_behind() {
    let servers = Server::several(3).unwrap();
    let pod = start(&servers, SOON);
    pod.heard("begins");
    terminate(&pod);
    let ending = pod.end(SOON);
    assert_eq!(ending.status.code(), Some(1), "{}", ending.output);
    let expected = format!("pod: shutdown incomplete: still held: {LOCK:?}\n");
    assert!(ending.errors.contains(&expected), "{}", ending.errors);
    assert!(
        keys(&servers)
            .iter()
            .all(|keys| keys.contains(&LOCK.to_owned()))
    );
    // No watchdog extends it any more.
    let other = client(&servers);
    let mutex = other.mutex(LOCK).watchdog(Watchdog::new());
    assert!(mutex.try_lock().unwrap().is_none());
    assert!(eventually(SOON * 2, || mutex.try_lock().unwrap().is_some()));
}
