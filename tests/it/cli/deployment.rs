//! Servers, and the program that uses them.

use crate::support::server::Server;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Multiplies repetitions.
const ROUNDS_VARIABLE: &str = "QUORUMLOCK_TEST_CLI_ROUNDS";

/// The program under test.
pub(super) const PRESENT: &str = env!("CARGO_BIN_EXE_quorumlock");

/// On a busy machine, replies come too late by the default.
pub(super) const PATIENT: [&str; 2] = ["--node-timeout", "2s"];

/// How often what is repeated is repeated.
pub(super) fn rounds() -> usize {
    std::env::var(ROUNDS_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
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

    pub(super) fn urls(&self) -> String {
        self.servers
            .iter()
            .map(Server::url)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The program, with these nodes in its environment and nothing to read.
    pub(super) fn tool(&self, words: &[&str]) -> Command {
        self.tool_at(PRESENT, words)
    }

    /// The same for the program with this path.
    pub(super) fn tool_at(&self, program: impl AsRef<Path>, words: &[&str]) -> Command {
        let mut command = tool_at(program.as_ref(), words);
        command.env("QUORUMLOCK_NODES", self.urls());
        command
    }

    /// How many keys the servers have.
    pub(super) fn keys(&self) -> usize {
        self.servers
            .iter()
            .map(|server| server.keys().map_or(0, |keys| keys.len()))
            .sum()
    }
}

/// What the program writes, with this exit code and these words in its output.
#[track_caller]
pub(super) fn prints(deployment: &Deployment, words: &[&str], code: i32, parts: &[&str]) -> Ended {
    let ended = run(deployment.tool(words));
    assert_eq!(ended.code, Some(code), "{}", ended.all());
    for words in parts {
        assert!(ended.out.contains(words), "{words}: {}", ended.all());
    }
    ended
}

/// The program without nodes.
pub(super) fn tool(words: &[&str]) -> Command {
    tool_at(Path::new(PRESENT), words)
}

/// The program with this path, without nodes.
pub(super) fn tool_at(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUORUMLOCK_"))
    {
        command.env_remove(name);
    }
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The same program with no signal ignored, as programs inherit it in the background of a shell.
pub(super) fn with_signals(command: &Command) -> Command {
    let mut same = Command::new("env");
    same.arg("--default-signal=HUP,INT,QUIT")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => same.env(name, value),
            None => same.env_remove(name),
        };
    }
    same.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    same
}

/// What a program has written, and how it ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ended {
    pub(super) fn of(output: &Output) -> Ended {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    pub(super) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// Runs a program to its end.
pub(super) fn run(mut command: Command) -> Ended {
    Ended::of(&command.output().expect("the program starts"))
}

/// Waits for a program, and returns what it has written.
pub(super) fn wait(mut child: Child) -> Ended {
    let mut out = String::new();
    let mut err = String::new();
    child
        .stdout
        .take()
        .map(|mut pipe| pipe.read_to_string(&mut out));
    child
        .stderr
        .take()
        .map(|mut pipe| pipe.read_to_string(&mut err));
    Ended {
        code: child.wait().expect("it is a child").code(),
        out,
        err,
    }
}

/// A new folder for the files of a test.
pub(super) fn folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!(
        "cli-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
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
