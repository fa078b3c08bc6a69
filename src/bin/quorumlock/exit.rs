//! How the program ends: its exit codes, and failures on the way there.

use quorumlock::{Error, ErrorKind};
use std::process::ExitCode;

/// An exit code, after sysexits.h where it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    pub(crate) const OK: Exit = Exit(0);
    /// A finding of `nodes`, `scan` or `doctor`.
    pub(crate) const FINDINGS: Exit = Exit(1);
    /// No majority: `nodes` and `doctor`.
    pub(crate) const NO_QUORUM: Exit = Exit(2);
    pub(crate) const USAGE: Exit = Exit(64);
    pub(crate) const UNAVAILABLE: Exit = Exit(69);
    /// The lock was lost while the command ran.
    pub(crate) const LOST: Exit = Exit(70);
    /// The operating system refused a process, a pipe or entropy.
    pub(crate) const SYSTEM: Exit = Exit(71);
    pub(crate) const CONFIG: Exit = Exit(78);
    pub(crate) const NOT_EXECUTABLE: Exit = Exit(126);
    pub(crate) const NOT_FOUND: Exit = Exit(127);

    pub(crate) fn code(code: u8) -> Exit {
        Exit(code)
    }

    /// As a shell shows a program that a signal has ended.
    pub(crate) fn signal(number: i32) -> Exit {
        Exit(128_u8.saturating_add(u8::try_from(number).unwrap_or(u8::MAX)))
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        exit.0.into()
    }
}

/// Words of the library for settings, and what they are called here.
const OPTIONS: [(&str, &str); 10] = [
    (" with Builder::node", " by its URL"),
    ("by Tls::roots_file or the variable CACERT", "by --cacert"),
    ("by Builder::tls", "by --cacert"),
    ("a time to live of", "--ttl of"),
    ("a watchdog's margin of", "--grace of"),
    ("(drift_factor and", "(--drift-factor and"),
    ("(node_timeout)", "(--node-timeout)"),
    ("max_ttl (", "--max-ttl ("),
    ("raise max_ttl", "raise --max-ttl"),
    (
        "let a watchdog extend the lock",
        "name a shorter one: the lock is extended while the command runs",
    ),
];

/// Why a command ended early: one line for standard error, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::USAGE, message)
    }

    /// For the error of a call that was to do this.
    pub(crate) fn system<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> Failure {
        move |error| Failure::new(Exit::SYSTEM, format!("cannot {what}: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match error.kind() {
            ErrorKind::Config => Exit::CONFIG,
            ErrorKind::LeaseLost => Exit::LOST,
            ErrorKind::Unavailable => Exit::UNAVAILABLE,
            _ => Exit::SYSTEM,
        };
        let message = OPTIONS
            .iter()
            .fold(error.to_string(), |text, (word, option)| {
                text.replace(word, option)
            });
        Failure::new(exit, message)
    }
}
