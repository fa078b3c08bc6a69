//! Random requests for the script of a kind of lock, the same each time.

use crate::embedded_vs_real::{Choice, TTL};
use quorumlock::protocol::kinds;

/// The greatest number that counts exactly: a clock that is far ahead.
const MOST: u64 = (1 << 53) - 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Fenced,
    Permit,
    Plain,
    ReadWrite,
}

impl Kind {
    pub(super) fn script(self) -> &'static str {
        match self {
            Kind::Fenced => kinds::fenced::SCRIPT.text,
            Kind::Permit => kinds::permit::SCRIPT.text,
            Kind::Plain => kinds::plain::SCRIPT.text,
            Kind::ReadWrite => kinds::read_write::SCRIPT.text,
        }
    }

    /// The keys that have holders.
    pub(super) fn keys(self) -> &'static [&'static str] {
        if self == Kind::Permit {
            &["jobs#0", "jobs#1", "jobs#2"]
        } else {
            &["orders:42"]
        }
    }

    pub(super) fn queue(self) -> &'static str {
        if self == Kind::Permit {
            "quorumlock-queue:quorumlock-permits:jobs"
        } else {
            "quorumlock-queue:orders:42"
        }
    }
}

/// The channel of a client.
pub(super) fn channel(client: u64) -> String {
    format!("quorumlock:{client:016x}")
}

pub(super) struct Sequence {
    pub(super) kind: Kind,
    pub(super) choice: Choice,
    pub(super) step: u64,
    /// Whether something of the last request lasts for a moment, or its ticket is read from a
    /// clock.
    pub(super) needs_pause: bool,
    /// The first entry of the queue, as the last reply of a take contains it.
    pub(super) first: String,
    /// The token that was granted last.
    pub(super) holder: String,
}

impl Sequence {
    pub(super) fn new(kind: Kind) -> Sequence {
        Sequence {
            kind,
            choice: Choice(7),
            step: 0,
            needs_pause: false,
            first: String::new(),
            holder: String::new(),
        }
    }

    fn token(&mut self) -> String {
        format!("{:02x}", self.choice.of(&[1, 1, 1, 2, 3, self.step % 70])).repeat(20)
    }

    fn entry(&mut self) -> String {
        let client = self.choice.of(&[1, 2, 3, 4, 5, 6]);
        let call = self.choice.of(&[1, 1, 1, 2]);
        let kind = match self.kind {
            Kind::Fenced => "f",
            Kind::Permit => self.choice.of(&[
                "s3:",
                "s3:",
                "s3:",
                "s3:",
                "s2:",
                "s0:",
                "s99999999999999999999:",
                "s3",
            ]),
            Kind::Plain => "m",
            Kind::ReadWrite => self.choice.of(&["r", "r", "w"]),
        };
        format!("{client:016x}{kind}{call}")
    }

    /// One in so many.
    fn seldom(&mut self, many: u64) -> bool {
        self.choice.of(&(0..many).collect::<Vec<_>>()) == 0
    }

    fn millis(&mut self, usual: u64) -> String {
        let is_short = self.seldom(6);
        self.needs_pause |= is_short;
        if is_short { 1 } else { usual }.to_string()
    }

    fn ticket(&mut self) -> String {
        let is_ahead = self.seldom(40);
        self.needs_pause |= is_ahead;
        if is_ahead {
            MOST
        } else {
            self.choice
                .of(&[1, 7, 100, 1000, 1 + self.step / 10, 1 + self.step * 10])
        }
        .to_string()
    }

    fn least(&mut self) -> String {
        self.choice
            .of(&[1, 1, self.step + 1, 5000, MOST])
            .to_string()
    }

    /// Words that are put at the end while none before them is missing.
    fn optional(&mut self, words: Vec<String>) -> Vec<String> {
        let count = self.choice.of(&(0..=words.len()).collect::<Vec<_>>());
        words.into_iter().take(count).collect()
    }

    /// The arguments of the script.
    pub(super) fn request(&mut self) -> Vec<String> {
        let step = self.step;
        let token = self.token();
        self.needs_pause = false;
        let verbs: &[&str] = match self.kind {
            Kind::Fenced => &[
                "take", "take", "take", "release", "leave", "acquire", "extend", "raise",
            ],
            Kind::Permit | Kind::Plain => &[
                "take", "take", "take", "take", "release", "release", "leave",
            ],
            Kind::ReadWrite => &[
                "take", "take", "take", "take", "release", "leave", "acquire", "acquire", "extend",
                "extend",
            ],
        };
        let verb = self.choice.of(verbs);
        let is_of_holder = matches!(verb, "extend" | "raise" | "release") && self.seldom(2);
        let token = if is_of_holder && !self.holder.is_empty() {
            self.holder.clone()
        } else {
            token
        };
        let mut words = vec![verb.to_owned()];
        words.extend(match verb {
            "take" => self.take(token),
            "leave" => {
                let entry = self.entry();
                self.optional(vec![entry])
            }
            "release" => {
                let entry = self.entry();
                let ticket = self.ticket();
                let retention = self.millis(2 * TTL);
                let entry = if step.is_multiple_of(5) {
                    String::new()
                } else {
                    entry
                };
                let ticket = if self.seldom(2) {
                    String::new()
                } else {
                    ticket
                };
                let mut rest = self.optional(vec![entry, ticket]);
                if self.kind == Kind::Fenced {
                    rest.resize(2, String::new());
                    rest.push(retention);
                }
                [vec![token], rest].concat()
            }
            "raise" => vec![token, self.least(), self.millis(2 * TTL)],
            "acquire" | "extend" if self.kind == Kind::Fenced => {
                vec![
                    self.signature(token),
                    self.millis(TTL),
                    self.millis(2 * TTL),
                    self.least(),
                ]
            }
            _ => {
                let number = vec![self.millis(2 * TTL), self.least()];
                let access = self.choice.of(&["r", "w", "w"]).to_owned();
                let number = if access == "w" {
                    self.optional(number)
                } else {
                    Vec::new()
                };
                [vec![token, self.millis(TTL), access], number].concat()
            }
        });
        words
    }

    fn take(&mut self, token: String) -> Vec<String> {
        let entry = self.entry();
        let ticket = self.ticket();
        let mode = self
            .choice
            .of(&["p", "p", "p", "f", "q", "s", "n"])
            .to_owned();
        let other = self.entry();
        let challenged = self
            .choice
            .of(&["", "", "", &self.first, &other])
            .to_owned();
        let extra = match self.kind {
            Kind::Fenced => vec![self.millis(2 * TTL), self.least()],
            Kind::Permit => vec![self.choice.of(&["3", "3", "3", "3", "2", "0"]).to_owned()],
            Kind::Plain => Vec::new(),
            Kind::ReadWrite => {
                let access = if self.seldom(9) { "w" } else { &entry[16..17] }.to_owned();
                let number = vec![self.millis(2 * TTL), self.least()];
                let number = if access == "w" {
                    self.optional(number)
                } else {
                    Vec::new()
                };
                [vec![access], number].concat()
            }
        };
        let token = if self.kind == Kind::Fenced {
            self.signature(token)
        } else {
            token
        };
        [
            vec![token, self.millis(TTL), entry, ticket, mode, challenged],
            extra,
        ]
        .concat()
    }

    fn signature(&mut self, token: String) -> String {
        token + self.choice.of(&["", " host7"])
    }

    /// What no lock has written, and the end of it: a command for both nodes.
    pub(super) fn damage(&mut self) -> Option<Vec<String>> {
        let queue = self.kind.queue();
        let key = self.choice.of(self.kind.keys());
        let tokens = ["4", "5"].map(|digit| digit.repeat(40));
        let readers = |count: u64| {
            (0..count)
                .map(|index| format!(" {}:{:040x}", MOST, index + 9))
                .collect::<String>()
        };
        let values = match self.kind {
            Kind::Fenced => {
                vec![
                    format!("{MOST} 0 "),
                    format!("7 {MOST} {} host", tokens[0]),
                    format!("7 1 {}", tokens[0]),
                ]
            }
            Kind::Permit | Kind::Plain => {
                vec![tokens[0].clone(), "a\u{1}b\u{7f}cdefghijk".to_owned()]
            }
            Kind::ReadWrite => vec![
                format!("r{}", readers(63)),
                format!("r{}", readers(64)),
                format!("f 70 {MOST} w {MOST} {}", tokens[0]),
                format!("w 1 {} q {MOST}", tokens[0]),
                format!("f {MOST} {MOST}"),
                format!("r 1:{} {MOST}:{}", tokens[0], tokens[1]),
                format!("r {MOST}:{own} {}:{own}", MOST - 1, own = "01".repeat(20)),
            ],
        };
        let values: Vec<&str> = values
            .iter()
            .map(String::as_str)
            .chain(["junk", ""])
            .collect();
        let value = self.choice.of(&values);
        let score = self
            .choice
            .of(&["inf", "-inf", "5", "2.5", "1e300", "7000000000000000"]);
        let zero = format!("{:016x}m\u{0}x", 1);
        let long = "y".repeat(120);
        let member = self.choice.of(&[
            "x",
            "",
            "0000000000000001",
            "000000000000000as12",
            "s3:1",
            &zero,
            &long,
        ]);
        let words: &[&str] = match self.step % 60 {
            4 => &["DEL", key],
            9 => &["ZADD", queue, score, member],
            14 => &["SET", key, value],
            24 | 44 => &["DEL", key],
            29 => &["SET", queue, "junk"],
            34 => &["SET", key, value, "PX", "600000"],
            39 => &["ZADD", queue, score, member],
            49 => &["ZADD", key, "1", "m"],
            54 => &["DEL", key],
            59 if self.step % 120 == 59 => &["DEL", queue],
            _ => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }
}
