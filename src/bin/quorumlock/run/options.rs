//! The options of `run`.

use crate::deployment::Deployment;
use crate::exit::{self, Failure};
use crate::settings::{self, duration};
use clap::{Args, ValueHint};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// Time to live unless `--ttl` or the settings set another: extended by a watchdog, so it bounds
/// how long a lock outlives a machine that fails.
const TTL: Duration = Duration::from_secs(30);
/// The longest grace that is not asked for by `--grace`.
const GRACE: Duration = Duration::from_secs(5);
/// Part of the time to live that is the grace of a short lock.
const GRACE_PART: u32 = 6;

/// What `run` is asked for.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) lock: LockOptions,
    /// exit code when the lock is held by another client, or the time of --wait is up
    #[arg(short = 'E', long, value_name = "CODE", default_value = "75")]
    pub(super) held_exit_code: u8,
    /// leave COMMAND in the process group of this program
    #[arg(long)]
    pub(super) foreground: bool,
    /// run the words behind -- by sh -c
    #[arg(long)]
    shell: bool,
    /// leave QUORUMLOCK_NODES in the environment of COMMAND
    #[arg(long)]
    pub(super) keep_nodes: bool,
    /// write events to this open descriptor, as JSON, one in each line
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(0..))]
    pub(super) json_events: Option<i32>,
    /// write nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// write every event to standard error
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// the name of a lock; several are taken in the order of their names
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// what is run, with its arguments
    #[arg(last = true, required = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
    #[command(flatten)]
    pub(super) settings: settings::Options,
}

/// How the locks are taken and kept.
#[derive(Debug, Args)]
pub(crate) struct LockOptions {
    /// wait for at most D; without it, for as long as the lock is held
    #[arg(long, value_name = "D", value_parser = duration, overrides_with = "no_wait")]
    wait: Option<Duration>,
    /// do not wait while another client holds the lock
    #[arg(short, long)]
    no_wait: bool,
    /// time to live, extended while COMMAND runs (30s)
    #[arg(long, value_name = "D", value_parser = duration)]
    ttl: Option<Duration>,
    /// do not extend; COMMAND is ended before its time to live is over
    #[arg(long)]
    pub(super) no_extend: bool,
    /// how long before the end of a lost lease COMMAND gets SIGTERM (5s, or a sixth of the ttl)
    #[arg(long, value_name = "D", value_parser = duration)]
    grace: Option<Duration>,
    /// keep the lock for D, also if COMMAND ends before; a shorter ttl is raised to D
    #[arg(long, value_name = "D", value_parser = duration, default_value = "0s", hide_default_value = true)]
    pub(super) min_hold: Duration,
    /// programs that all say --fair get the lock in the order in which they came to wait
    #[arg(long, conflicts_with_all = ["read", "write", "permits"])]
    pub(super) fair: bool,
    /// give COMMAND, as QUORUMLOCK_FENCE, a number that grows with every acquisition
    #[arg(long, conflicts_with_all = ["read", "permits"])]
    pub(super) fenced: bool,
    /// take the lock to read, together with others that read
    #[arg(long, conflicts_with_all = ["write", "permits"])]
    pub(super) read: bool,
    /// take the lock to write, alone; it is the same lock as with --read
    #[arg(long, conflicts_with = "permits")]
    pub(super) write: bool,
    /// let N programs hold the lock at once, 1 to 256: take one of N permits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) permits: Option<u16>,
}

impl Options {
    /// Sorts the names: with one order for all programs, two that take the same locks do not wait
    /// for each other.
    pub(super) fn sort(&mut self) -> Result<(), Failure> {
        self.names.sort_unstable();
        match self.names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::usage(format!(
                "the lock {:?} is named twice",
                pair[0]
            ))),
            None => Ok(()),
        }
    }

    /// The words to execute.
    pub(super) fn words(&self) -> Vec<OsString> {
        if self.shell {
            vec!["sh".into(), "-c".into(), self.command.join(OsStr::new(" "))]
        } else {
            self.command.clone()
        }
    }
}

impl LockOptions {
    /// How long to wait at most; none without a limit.
    pub(super) fn limit(&self) -> Option<Duration> {
        if self.no_wait {
            Some(Duration::ZERO)
        } else {
            self.wait
        }
    }

    /// The time to live, and how long before its end the command is asked to stop. A lock whose
    /// release reaches no node remains held for its time to live, so that is no shorter than
    /// `--min-hold`.
    ///
    /// # Errors
    /// No lock lasts for `--min-hold`.
    pub(super) fn times(&self, deployment: &Deployment) -> Result<(Duration, Duration), Failure> {
        let settings = deployment.settings();
        let max_ttl = settings.max_ttl;
        if self.min_hold > max_ttl {
            let message = format!(
                "--min-hold is longer than --max-ttl ({}): raise --max-ttl in every client of these nodes",
                quorumlock::algorithm::time::Human(max_ttl)
            );
            return Err(Failure::new(exit::CONFIG, message));
        }
        let ttl = self.ttl.or(settings.ttl).unwrap_or(TTL).max(self.min_hold);
        Ok((ttl, self.grace.unwrap_or(usual_grace(ttl))))
    }
}

/// The grace of a lock with this time to live, unless `--grace` sets another.
pub(super) fn usual_grace(ttl: Duration) -> Duration {
    GRACE.min(ttl / GRACE_PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Options {
        Arguments::parse_from([&["run"], words].concat()).options
    }

    #[test]
    fn names_are_sorted_and_the_rest_is_the_command() {
        let mut options = parse(&[
            "--wait",
            "1s",
            "b",
            "-nq",
            "--wait=5s",
            "a",
            "--",
            "run",
            "-q",
            "--help",
        ]);
        options.sort().unwrap();
        assert_eq!(options.names, ["a", "b"]);
        assert_eq!(options.words(), ["run", "-q", "--help"]);
        assert_eq!(options.lock.limit(), Some(Duration::from_secs(5)));
        assert_eq!(
            parse(&["--wait", "1s", "-n", "a", "--", "true"])
                .lock
                .limit(),
            Some(Duration::ZERO)
        );
        assert_eq!(
            parse(&["--shell", "a", "--", "echo a", "| cat"]).words(),
            ["sh", "-c", "echo a | cat"]
        );
        assert!(
            parse(&["a", "a", "--", "true"])
                .sort()
                .unwrap_err()
                .message
                .contains("twice")
        );
    }
}
