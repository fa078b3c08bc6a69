//! The examples: they compile without a warning, do what they describe, and report what went wrong.

use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Lock and unlock pairs of each thread.
const PAIRS: u32 = 500;
/// Sets another number of pairs for each thread.
const PAIRS_VARIABLE: &str = "QUORUMLOCK_TEST_PAIRS";
/// What a static library of Rust needs of the system.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lutil", "-lrt", "-lm", "-ldl"];

fn urls(servers: &[Server]) -> Vec<String> {
    servers.each(Server::url)
}

/// Runs a quickstart against servers, and against none.
#[track_caller]
fn starts_quickly(program: &str, arguments: &[String]) {
    let servers = Server::several(3).unwrap();
    let said = run(program, [arguments, &urls(&servers)].concat()).success();
    assert!(
        said.contains("ours for") && said.ends_with("released in time\n"),
        "{said}"
    );
    let no_server = ["redis://127.0.0.1:1".to_owned()];
    let failed = run(program, [arguments, &no_server].concat());
    assert_eq!(failed.status.code(), Some(2), "{}", failed.errors);
    assert!(
        failed.errors.contains("127.0.0.1:1: connection refused"),
        "{}",
        failed.errors
    );
}

#[test]
fn the_quickstart_in_c_runs_with_the_shared_and_the_static_library() {
    for standard in ["-std=c99", "-std=c11"] {
        let program = compile(
            &format!("quickstart{standard}"),
            "examples/c/quickstart.c",
            &[standard],
        );
        starts_quickly(program.to_str().unwrap(), &[]);
    }
    let archive = library().join("libquorumlock.a");
    let flags = ["-std=c99", archive.to_str().unwrap()]
        .into_iter()
        .chain(SYSTEM);
    let program = compile_with("quickstart-static", "examples/c/quickstart.c", flags);
    starts_quickly(program.to_str().unwrap(), &[]);
}

#[test]
fn the_quickstart_in_cpp_runs() {
    let program = compile(
        "quickstart-cpp",
        "examples/c/quickstart.cpp",
        &["-std=c++17"],
    );
    starts_quickly(program.to_str().unwrap(), &[]);
}

#[test]
fn the_quickstart_in_python_runs() {
    let script = root().join("examples/c/quickstart.py");
    let files = [script, library().join("libquorumlock.so")];
    let [script, library] = files.map(|path| path.display().to_string());
    // It writes nothing beside the examples.
    starts_quickly("python3", &["-B".to_owned(), script, library]);
}

#[test]
#[allow(clippy::print_stdout)]
fn workers_lose_nothing_with_one_node_hung_and_one_killed() {
    let program = compile("workers", "examples/c/workers.c", &["-std=c99", "-O2"]);
    let pairs = std::env::var(PAIRS_VARIABLE).map_or(PAIRS, |pairs| pairs.parse().unwrap());
    let mut servers = Server::several(5).unwrap();
    let arguments = ["8".to_owned(), pairs.to_string()];
    let urls = urls(&servers);
    servers[1].pause().unwrap();
    servers[3].kill();
    let said = run(&program, arguments.iter().chain(&urls)).success();
    print!("{said}");
    assert!(
        said.starts_with(&format!("{0} pairs, {0} counted, 0 failures", 8 * pairs)),
        "{said}"
    );
}

#[test]
fn workers_end_at_ctrl_c() {
    let program = compile("workers-interrupted", "examples/c/workers.c", &["-std=c99"]);
    let servers = Server::several(3).unwrap();
    let mut command = Command::new(program);
    command
        .args(["8", "1000000"])
        .args(urls(&servers))
        .stdin(Stdio::null());
    let running = Running::start(&mut command);
    thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(running.child.id() as i32), Signal::SIGINT).unwrap();
    let said = running.end(LIMIT).success();
    assert!(said.contains("0 failures"), "{said}");
}
