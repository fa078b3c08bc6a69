//! The examples: they compile without a warning, do what they describe, and report what went wrong.

use super::*;

/// Lock and unlock pairs of each thread.
const PAIRS: u32 = 500;
/// Sets another number of pairs for each thread.
const PAIRS_VARIABLE: &str = "QUORUMLOCK_TEST_PAIRS";
/// What a static library of Rust needs of the system.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lutil", "-lrt", "-lm", "-ldl"];

/// Runs a quickstart against servers, and against none.
#[track_caller]
fn starts_quickly(program: &str, arguments: &[String]) {
    let servers = Server::several(3).unwrap();
    let said = run(program, [arguments, &servers.each(Server::url)].concat());
    let said = said.exits(0).prints("ours for").out;
    assert!(said.ends_with("released in time\n"), "{said}");
    let no_server = ["redis://127.0.0.1:1".to_owned()];
    let failed = run(program, [arguments, &no_server].concat());
    failed.exits(2).reports("127.0.0.1:1: connection refused");
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
    let urls = servers.each(Server::url);
    servers[1].pause().unwrap();
    servers[3].kill();
    let said = run(&program, arguments.iter().chain(&urls)).exits(0).out;
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
    let mut command = program::program(program);
    command.args(["8", "1000000"]);
    let running = Running::start(command.args(servers.each(Server::url)));
    thread::sleep(Duration::from_millis(300));
    running.send(Signal::SIGINT);
    running.wait().exits(0).prints("0 failures");
}
