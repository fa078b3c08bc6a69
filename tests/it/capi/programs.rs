//! Programs that go further than an example would, by themselves, under valgrind and with
//! sanitizers.
//!
//! What each does is described at its top: `misuse.c`, `credentials.c`, `reentrant.c`, `sets.c`,
//! `permits.c`, `read_write.c`, `fair.c`, `host.c`, `loader.c`. A child of `fork` leaves memory
//! behind, as the header states, and a library that is closed stays in memory; there, leaks are not
//! looked for.

use super::*;

const SANITIZERS: &str = "-fsanitize=address,undefined";
/// Nothing wrong, and not a byte left in the end.
const STRICT: [&str; 4] = [
    "-q",
    "--leak-check=full",
    "--show-leak-kinds=all",
    "--error-exitcode=9",
];
/// Nothing wrong.
const LENIENT: [&str; 2] = ["-q", "--error-exitcode=9"];
/// How often the library is loaded for a moment: more often than a process has keys for
/// thread-local values.
const MOMENTS: &str = "1100";

/// The program by itself, or under valgrind.
pub(crate) fn command(program: &Path, valgrind: &[&str]) -> Command {
    if valgrind.is_empty() {
        return program::program(program);
    }
    let mut command = program::program("valgrind");
    if std::env::var_os(TLS_VARIABLE).is_some() {
        command.arg(format!(
            "--suppressions={}",
            root().join("tests/it/capi/ring.supp").display()
        ));
    }
    command.args(valgrind).arg(program);
    command
}

/// Tests a program by itself, under valgrind, and with sanitizers, all at once.
fn in_each_way(name: &str, valgrind: &[&str], test: fn(&Path, &[&str])) {
    let source = format!("tests/it/capi/{name}.c");
    let program = compile(name, &source, &["-std=c99"]);
    thread::scope(|scope| {
        scope.spawn(|| test(&program, &[]));
        scope.spawn(|| test(&program, valgrind));
        if has_sanitizer(SANITIZERS) {
            let name = format!("{name}-sanitized");
            let program = compile(&name, &source, &["-std=c99", SANITIZERS]);
            test(&program, &[]);
        }
    });
}

/// Servers of one deployment, whenever a program has asked each of them: under valgrind, on a busy
/// machine, that may take longer than the second in which nodes are founded.
fn founded(count: usize) -> Vec<Server> {
    let servers = Server::several(count).unwrap();
    client(&servers).connect(SOON).unwrap();
    servers
}

fn keeps_all(program: &Path, valgrind: &[&str]) {
    prints(program, valgrind, &founded(3), "all kept\n");
}

/// Runs a program with these servers, and compares all that it prints.
#[track_caller]
fn prints(program: &Path, valgrind: &[&str], servers: &[Server], expected: &str) {
    let mut command = command(program, valgrind);
    let ended = program::run(command.args(servers.each(Server::url)));
    assert_eq!(ended.err, "");
    assert_eq!(ended.exits(0).out, expected);
}

#[test]
fn calls_in_any_order_give_what_is_promised() {
    in_each_way("misuse", &STRICT, keeps_all);
}

#[test]
fn a_provider_finds_the_credentials_of_each_node() {
    skip_unless!(has_users());
    let program = compile("credentials", "tests/it/capi/credentials.c", &["-std=c99"]);
    for valgrind in [&[][..], &STRICT] {
        let servers = founded(3);
        for server in &servers {
            let user = ["ACL", "SETUSER", "app", "on", ">one", "~*", "&*", "+@all"];
            server.command(&user).unwrap();
        }
        prints(&program, valgrind, &servers, "all kept\n");
    }
}

#[test]
fn reentrant_locks_have_threads_and_objects_as_owners() {
    in_each_way("reentrant", &STRICT, keeps_all);
}

#[test]
fn locks_to_read_and_to_write_exclude_and_share_as_they_should() {
    in_each_way("read_write", &STRICT, keeps_all);
}

#[test]
fn fair_locks_have_numbers_if_they_are_fenced() {
    in_each_way("fair", &STRICT, keeps_all);
}

#[test]
fn sets_of_resources_are_mutexes_like_others() {
    in_each_way("sets", &STRICT, keeps_all);
}

#[test]
fn permits_are_mutexes_that_several_hold() {
    in_each_way("permits", &STRICT, keeps_all);
}

#[test]
fn examples_leave_not_a_byte() {
    let servers = founded(3);
    for (name, arguments) in [("quickstart", &[][..]), ("workers", &["4", "50"])] {
        let program = compile(
            &format!("{name}-checked"),
            format!("examples/c/{name}.c"),
            &["-std=c99"],
        );
        let mut command = command(&program, &STRICT);
        command.args(arguments).args(servers.each(Server::url));
        assert_eq!(program::run(command).exits(0).err, "");
    }
}

/// Servers hang and die when the program has reported that it is ready.
fn hosts(program: &Path, valgrind: &[&str]) {
    let mut servers = founded(5);
    let mut command = command(program, valgrind);
    // Under valgrind, a pair takes thirty times as long.
    command.arg(if valgrind.is_empty() { "300" } else { "30" });
    command
        .args(servers.each(Server::url))
        .env("ASAN_OPTIONS", "detect_leaks=0");
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut input = running.child.stdin.take().unwrap();
    running.heard("ready");
    servers[0].pause().unwrap();
    servers[4].kill();
    input.write_all(b"\n").unwrap();
    let ended = running.wait().exits(0).begins("ready\n");
    assert_eq!(ended.err, "");
    assert!(ended.out.ends_with(" interruptions\n"), "{}", ended.out);
}

#[test]
fn a_host_of_any_habits_is_at_home() {
    in_each_way("host", &LENIENT, hosts);
}

#[test]
fn a_library_that_is_closed_leaves_nothing() {
    let program = compile_with(
        "loader",
        "tests/it/capi/loader.c",
        ["-std=c99", "-ldl", "-rdynamic"],
    );
    // The program begins with the first alone.
    let servers = founded(3);
    let path = library().join("libquorumlock.so").display().to_string();
    let mut urls = servers.each(Server::url);
    // By its name, which has to be looked up. Not the first: only that one is used for a moment,
    // and a look-up takes longer.
    urls[2] = urls[2].replace("127.0.0.1", "localhost");
    for (valgrind, moments) in [(&[][..], MOMENTS), (&LENIENT, "3")] {
        let mut command = command(&program, valgrind);
        command.args([&path, moments]).args(&urls);
        assert_eq!(program::run(command).exits(0).out, "nothing is left\n");
    }
}

#[test]
fn restarts_of_nodes_are_reported() {
    let program = compile("nodes", "tests/it/capi/nodes.c", &["-std=c99"]);
    let mut servers = Server::several(3).unwrap();
    servers.push(durable().start().unwrap());
    ask(&servers[1], &["CONFIG", "SET", "maxmemory", "100mb"]);
    ask(
        &servers[1],
        &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"],
    );
    let half = Duration::from_secs(30);
    let another = builder(&servers).ttl(half).max_ttl(half).build().unwrap();
    another.connect(SOON).unwrap();
    drop(take(&another.mutex("nodes")));
    another.flush_releases(SOON).unwrap();
    let mut command = command(&program, &[]);
    command
        .args(servers.each(Server::url))
        .arg("redis://127.0.0.1:1");
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut input = running.child.stdin.take().unwrap();
    running.heard("ready");
    // The last one is declared durable.
    for index in [0, 3] {
        servers[index].restart().unwrap();
    }
    input.write_all(b"\n").unwrap();
    let said = running.wait().exits(0).out;
    let has = |line: String| assert!(said.contains(&line), "{line}: {said}");
    let addresses: Vec<String> = servers.each(Server::address);
    has(format!(
        "14: {} may have forgotten locks, does not vote for ",
        addresses[0]
    ));
    for server in &servers {
        for (kind, line) in [
            (24, "noted a max_ttl of 30 s, this one has 60 s"),
            (25, "noted 4 nodes, this one has 5"),
        ] {
            let line = format!("{kind}: {}: another program has {line}", server.address());
            assert_eq!(said.matches(&line).count(), 1, "{line}: {said}");
        }
    }
    has(format!(
        "13: {} may evict locks (allkeys-lru)",
        addresses[1]
    ));
    has(format!("node 0: {}: in quarantine", addresses[0]));
    for index in [1, 2, 3] {
        has(format!("node {index}: {}: voting", addresses[index]));
    }
    has("node 4: 127.0.0.1:1: down, known for ".into());
}

/// Cancellation ends a thread after its call, and not in the middle of it. No key is left.
#[test]
fn a_thread_that_waits_may_be_cancelled() {
    let program = compile("cancel", "tests/it/capi/cancel.c", &["-std=c99"]);
    for valgrind in [&[][..], &LENIENT] {
        let servers = founded(3);
        prints(&program, valgrind, &servers, "alive\n");
        let is_empty = |server: &Server| server.keys().is_ok_and(|keys| keys.is_empty());
        assert!(
            eventually(program::LIMIT, || servers.all(is_empty)),
            "a key is left"
        );
    }
}
