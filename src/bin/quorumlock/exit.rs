//! How the program ends: its exit codes, and failures on the way there.

use quorumlock::{Error, ErrorKind};

/// An exit code, after sysexits.h where it has one.
pub(crate) type Exit = u8;

pub(crate) const OK: Exit = 0;
/// A finding of `nodes`, `scan` or `doctor`.
pub(crate) const FINDINGS: Exit = 1;
/// No majority: `nodes` and `doctor`.
pub(crate) const NO_QUORUM: Exit = 2;
pub(crate) const USAGE: Exit = 64;
pub(crate) const UNAVAILABLE: Exit = 69;
/// The lock was lost while the command ran.
pub(crate) const LOST: Exit = 70;
/// The operating system refused a process, a pipe or entropy.
pub(crate) const SYSTEM: Exit = 71;
pub(crate) const CONFIG: Exit = 78;
pub(crate) const NOT_EXECUTABLE: Exit = 126;
pub(crate) const NOT_FOUND: Exit = 127;

/// As a shell shows a program that a signal has ended.
pub(crate) fn signal(number: i32) -> Exit {
    128_u8.saturating_add(u8::try_from(number).unwrap_or(u8::MAX))
}

/// Words of the library for settings, and what they are called here.
const OPTIONS: [(&str, &str); 10] = [
    (
        ": it names the nodes by their URLs",
        ": name the nodes by it, --nodes or --config",
    ),
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
        Failure::new(USAGE, message)
    }

    /// For the error of a call that was to do this.
    pub(crate) fn system<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> Failure {
        move |error| Failure::new(SYSTEM, format!("cannot {what}: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match error.kind() {
            ErrorKind::Config => CONFIG,
            ErrorKind::LeaseLost => LOST,
            ErrorKind::Unavailable => UNAVAILABLE,
            _ => SYSTEM,
        };
        let message = OPTIONS
            .iter()
            .fold(error.to_string(), |text, (word, option)| {
                text.replace(word, option)
            });
        Failure::new(exit, message)
    }
}
