//! The words of a command line: flags, their values and operands, by lexopt.

use crate::exit::Failure;
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// One word of meaning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// With its dashes: `-q` or `--wait`.
    Flag(String),
    /// A name or a pattern.
    Operand(String),
    /// What stands behind `--`.
    Rest(Vec<OsString>),
}

impl Word {
    /// Whether it is this flag.
    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self, Word::Flag(flag) if flag == name)
    }

    /// Takes the word if it is the one operand of a command. False if it is none, or another one.
    pub(crate) fn sets(&self, operand: &mut Option<String>) -> bool {
        match self {
            Word::Operand(text) if operand.is_none() => *operand = Some(text.clone()),
            _ => return false,
        }
        true
    }
}

/// What is left of a command line.
pub(crate) struct Arguments {
    all: Vec<OsString>,
    parser: Parser,
}

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = OsString>) -> Arguments {
        let all: Vec<OsString> = words.collect();
        Arguments { parser: Parser::from_args(all.iter().cloned()), all }
    }

    /// Whether `--help` or `-h` is among the words in front of `--`.
    pub(crate) fn wants_help(&self) -> bool {
        self.all.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
    }

    pub(crate) fn first(&self) -> Option<&str> {
        self.all.first().and_then(|word| word.to_str())
    }

    pub(crate) fn next(&mut self) -> Result<Option<Word>, Failure> {
        if let Some(mut raw) = self.parser.try_raw_args()
            && raw.next_if(|word| word == OsStr::new("--")).is_some()
        {
            return Ok(Some(Word::Rest(raw.collect())));
        }
        Ok(self.parser.next()?.map(|word| match word {
            Arg::Short(letter) => Word::Flag(format!("-{letter}")),
            Arg::Long(name) => Word::Flag(format!("--{name}")),
            Arg::Value(value) => Word::Operand(value.to_string_lossy().into_owned()),
        }))
    }

    /// The value of the flag that was read last.
    pub(crate) fn text(&mut self, flag: &str) -> Result<String, Failure> {
        let value = self.parser.value().map_err(|_| Failure::usage(format!("{flag} needs a value")))?;
        value.into_string().map_err(|_| Failure::usage(format!("the value of {flag} is not UTF-8")))
    }

    pub(crate) fn duration(&mut self, flag: &str) -> Result<Duration, Failure> {
        let text = self.text(flag)?;
        let refused = || Failure::usage(format!("{flag} takes a duration, such as 250ms, 30s or 5m"));
        quorumlock::duration(&text).ok_or_else(refused)
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self, flag: &str) -> Result<N, Failure> {
        let text = self.text(flag)?;
        text.parse().map_err(|_| Failure::usage(format!("{flag} takes a number")))
    }
}

/// The failure of a word that the command does not know.
pub(crate) fn unexpected(command: &str, word: &Word) -> Failure {
    let what = match word {
        Word::Flag(flag) => format!("no option {flag}"),
        Word::Operand(_) => "no such operand".to_owned(),
        Word::Rest(_) => "nothing behind --".to_owned(),
    };
    Failure::usage(format!("{command} takes {what}; quorumlock {command} --help lists its options"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments::new(words.iter().map(OsString::from))
    }

    #[test]
    fn what_stands_behind_two_dashes_is_left_alone() {
        let mut words = arguments(&["--wait=5s", "-q", "name", "--", "--", "-q", "--help"]);
        assert!(!words.wants_help());
        assert_eq!(words.next().unwrap(), Some(Word::Flag("--wait".into())));
        assert_eq!(words.duration("--wait").unwrap(), Duration::from_secs(5));
        assert_eq!(words.next().unwrap(), Some(Word::Flag("-q".into())));
        assert_eq!(words.next().unwrap(), Some(Word::Operand("name".into())));
        let rest = ["--", "-q", "--help"].map(OsString::from).to_vec();
        assert_eq!(words.next().unwrap(), Some(Word::Rest(rest)));
        assert_eq!(words.next().unwrap(), None);
    }

    #[test]
    fn a_value_that_is_none_is_refused_without_being_shown() {
        let mut words = arguments(&["--ttl", "hunter2", "--count"]);
        words.next().unwrap();
        assert!(!words.duration("--ttl").unwrap_err().message.contains("hunter2"));
        words.next().unwrap();
        assert_eq!(words.text("--count").unwrap_err().message, "--count needs a value");
    }
}
