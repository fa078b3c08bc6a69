//! The options of `run`.

use crate::arguments::{Arguments, Word, unexpected};
use crate::exit::{Exit, Failure};
use crate::settings::{self, MAX_TTL};
use std::ffi::OsString;
use std::time::Duration;

/// Time to live unless `--ttl` or the settings say otherwise: extended by a watchdog, so it bounds how long a lock
/// outlives a machine that fails.
const TTL: Duration = Duration::from_secs(30);
/// The longest grace that is not asked for by `--grace`.
const GRACE: Duration = Duration::from_secs(5);
/// Part of the time to live that is the grace of a short lock.
const GRACE_PART: u32 = 6;

/// How long to wait for the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Patience {
    #[default]
    Forever,
    None,
    For(Duration),
}

/// What `run` is asked for.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) settings: settings::Options,
    pub(super) names: Vec<String>,
    pub(super) command: Vec<OsString>,
    pub(super) patience: Patience,
    ttl: Option<Duration>,
    grace: Option<Duration>,
    /// How long each lock stands at least, from when it was taken.
    pub(super) min_hold: Duration,
    pub(super) is_extended: bool,
    pub(super) is_fenced: bool,
    pub(super) is_fair: bool,
    pub(super) held_code: Exit,
    pub(super) is_foreground: bool,
    pub(super) is_shell: bool,
    pub(super) keeps_nodes: bool,
    pub(super) is_quiet: bool,
    pub(super) is_verbose: bool,
    pub(super) events_descriptor: Option<u32>,
}

impl Options {
    pub(super) fn parse(mut arguments: Arguments) -> Result<Options, Failure> {
        let mut options = Options { is_extended: true, held_code: Exit::HELD, ..Options::default() };
        while let Some(word) = arguments.next()? {
            if options.settings.take(&word, &mut arguments)? {
                continue;
            }
            match word {
                Word::Flag(flag) => options.flag(&flag, &mut arguments)?,
                Word::Operand(name) => options.names.push(name),
                Word::Rest(command) => options.command = command,
            }
        }
        options.check()?;
        Ok(options)
    }

    fn flag(&mut self, flag: &str, arguments: &mut Arguments) -> Result<(), Failure> {
        match flag {
            "--wait" => self.patience = Patience::For(arguments.duration(flag)?),
            "--no-wait" | "-n" => self.patience = Patience::None,
            "--ttl" => self.ttl = Some(arguments.duration(flag)?),
            "--no-extend" => self.is_extended = false,
            "--grace" => self.grace = Some(arguments.duration(flag)?),
            "--min-hold" => self.min_hold = arguments.duration(flag)?,
            "--fenced" => self.is_fenced = true,
            "--fair" => self.is_fair = true,
            "-E" | "--held-exit-code" => self.held_code = Exit::code(arguments.number(flag)?),
            "--foreground" => self.is_foreground = true,
            "--shell" => self.is_shell = true,
            "--keep-nodes" => self.keeps_nodes = true,
            "-q" | "--quiet" => self.is_quiet = true,
            "-v" | "--verbose" => self.is_verbose = true,
            "--json-events" => self.events_descriptor = Some(arguments.number(flag)?),
            _ => return Err(unexpected("run", &Word::Flag(flag.to_owned()))),
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Failure> {
        if self.names.is_empty() {
            return Err(Failure::usage("run needs the NAME of a lock"));
        }
        if self.command.is_empty() {
            return Err(Failure::usage("run needs a COMMAND behind --"));
        }
        // One order for all programs: two that take the same locks do not wait for each other.
        self.names.sort();
        if let Some(pair) = self.names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::usage(format!("the lock {:?} is named twice", pair[0])));
        }
        if self.is_shell {
            let words: Vec<String> = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            self.command = ["sh", "-c", &words.join(" ")].map(OsString::from).to_vec();
        }
        Ok(())
    }

    /// Refuses what no lock lasts for.
    pub(super) fn check_min_hold(&self, settings: &settings::Settings) -> Result<(), Failure> {
        let max_ttl = settings.duration("MAX_TTL", MAX_TTL);
        if self.min_hold > max_ttl {
            let message =
                format!("--min-hold is longer than --max-ttl ({})", quorumlock::algorithm::time::Human(max_ttl));
            return Err(Failure::new(Exit::CONFIG, message));
        }
        Ok(())
    }

    /// The time to live, and how long before its end the command is asked to stop. A lock whose release reaches no node
    /// stands for its time to live, so that is no shorter than `--min-hold`.
    pub(super) fn times(&self, settings: &settings::Settings) -> (Duration, Duration) {
        let ttl = self.ttl.unwrap_or_else(|| settings.duration("TTL", TTL)).max(self.min_hold);
        (ttl, self.grace.unwrap_or(GRACE.min(ttl / GRACE_PART)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, Failure> {
        Options::parse(Arguments::new(words.iter().map(OsString::from)))
    }

    #[test]
    fn names_are_sorted_and_the_rest_is_the_command() {
        let options = parse(&["--wait", "5s", "b", "-q", "a", "--", "run", "-q"]).unwrap();
        assert_eq!(options.names, ["a", "b"]);
        assert_eq!(options.command, ["run", "-q"]);
        assert_eq!(options.patience, Patience::For(Duration::from_secs(5)));
        let shell = parse(&["--shell", "a", "--", "echo a", "| cat"]).unwrap();
        assert_eq!(shell.command, ["sh", "-c", "echo a | cat"]);
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        let table: [(&[&str], &str); 7] = [
            (&["a"], "COMMAND"),
            (&["--", "true"], "NAME"),
            (&["a", "--"], "COMMAND"),
            (&["a", "a", "--", "true"], "twice"),
            (&["--wait", "5", "a", "--", "true"], "--wait takes a duration"),
            (&["--nonsense", "a", "--", "true"], "--nonsense"),
            (&["-E", "256", "a", "--", "true"], "-E takes a number"),
        ];
        for (words, expected) in table {
            let failure = parse(words).unwrap_err();
            assert_eq!(failure.exit, Exit::USAGE);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
    }
}
