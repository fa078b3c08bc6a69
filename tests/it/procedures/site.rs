//! The machines that the page on operations names: servers, a file of settings, and programs that
//! come and go.

use crate::incarnations::NO_LONGER_NEW;
use crate::prelude::*;
use crate::readme::blocks;
use crate::support::server::find_binary;
use std::process::Child;

const PAGE: &str = "src/docs/operations.md";
/// How long the commands of a block may take.
const LIMIT: Duration = Duration::from_secs(60);
/// What a program does until there is a file `stop`: it takes the lock, and then another one of the
/// system, which shows whether it is alone.
const PROGRAM: &str = "
    while [ ! -e stop ]; do
        quorumlock run --config started.env -q --ttl 1s --wait 300ms shared -- \\
            flock -n -E 9 inside sh -c 'echo >> turns; sleep 0.01'
        [ $? -ne 9 ] || echo >> overlaps
    done";

/// The code blocks of a procedure, in the order in which they are printed.
pub(super) fn procedure<const COUNT: usize>(heading: &str) -> [String; COUNT] {
    blocks(PAGE, &format!("## {heading}"), "sh")
        .try_into()
        .expect("each block has its part in the test")
}

/// What the page calls 10.0.0.1, 10.0.0.2 and so on, from 0 on.
pub(super) type Nodes<'n> = &'n [usize];

/// Servers, of which the first three are a deployment, and a machine with programs.
pub(super) struct Site {
    pub(super) servers: Vec<Server>,
    addresses: Vec<String>,
    /// Times of the page, and what they are here.
    times: Vec<(&'static str, &'static str)>,
    machine: Machine,
}

impl Site {
    /// So many servers, and the file that the page prints.
    pub(super) fn of(count: usize, times: &[(&'static str, &'static str)]) -> Site {
        let servers = Server::several(count).unwrap();
        let addresses = servers.each(Server::address);
        Site {
            servers,
            addresses,
            times: times.to_vec(),
            machine: Machine::new(),
        }
    }

    /// Puts a proxy before a node: it has the address from now on.
    pub(super) fn proxy(&mut self, node: usize) -> Proxy {
        let proxy = Proxy::before(self.servers[node].port());
        self.addresses[node] = format!("127.0.0.1:{}", proxy.port());
        proxy
    }

    /// Writes the file, and begins the deployment. Returns when it is no longer new.
    pub(super) fn begin(&self) {
        let [file] = blocks(PAGE, "# Procedures", "conf").try_into().unwrap();
        fs::write(
            self.machine.folder.join("quorumlock.env"),
            self.translated(&file),
        )
        .unwrap();
        self.run("quorumlock nodes --config /etc/quorumlock.env");
        thread::sleep(NO_LONGER_NEW);
    }

    /// Runs a block as it is printed. Only addresses, times and the folder of the file differ.
    #[track_caller]
    pub(super) fn run(&self, block: &str) {
        let script = format!("set -e\n{}", self.translated(block));
        self.shell(&script).end(LIMIT).exits(0);
    }

    fn translated(&self, text: &str) -> String {
        let text = self
            .times
            .iter()
            .fold(text.to_owned(), |text, (printed, here)| {
                text.replace(printed, here)
            });
        let text = text.replace("/etc/quorumlock.env", "quorumlock.env");
        let nodes = self.addresses.iter().enumerate();
        nodes.fold(text, |text, (index, address)| {
            text.replace(&format!("10.0.0.{}", index + 1), address)
        })
    }

    /// A shell on the machine.
    pub(super) fn shell(&self, script: &str) -> Running {
        Running::start(&mut self.machine.command(script))
    }

    /// A program that has just started, and has these nodes.
    pub(super) fn fresh(&self, nodes: Nodes<'_>, max_ttl: Duration) -> Redlock {
        self.builder(nodes, max_ttl).build().unwrap()
    }

    pub(super) fn builder(&self, nodes: Nodes<'_>, max_ttl: Duration) -> Builder {
        let urls = nodes
            .iter()
            .map(|&node| format!("redis://{}", self.addresses[node]));
        builder([])
            .nodes(urls)
            .prefix("jobs/")
            .ttl(max_ttl)
            .max_ttl(max_ttl)
    }

    /// A program with these nodes takes a lock for `max_ttl`, which has a key on some of them
    /// alone.
    #[track_caller]
    pub(super) fn hold(
        &self,
        nodes: Nodes<'_>,
        on: Nodes<'_>,
        name: &str,
        max_ttl: Duration,
    ) -> MutexGuard {
        let guard = take(&self.fresh(nodes, max_ttl).mutex(name));
        let key = format!("jobs/{name}");
        for &node in nodes {
            let is_there = || value(&self.servers[node], &key).is_some();
            if on.contains(&node) {
                assert_soon!(is_there());
            } else {
                // The key may still be on its way, unless the node is cut off.
                eventually(SOON / 40, is_there);
                self.servers[node].command(&["DEL", &key]).unwrap();
            }
        }
        guard
    }

    /// Whether programs with the one list and programs with the other exclude each other, however
    /// few nodes have the lock: each of the least majorities is tried.
    #[track_caller]
    pub(super) fn exclude_each_other(
        &self,
        one: Nodes<'_>,
        other: Nodes<'_>,
        max_ttl: Duration,
    ) -> bool {
        let excludes = |holding: Nodes<'_>, asking: Nodes<'_>| {
            majorities(holding).all(|on| {
                let name = format!("of {holding:?}, on {on:?}, not for {asking:?}");
                let held = self.hold(holding, &on, &name, max_ttl);
                let attempt = self
                    .fresh(asking, max_ttl)
                    .mutex(name)
                    .try_lock()
                    .expect("all nodes vote");
                attempt.is_none() || held.remaining().is_zero()
            })
        };
        excludes(one, other) && excludes(other, one)
    }

    /// A word of what a node remembers: 4 is `max_ttl`, 5 the number of nodes.
    pub(super) fn noted(&self, node: usize, word: usize) -> String {
        let note = value(&self.servers[node], "quorumlock-node:jobs/").expect("a note");
        note.split(' ').nth(word).unwrap().to_owned()
    }

    /// Starts programs that use the file.
    pub(super) fn programs(&self) -> Programs {
        Programs::start(&self.machine)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.machine.folder);
    }
}

/// The least majorities of these nodes.
fn majorities(nodes: Nodes<'_>) -> impl Iterator<Item = Vec<usize>> {
    let sets =
        (0..1_u32 << nodes.len()).filter(|set| set.count_ones() as usize == nodes.len() / 2 + 1);
    let members = |set| {
        nodes
            .iter()
            .copied()
            .enumerate()
            .filter(move |(at, _)| set & 1 << at != 0)
    };
    sets.map(move |set: u32| members(set).map(|(_, node)| node).collect())
}

/// A folder, and the programs that the page uses.
#[derive(Clone)]
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        Machine {
            folder: new_folder("site"),
        }
    }

    fn command(&self, script: &str) -> Command {
        let mut command = program("sh");
        without_variables(&mut command, "QUORUMLOCK_");
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let server = find_binary().unwrap();
        // `redis-cli` may be beside the server alone.
        let [program, server] = [Path::new(env!("CARGO_BIN_EXE_quorumlock")), &server]
            .map(|path| path.parent().unwrap());
        let inherited = std::env::split_paths(&inherited);
        let folders = [program.to_owned()]
            .into_iter()
            .chain(inherited)
            .chain([server.to_owned()]);
        command.env("PATH", std::env::join_paths(folders).unwrap());
        // A busy machine is no reason to fail.
        command.env("QUORUMLOCK_NODE_TIMEOUT", "1s");
        command.args(["-c", script]).current_dir(&self.folder);
        command
    }

    fn lines(&self, file: &str) -> usize {
        fs::read_to_string(self.folder.join(file))
            .unwrap_or_default()
            .lines()
            .count()
    }
}

/// Programs that take one lock in turns, by what the file contained when they were started.
pub(super) struct Programs {
    machine: Machine,
    running: Vec<Child>,
}

impl Programs {
    fn start(machine: &Machine) -> Programs {
        fs::copy(
            machine.folder.join("quorumlock.env"),
            machine.folder.join("started.env"),
        )
        .unwrap();
        let start = |_| {
            machine
                .command(PROGRAM)
                .stdout(Stdio::inherit())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        Programs {
            machine: machine.clone(),
            running: (0..2).map(start).collect(),
        }
    }

    /// Ends all of them and starts new ones.
    #[track_caller]
    pub(super) fn restart(&mut self) {
        self.stop();
        fs::remove_file(self.machine.folder.join("stop")).unwrap();
        *self = Programs::start(&self.machine);
    }

    /// They go on taking turns.
    #[track_caller]
    pub(super) fn go_on(&self) {
        let turns = self.machine.lines("turns");
        assert_soon!(
            self.machine.lines("turns") > turns + 3,
            "programs do not get the lock"
        );
    }

    /// Ends all of them for good.
    #[track_caller]
    pub(super) fn end(mut self) {
        self.stop();
    }

    /// Lets each end. No two were inside at once.
    #[track_caller]
    pub(super) fn stop(&mut self) {
        fs::write(self.machine.folder.join("stop"), "").unwrap();
        for mut program in self.running.drain(..) {
            assert!(program.wait().unwrap().success());
        }
        let overlaps = self.machine.lines("overlaps");
        assert_eq!(overlaps, 0, "two programs were inside at once");
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for program in &mut self.running {
            // After a failure. The program that a shell has started ends by itself.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
