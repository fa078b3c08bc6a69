//! The examples: they compile without a warning, do what they describe, and report what went wrong.

use super::*;
use crate::clients::ok;
use std::os::unix::fs::symlink;

/// Lock and unlock pairs of each thread.
const PAIRS: u32 = 500;
/// Sets another number of pairs for each thread.
const PAIRS_VARIABLE: &str = "QUORUMLOCK_TEST_PAIRS";
/// What a static library of Rust needs of the system.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lutil", "-lrt", "-lm", "-ldl"];

/// The commands at the top of an example, as they are printed there, and run as in the folder of
/// this package when the library is built.
struct Printed {
    /// Has the same files.
    folder: PathBuf,
    starts: String,
}

impl Printed {
    /// Compiles the example.
    #[track_caller]
    fn of(example: &str) -> Printed {
        let folder = new_folder(example);
        fs::create_dir(folder.join("target")).unwrap();
        let built = (library().to_owned(), "target/release");
        let own = ["src", "examples"].map(|own| (root().join(own), own));
        for (original, link) in own.into_iter().chain([built]) {
            symlink(original, folder.join(link)).unwrap();
        }
        let text = text_of(&format!("examples/c/{example}"));
        let text = text.replace("\\\n *", "").replace("\\\n//\t", "");
        let marks = [" *     ", "    ", "//\t"];
        let shown = |line: &str| {
            let command = marks.iter().find_map(|mark| line.strip_prefix(mark));
            command.map(str::to_owned)
        };
        let commands = text.lines().skip_while(|line| shown(line).is_none());
        let mut commands: Vec<String> = commands.map_while(shown).collect();
        commands.retain(|command| *command != build_command());
        let starts = commands.pop().unwrap();
        let printed = Printed { folder, starts };
        for command in &commands {
            program::run(printed.shell(command)).exits(0);
        }
        printed
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = program::program("sh");
        // Python writes nothing beside the examples.
        shell.env("PYTHONDONTWRITEBYTECODE", "1");
        shell.args(["-c", command]).current_dir(&self.folder);
        shell
    }

    /// Starts it, with these URLs for those that are printed.
    fn start(&self, urls: &[String]) -> Command {
        let (start, _) = self.starts.split_once(" redis://").unwrap();
        self.shell(&format!("exec {start} {}", urls.join(" ")))
    }
}

impl Drop for Printed {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Runs a quickstart against servers, and against none.
#[track_caller]
fn starts_quickly(start: impl Fn(&[String]) -> Command) {
    let servers = Server::several(3).unwrap();
    let said = program::run(start(&servers.each(Server::url)));
    let said = said.exits(0).prints("ours for").out;
    assert!(said.ends_with("released in time\n"), "{said}");
    let failed = program::run(start(&["redis://127.0.0.1:1".to_owned()]));
    failed.exits(2).reports("127.0.0.1:1: connection refused");
}

/// The same for a program without options.
#[track_caller]
fn program_starts_quickly(path: &Path) {
    starts_quickly(|urls| {
        let mut command = program::program(path);
        command.args(urls);
        command
    });
}

#[test]
fn the_library_is_built_by_one_command_wherever_it_is_printed() {
    let is_printed = |page| text_of(page).contains(&build_command());
    assert!(
        ["src/docs/operations.md", "examples/c/quickstart.c"]
            .into_iter()
            .all(is_printed)
    );
    let wrapper = text_of("examples/c/quorumlock.py");
    let hint = wrapper
        .split("_BUILD = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next();
    assert_eq!(hint, build_command().strip_suffix(",staticlib"));
}

#[test]
fn the_quickstart_in_c_runs_with_the_shared_and_the_static_library() {
    let printed = Printed::of("quickstart.c");
    starts_quickly(|urls| printed.start(urls));
    for standard in ["-std=c99", "-std=c11"] {
        let name = format!("quickstart{standard}");
        let program = compile(&name, "examples/c/quickstart.c", &[standard]);
        program_starts_quickly(&program);
    }
    let archive = library().join("libquorumlock.a");
    let flags = ["-std=c99", archive.to_str().unwrap()]
        .into_iter()
        .chain(SYSTEM);
    let program = compile_with("quickstart-static", "examples/c/quickstart.c", flags);
    program_starts_quickly(&program);
}

#[test]
fn the_quickstart_in_cpp_runs() {
    let printed = Printed::of("quickstart.cpp");
    starts_quickly(|urls| printed.start(urls));
    let standard = ["-std=c++17"];
    compile("quickstart-cpp", "examples/c/quickstart.cpp", &standard);
}

#[test]
fn the_quickstart_in_python_runs() {
    let printed = Printed::of("quickstart.py");
    starts_quickly(|urls| printed.start(urls));
}

#[test]
#[allow(clippy::print_stdout)]
fn the_quickstart_in_go_runs_and_an_interrupt_ends_its_wait() {
    if program::program("go").arg("version").output().is_err() {
        return println!("LEFT OUT: there is no go");
    }
    let printed = Printed::of("quickstart.go");
    starts_quickly(|urls| printed.start(urls));
    let server = Server::start().unwrap();
    ok(&server, &["SET", "orders/42", "another", "EX", "60"]);
    let running = Running::start(printed.start(&[server.url()]));
    thread::sleep(Duration::from_millis(300));
    running.send(Signal::SIGINT);
    running.wait().exits(2).reports("was cancelled");
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
    let printed = Printed::of("workers.c");
    let servers = Server::several(3).unwrap();
    let running = Running::start(printed.start(&servers.each(Server::url)));
    thread::sleep(Duration::from_millis(300));
    running.send(Signal::SIGINT);
    let ended = running.wait().exits(0).prints("0 failures");
    ended.hides("80000 pairs");
}
