//! The command line, as clap derives it from the options of each command.

use crate::exit::{self, Failure};
use crate::{bench, break_lock, doctor, list, nodes, run, scan, show};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::error::Error;

const CONCLUSION: &str = "\
A duration D is a number and us, ms, s, m, h or d. quorumlock COMMAND --help shows the options of a command, and
quorumlock --version the version. The nodes are those of QUORUMLOCK_NODES, --config or --nodes.";

const RUN_CONCLUSION: &str = "\
When the lock is lost, COMMAND gets SIGTERM, and SIGKILL half a second before the lease ends, or less for a ttl below
9s. Exit code: that of COMMAND, 128+n for signal n; 70 the lock was lost, 75 held, 69 too few nodes answer, or a key
without expiry holds the lock; 64 usage, 78 a setting cannot be used, 71 the system refused something, 126 and 127
COMMAND cannot be run or was not found.";

/// quorumlock: run programs under a distributed lock, and look at the nodes that hold it
#[derive(Debug, Parser)]
#[command(name = "quorumlock", version, after_help = CONCLUSION, args_override_self = true)]
#[command(subcommand_value_name = "COMMAND")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// All commands, in the order of the manual.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// run a command under a lock; it is dead before the lease is
    #[command(after_help = RUN_CONCLUSION)]
    Run(Box<run::Options>),
    /// one line for each node; exit 0 if all vote, 1 if a majority does, 2 otherwise
    Nodes(nodes::Options),
    /// what each node has of one lock
    Show(show::Options),
    /// all locks that the nodes have, by SCAN
    Ls(list::Options),
    /// keys that no lock should have left; exit 1 if there are any
    Scan(scan::Options),
    /// take a lock from its holder, which is not notified
    Break(break_lock::Options),
    /// examine each node, and say what endangers locks; exit 0 fine, 1 warnings, 2 cannot lock
    Doctor(doctor::Options),
    /// pairs of lock and unlock a second, and how long each takes
    Bench(bench::Options),
    /// a completion script for a shell
    Complete {
        /// the shell that reads it
        shell: Shell,
    },
    /// the manual page, as man reads it
    Manual,
    /// the version, as --version
    Version,
}

/// What is wrong with the words of a command line, in one line. Clap's own messages repeat the
/// words, and one of them may be a password.
pub(crate) fn refusal(error: &clap::Error) -> Failure {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.replace(['<', '>'], ""),
        Some(ContextValue::Strings(arguments)) => arguments.join(" and ").replace(['<', '>'], ""),
        _ => String::new(),
    };
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    let given = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let has_value = !given(ContextKind::InvalidValue).is_empty();
    let message = match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "needs a COMMAND; quorumlock --help lists them".to_owned()
        }
        ErrorKind::InvalidSubcommand => {
            format!(
                "{:?} is no command; quorumlock --help lists them",
                given(ContextKind::InvalidSubcommand)
            )
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument.replace("COMMAND...", "-- COMMAND...");
            format!("needs {missing}; --help shows the usage")
        }
        ErrorKind::ArgumentConflict => {
            let other = given(ContextKind::PriorArg).replace(['<', '>'], "");
            format!("{option} cannot be used with {other}")
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            format!("there is no option {option} here; --help lists the options")
        }
        ErrorKind::UnknownArgument => "one word is too many; --help shows the usage".to_owned(),
        ErrorKind::InvalidValue if !has_value => format!("{option} needs a value"),
        ErrorKind::InvalidValue => format!(
            "{option}: must be one of {}",
            given(ContextKind::ValidValue)
        ),
        kind if option.is_empty() => kind.to_string(),
        kind => format!(
            "{option}: {}",
            error
                .source()
                .map_or_else(|| kind.to_string(), ToString::to_string)
                .replace("..=", " to ")
                .replace("invalid digit found in string", "must be a number")
        ),
    };
    let exit = match error.kind() {
        // The only setting whose values are known here.
        ErrorKind::InvalidValue if has_value && option == "--restart-policy" => exit::CONFIG,
        _ => exit::USAGE,
    };
    Failure::new(exit, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn what_makes_no_sense_is_one_line_without_the_words() {
        Arguments::command().debug_assert();
        for (words, expected) in [
            ("", "needs a COMMAND; quorumlock --help lists them"),
            (
                "nonsense",
                "\"nonsense\" is no command; quorumlock --help lists them",
            ),
            ("run a b", "needs -- COMMAND...; --help shows the usage"),
            (
                "run --fenced --read a -- b",
                "--fenced cannot be used with --read",
            ),
            ("run -- true", "needs NAME...; --help shows the usage"),
            (
                "run --wait hunter2 a -- true",
                "--wait: must be a duration, such as 250ms, 30s or 5m",
            ),
            ("run --ttl", "--ttl needs a value"),
            ("nodes --nodes", "--nodes needs a value"),
            (
                "nodes --durable=true",
                "--durable: unexpected value for an argument found",
            ),
            (
                "run --nonsense=hunter2",
                "there is no option --nonsense here; --help lists the options",
            ),
            ("run -E 256", "--held-exit-code: 256 is not in 0 to 255"),
            ("bench --threads hunter2", "--threads: must be a number"),
            (
                "show a hunter2",
                "one word is too many; --help shows the usage",
            ),
            (
                "scan --ignore x",
                "--ignore: must be one of no-expiry, too-long, foreign, fence-at-rest",
            ),
        ] {
            let words = ["quorumlock"].into_iter().chain(words.split_whitespace());
            let failure = refusal(&Arguments::try_parse_from(words).unwrap_err());
            assert_eq!(
                (failure.exit, failure.message.as_str()),
                (exit::USAGE, expected)
            );
        }
    }
}
