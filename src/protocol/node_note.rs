//! What a node remembers of itself, on the wire: the look at its key, the text of a note, and how
//! one is stored.
//!
//! ```text
//!   look     GET key, TIME              the value or nothing; seconds and microseconds
//!   store    EVAL STORE 1 key …          the value that is there then, or nothing
//!   value    1 f|s TIME WALL TTL NODES RUN_ID REPLICATION FORMER
//!            format; founder or since; microseconds by the node's clock and by the writer's; the longest time to
//!            live in milliseconds; the number of nodes; the names of the incarnation. What follows is of a later
//!            version
//! ```

use super::command;
use super::error_reply::ErrorReply;
use super::resp::{self, Reply};
use super::script::script;
use crate::algorithm::digits;
use crate::algorithm::incarnation::run_id::{ReplicationIds, RunId};
use crate::algorithm::incarnation::{
    Found, Incarnation, LONGEST_MAX_TTL, Look, NewNote, Note, Origin, Seen,
};
use crate::fault::Cause;
use crate::fault::protocol_error::ProtocolError;
use std::time::Duration;

/// Stores a note: `EVAL STORE 1 key …`.
pub const STORE: &str = script!("lua/node.lua");

/// What the looks on one connection have brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLook {
    /// The value as it was read; empty if there was none.
    value: Vec<u8>,
    /// None until a look has succeeded.
    found: Option<Found>,
    /// The node's clock in microseconds, likewise.
    time: Option<u64>,
    /// Why the node has refused the last look, or to store a note.
    pub refusal: Option<Cause>,
    /// Whether the node tells at all: it is asked, the user may ask, and the server has the
    /// commands.
    is_told: bool,
    /// Whether the user may not store a note here, or the server has no scripts.
    is_refused: bool,
}

/// Asks for a node's key and for its clock: two commands.
pub fn look(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode(out, &[b"GET", key]);
    command::time(out);
}

impl NodeLook {
    /// Takes in the reply to a note that was to be stored: the value that is there now.
    ///
    /// # Errors
    /// A reply that it never returns.
    pub(super) fn learn_stored(&mut self, reply: Reply<'_>) -> Result<(), ProtocolError> {
        self.learn_value(reply)?;
        self.is_refused = !self.is_told;
        Ok(())
    }

    /// Whether the node tells what it remembers, as far as is known.
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Takes in the reply to the `GET` of a [`look`].
    ///
    /// # Errors
    /// A reply that it never returns.
    pub fn learn_value(&mut self, reply: Reply<'_>) -> Result<(), ProtocolError> {
        self.found = None;
        self.refusal = None;
        self.is_told = !self.is_refused;
        self.value.clear();
        match reply {
            Reply::Bulk(None) => self.found = Some(Found::Nothing),
            Reply::Bulk(Some(value)) => {
                self.value.extend_from_slice(value);
                self.found = Some(parse(value).map_or(Found::Damage, Found::Note));
            }
            Reply::Error(text) => {
                let error = ErrorReply::read(text);
                self.refusal = Some(error.cause);
                self.is_told = !error.is_withheld();
            }
            _ => return Err(ProtocolError::UnexpectedReply),
        }
        Ok(())
    }

    /// Takes in the reply to the `TIME` of a [`look`].
    ///
    /// # Errors
    /// A reply that it never returns.
    pub fn learn_time(&mut self, reply: Reply<'_>) -> Result<(), ProtocolError> {
        self.time = match reply {
            Reply::Error(text) => {
                let error = ErrorReply::read(text);
                self.refusal = Some(error.cause);
                self.is_told &= !error.is_withheld();
                None
            }
            reply => Some(command::time_reply(reply)?),
        };
        Ok(())
    }

    /// What is known of a node with these names, by a program whose wall clock shows this many
    /// microseconds.
    pub fn seen(&self, names: Option<Incarnation>, wall: u64) -> Seen {
        match (names.filter(|_| self.is_told), self.found, self.time) {
            (None, ..) => Seen::Untold,
            (Some(present), Some(found), Some(time)) => Seen::Look(Look {
                found,
                present,
                time,
                wall,
            }),
            (Some(_), ..) => Seen::Silent,
        }
    }

    /// Stores a note, if the node still has what this look has found.
    pub fn store(&self, out: &mut Vec<u8>, key: &[u8], new: &NewNote) {
        let Note {
            incarnation:
                Incarnation {
                    run_id,
                    replication,
                },
            origin,
            time,
            wall,
            max_ttl,
            nodes,
        } = new.note;
        let letter = if origin == Origin::Founder { 'f' } else { 's' };
        let (current, former) = replication.as_text();
        let behind = [
            format!(" {wall} {} {nodes} ", max_ttl.as_millis()).as_bytes(),
            run_id.as_text(),
            b" ",
            current,
            b" ",
            former,
        ]
        .concat();
        let looked = self.time.unwrap_or(0).to_string();
        let front = format!("1 {letter} ");
        let time = if new.keeps_times {
            time.to_string()
        } else {
            String::new()
        };
        let words: [&[u8]; 9] = [
            b"EVAL",
            STORE.as_bytes(),
            b"1",
            key,
            &self.value,
            looked.as_bytes(),
            front.as_bytes(),
            time.as_bytes(),
            &behind,
        ];
        resp::encode(out, &words);
    }
}

/// Reads a value. None for one that no program has written.
fn parse(value: &[u8]) -> Option<Note> {
    let mut words = value.split(|&byte| byte == b' ');
    let origin = match (words.next()?, words.next()?) {
        (b"1", b"f") => Origin::Founder,
        (b"1", b"s") => Origin::Since,
        _ => return None,
    };
    let mut number = || digits::number(words.next()?);
    let time = number()?;
    let wall = number()?;
    let max_ttl = number()?;
    let nodes = number()?;
    let incarnation = Incarnation {
        run_id: RunId::new(words.next()?)?,
        replication: ReplicationIds::new(words.next()?, words.next()?)?,
    };
    let max_ttl = Duration::from_millis(max_ttl);
    let nodes = u8::try_from(nodes).ok()?;
    (max_ttl <= LONGEST_MAX_TTL).then_some(Note {
        incarnation,
        origin,
        time,
        wall,
        max_ttl,
        nodes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::incarnation::{Rules, Standing};
    use crate::algorithm::quarantine::RestartPolicy;

    const KEY: &[u8] = b"quorumlock-node:orders/";

    fn incarnation(name: &str) -> Incarnation {
        let replication =
            ReplicationIds::new("b".repeat(40).as_bytes(), "0".repeat(40).as_bytes()).unwrap();
        Incarnation {
            run_id: RunId::new(name.repeat(40).as_bytes()).unwrap(),
            replication,
        }
    }

    fn text(letter: &str, time: u64, name: &str) -> String {
        format!(
            "1 {letter} {time} 7000000 60000 3 {} {} {}",
            name.repeat(40),
            "b".repeat(40),
            "0".repeat(40)
        )
    }

    /// What a look brings, in raw form.
    fn look(value: &str, time: &str) -> Result<NodeLook, ProtocolError> {
        let mut look = NodeLook::default();
        let mut learn =
            |bytes: &str, learn: fn(&mut NodeLook, Reply<'_>) -> Result<(), ProtocolError>| {
                let (reply, _) = resp::decode(bytes.as_bytes())?.unwrap();
                learn(&mut look, reply)
            };
        learn(value, NodeLook::learn_value)?;
        learn(time, NodeLook::learn_time)?;
        Ok(look)
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    const TIME: &str = "*2\r\n$1\r\n9\r\n$6\r\n000005\r\n";

    #[test]
    fn what_is_stored_is_read_again() {
        for (letter, origin) in [("f", Origin::Founder), ("s", Origin::Since)] {
            let looked = look(&bulk(&text(letter, 5_000_000, "a")), TIME).unwrap();
            let Seen::Look(seen) = looked.seen(Some(incarnation("a")), 8_000_000) else {
                panic!("{looked:?}")
            };
            let Found::Note(note) = seen.found else {
                panic!("{seen:?}")
            };
            let time = 5_000_000;
            let wall = 7_000_000;
            let max_ttl = Duration::from_secs(60);
            assert_eq!(
                note,
                Note {
                    incarnation: incarnation("a"),
                    origin,
                    time,
                    wall,
                    max_ttl,
                    nodes: 3
                }
            );
            assert_eq!((seen.time, seen.wall), (9_000_005, 8_000_000));
            let mut out = Vec::new();
            looked.store(
                &mut out,
                KEY,
                &NewNote {
                    note,
                    keeps_times: true,
                },
            );
            let [front, behind] = [
                format!("1 {letter} "),
                text(letter, 5_000_000, "a")[11..].to_owned(),
            ];
            let words = [
                &bulk(&text(letter, 5_000_000, "a")),
                &bulk("9000005"),
                &bulk(&front),
                &bulk("5000000"),
                &bulk(&behind),
            ];
            assert!(
                String::from_utf8(out)
                    .unwrap()
                    .ends_with(&words.map(String::as_str).concat()),
                "{letter}"
            );
        }
    }

    #[test]
    fn what_no_program_has_written_is_damage() {
        let good = text("f", 5, "a");
        let found = |value: &str| look(&bulk(value), TIME).unwrap().found.unwrap();
        assert!(matches!(
            found(&format!("{good} of a later version")),
            Found::Note(_)
        ));
        let longest = good.replace(" 60000 ", " 31622400000 ");
        assert!(matches!(found(&longest), Found::Note(_)), "366 days");
        for bad in [
            "",
            "x",
            &good[..good.len() - 1],
            &good.replacen('1', "2", 1),
            &good.replacen('f', "x", 1),
            &good.replace(" 3 ", " 300 "),
            &good.replace(" 60000 ", " 31622400001 "),
        ] {
            assert_eq!(found(bad), Found::Damage, "{bad}");
        }
        assert_eq!(look("$-1\r\n", TIME).unwrap().found, Some(Found::Nothing));
    }

    #[test]
    fn a_node_that_does_not_tell_is_told_from_one_that_fails() {
        let names = Some(incarnation("a"));
        for (value, time, seen) in [
            ("-NOPERM no\r\n", TIME, Seen::Untold),
            ("-ERR unknown command 'GET'\r\n", TIME, Seen::Untold),
            ("$-1\r\n", "-NOPERM no\r\n", Seen::Untold),
            (
                "-BUSY a script runs\r\n",
                "-BUSY a script runs\r\n",
                Seen::Silent,
            ),
            ("-WRONGTYPE no\r\n", TIME, Seen::Silent),
        ] {
            assert_eq!(look(value, time).unwrap().seen(names, 0), seen, "{value}");
        }
        assert_eq!(
            look("$-1\r\n", TIME).unwrap().seen(None, 0),
            Seen::Untold,
            "it has no name"
        );
        assert_eq!(
            NodeLook::default().seen(names, 0),
            Seen::Untold,
            "it was not looked at"
        );
        for (value, time) in [
            (":1\r\n", TIME),
            ("$-1\r\n", "*1\r\n$1\r\n9\r\n"),
            ("$-1\r\n", "*2\r\n$1\r\nx\r\n$1\r\n1\r\n"),
        ] {
            assert!(look(value, time).is_err(), "{value} {time}");
        }
        // An answer to a note takes the place of the value, and the time stays.
        let mut looked = look("$-1\r\n", TIME).unwrap();
        looked
            .learn_stored(Reply::Bulk(Some(text("s", 9_000_006, "a").as_bytes())))
            .unwrap();
        let Seen::Look(seen) = looked.seen(names, 7_000_000) else {
            panic!()
        };
        let rules = Rules {
            policy: RestartPolicy::Observed,
            max_ttl: Duration::from_secs(60),
        };
        assert_eq!(
            rules.standing(&seen, rules.max_ttl),
            Standing::Waits(rules.max_ttl)
        );
        // Where none may be stored, the next look tells nothing either.
        looked.learn_stored(Reply::Error(b"NOPERM no")).unwrap();
        looked.learn_value(Reply::Bulk(None)).unwrap();
        assert_eq!(looked.seen(names, 0), Seen::Untold);
    }
}
