//! Servers, and the program that uses them.

use crate::prelude::*;
pub(super) use crate::support::program::{Ended, Running, program, run, send};

/// Multiplies repetitions.
const ROUNDS_VARIABLE: &str = "QUORUMLOCK_TEST_CLI_ROUNDS";

/// The program under test.
pub(super) const PRESENT: &str = env!("CARGO_BIN_EXE_quorumlock");

/// On a busy machine, replies come too late by the default.
pub(super) const PATIENT: &str = "--node-timeout 2s";

/// Far longer than what is waited for takes, on a busy machine too.
const SOON: Duration = Duration::from_secs(20);

/// How often what is repeated is repeated.
pub(super) fn rounds() -> usize {
    storm::number(ROUNDS_VARIABLE).unwrap_or(1) as usize
}

/// The words of a command: a text with blanks between them, or a list where a word has a blank.
pub(super) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

/// Words in one text, and others behind them that may have blanks, such as a script.
impl<const N: usize> Words for (&str, [&str; N]) {
    fn words(&self) -> Vec<&str> {
        [self.0.words(), self.1.to_vec()].concat()
    }
}

/// Several servers that are one deployment.
pub(super) struct Deployment {
    pub(super) servers: Vec<Server>,
}

impl Deployment {
    pub(super) fn of(count: usize) -> Deployment {
        Deployment {
            servers: Server::several(count).unwrap(),
        }
    }

    /// Two plain servers, and this one.
    pub(super) fn with_third(server: Server) -> Deployment {
        let mut deployment = Deployment::of(2);
        deployment.servers.push(server);
        deployment
    }

    /// This server alone.
    pub(super) fn of_one(server: Server) -> Deployment {
        Deployment {
            servers: vec![server],
        }
    }

    pub(super) fn urls(&self) -> String {
        self.servers.each(Server::url).join(",")
    }

    /// The program, with these nodes in its environment and nothing to read.
    pub(super) fn tool(&self, words: &(impl Words + ?Sized)) -> Command {
        self.tool_at(PRESENT, words)
    }

    /// The same for the program with this path.
    pub(super) fn tool_at(
        &self,
        program: impl AsRef<Path>,
        words: &(impl Words + ?Sized),
    ) -> Command {
        let mut command = tool_at(program.as_ref(), words);
        command.env("QUORUMLOCK_NODES", self.urls());
        command
    }

    /// Runs the program to its end.
    pub(super) fn run(&self, words: &(impl Words + ?Sized)) -> Ended {
        run(self.tool(words))
    }

    /// Runs it to an end without a failure.
    #[track_caller]
    pub(super) fn succeeds(&self, words: &(impl Words + ?Sized)) -> Ended {
        self.run(words).exits(0)
    }

    /// Runs it to an end with this exit code.
    #[track_caller]
    pub(super) fn ends(&self, code: i32, words: &(impl Words + ?Sized)) -> Ended {
        self.run(words).exits(code)
    }

    pub(super) fn start(&self, words: &(impl Words + ?Sized)) -> Running {
        Running::start(self.tool(words))
    }

    /// Starts a program that holds what these words of `run` name, and waits until each node has
    /// one key more.
    #[track_caller]
    pub(super) fn hold(&self, words: &str) -> Running {
        let wanted = self.keys() + self.servers.len();
        let holder = self.start(&format!("run {words} -- sleep 99"));
        self.wait_for_keys(wanted);
        holder
    }

    /// How many keys the servers have.
    pub(super) fn keys(&self) -> usize {
        self.servers
            .iter()
            .map(|server| server.keys().map_or(0, |keys| keys.len()))
            .sum()
    }

    #[track_caller]
    pub(super) fn wait_for_keys(&self, count: usize) {
        let has_them = || self.keys() == count;
        assert_soon!(has_them(), "no lock");
    }

    /// Waits until so many keys are left: less long than it takes one to end by itself.
    #[track_caller]
    pub(super) fn wait_until_left(&self, count: usize) {
        let keys = || self.servers.each(Server::keys);
        let are_left = || self.keys() == count;
        assert!(eventually(Duration::from_secs(5), are_left), "{:?}", keys());
    }
}

/// Sends a command to each of these servers, and all of them do it: none replies an error or nil.
#[track_caller]
pub(super) fn command_each(servers: &[Server], words: &(impl Words + ?Sized)) {
    let words = words.words();
    for server in servers {
        let answer = server.command(&words).unwrap();
        let is_done = !matches!(answer, Answer::Error(_) | Answer::Nil);
        assert!(is_done, "{words:?}: {answer:?}");
    }
}

/// The program without nodes.
pub(super) fn tool(words: &(impl Words + ?Sized)) -> Command {
    tool_at(Path::new(PRESENT), words)
}

/// The program with this path, without nodes.
pub(super) fn tool_at(path: &Path, words: &(impl Words + ?Sized)) -> Command {
    let mut command = program(path);
    without_variables(&mut command, "QUORUMLOCK_");
    command.args(words.words());
    command
}

/// The program in this shell script, as `$@`, with these nodes: what it writes is not read, unless
/// the script stores it.
pub(super) fn in_script(deployment: &Deployment, script: &str, operand: &Path) -> Command {
    let mut command = deployment.tool_at("sh", &["-c", script]);
    command
        .arg(operand)
        .arg(PRESENT)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The same program with no signal ignored, as programs inherit it in the background of a shell.
pub(super) fn with_signals(command: &Command) -> Command {
    let mut same = program("env");
    same.arg("--default-signal=HUP,INT,QUIT")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => same.env(name, value),
            None => same.env_remove(name),
        };
    }
    same
}

pub(super) fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Whether a process has a thread of this name: one that handles signals is there once they are
/// blocked.
pub(super) fn has_thread(pid: u32, name: &str) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .any(|comm| comm.trim() == name)
}

/// A new folder for the files of a test.
pub(super) fn folder() -> PathBuf {
    new_folder("cli")
}

/// The events that `--json-events` wrote: names, and the numbers of each.
pub(super) fn events(text: &str) -> Vec<(String, BTreeMap<String, u64>)> {
    let event = |line: &str| {
        let members = line
            .trim_matches(['{', '}'])
            .split(",\"")
            .filter_map(|member| member.split_once("\":"));
        let members: Vec<(&str, &str)> = members
            .map(|(name, value)| (name.trim_matches('"'), value))
            .collect();
        let name = members
            .iter()
            .find(|(name, _)| *name == "event")
            .map(|(_, value)| value.trim_matches('"'));
        let numbers = members
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.parse().ok()?)));
        (name.unwrap_or_default().to_owned(), numbers.collect())
    };
    text.lines().map(event).collect()
}

/// The time since the machine was started, in microseconds.
pub(super) fn boot_time_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000
}
