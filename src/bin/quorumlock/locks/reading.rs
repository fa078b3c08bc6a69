//! Keys and values, as they are read from one node: within limits, whatever the node has or
//! answers.

use super::queue::{self, Queue};
use super::sighting::{Keys, LONGEST_LOCK, Sighting, Stored};
use crate::connection::{Connection, Trouble, Value};
use crate::report;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::error_reply::{Denied, ErrorReply, Subject};
use quorumlock::protocol::key_space;
use quorumlock::{Cause, ServerError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many keys a node looks at for one part of its answer.
const SCAN_COUNT: &[u8] = b"1000";
/// How many parts its answer may have: those of a hundred million keys.
const MOST_STEPS: usize = 100_000;
/// How many keys of a node are listed.
const MOST_KEYS: usize = 1_000_000;
/// How long its keys may take in all.
const LONGEST_SCAN: Duration = Duration::from_secs(600);
/// How many keys are read in one flight.
const BATCH: usize = 500;

/// What one node is asked.
pub(super) struct Reader<'r> {
    /// Keys of locks.
    pub(super) wanted: &'r [String],
    /// Whether they are patterns, and all keys that match one of them are listed.
    pub(super) is_listing: bool,
    pub(super) prefix: &'r str,
    /// How many keys have been found so far, on all nodes.
    pub(super) found: &'r AtomicUsize,
}

impl Reader<'_> {
    /// The keys, each with what it means.
    pub(super) fn read(&self, connection: &mut Connection) -> Result<Keys, Trouble> {
        let end = Instant::now() + LONGEST_SCAN;
        let wanted = if self.is_listing {
            &self.scan(connection, end)?
        } else {
            self.wanted
        };
        let mut keys = Keys::default();
        for wanted in wanted.chunks(BATCH) {
            within(end)?;
            self.read_values(connection, wanted, &mut keys)?;
        }
        let queues: BTreeSet<String> = if self.is_listing {
            let locks = keys.locks.keys();
            locks.flat_map(|key| queue::keys(key, false)).collect()
        } else {
            // A lock that is free may have a queue.
            wanted
                .iter()
                .flat_map(|key| queue::keys(key, true))
                .collect()
        };
        for queues in Vec::from_iter(queues).chunks(BATCH) {
            // What the nodes have of locks is known: a node that does not answer this leaves out
            // its queues.
            if within(end)
                .and_then(|()| read_queues(connection, queues, &mut keys))
                .is_err()
            {
                break;
            }
        }
        Ok(keys)
    }

    /// Goes through a node's keys in parts, so that it answers others in between.
    fn scan(&self, connection: &mut Connection, end: Instant) -> Result<Vec<String>, Trouble> {
        let mut keys = BTreeSet::new();
        let mut steps = 0..MOST_STEPS;
        for pattern in self.wanted {
            let mut cursor = b"0".to_vec();
            loop {
                within(end)?;
                if steps.next().is_none() {
                    return Err(Trouble::refused(
                        "SCAN",
                        format!("no end after {MOST_STEPS} parts"),
                    ));
                }
                let reply = connection.ask(&[
                    b"SCAN",
                    &cursor,
                    b"MATCH",
                    pattern.as_bytes(),
                    b"COUNT",
                    SCAN_COUNT,
                ])?;
                cursor = self.take_part(reply, &mut keys)?;
                if keys.len() > MOST_KEYS {
                    return Err(Trouble::refused(
                        "SCAN",
                        format!("more than {MOST_KEYS} keys: name a narrower prefix"),
                    ));
                }
                if cursor == b"0" {
                    break;
                }
            }
        }
        Ok(keys.into_iter().collect())
    }

    /// Takes the keys of one part of the answer. Where the next one begins.
    fn take_part(&self, reply: Value, keys: &mut BTreeSet<String>) -> Result<Vec<u8>, Trouble> {
        let mut parts = reply
            .accepted("SCAN")?
            .array()
            .unwrap_or_default()
            .into_iter();
        let (Some(Value::Bulk(next)), Some(part)) =
            (parts.next(), parts.next().and_then(Value::array))
        else {
            return Err(Trouble::unexpected("SCAN"));
        };
        let before = keys.len();
        // A key that is no text belongs to another program.
        let texts = part.iter().filter_map(|key| match key {
            Value::Bulk(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        });
        let is_ours = |key: &&str| {
            key_space::lock(key).is_some_and(|(_, name)| name.starts_with(self.prefix))
        };
        keys.extend(texts.filter(is_ours).map(str::to_owned));
        self.found.fetch_add(keys.len() - before, Ordering::Relaxed);
        Ok(next)
    }

    /// The clock of the node, and value and expires_in of each key.
    fn read_values(
        &self,
        connection: &mut Connection,
        wanted: &[String],
        keys: &mut Keys,
    ) -> Result<(), Trouble> {
        // One byte more than a lock has shows that it is none.
        let last = LONGEST_LOCK.to_string();
        let (server_micros, replies) = ask_of_each(connection, wanted, |key| {
            [
                vec![b"GETRANGE", key, b"0", last.as_bytes()],
                vec![b"PTTL", key],
            ]
        })?;
        for (key, value, expires_in) in replies {
            if !self.leaves_out(&value, &expires_in)
                && let Some((stored, expires_in)) = meaning(value, expires_in)?
            {
                let mut sighting = Sighting::of(key, stored, expires_in, server_micros / 1000);
                if self.is_listing
                    && let Stored::Text(value) = &mut sighting.stored
                {
                    *value = Vec::new();
                }
                keys.locks.insert(key.clone(), sighting);
            }
        }
        Ok(())
    }

    /// Whether a refusal means only that the key belongs to others: `SCAN` finds keys of all users.
    fn leaves_out(&self, value: &Value, expires_in: &Value) -> bool {
        let is_denied = |reply: &Value| match reply {
            Value::Error(error) => error.subject == Subject::Denied(Denied::Key),
            _ => false,
        };
        self.is_listing && (is_denied(value) || is_denied(expires_in))
    }
}

/// Asks for the clock of the node in microseconds, and two questions about each key.
fn ask_of_each<'k>(
    connection: &mut Connection,
    keys: &'k [String],
    questions: impl Fn(&'k [u8]) -> [Vec<&'k [u8]>; 2],
) -> Result<(u64, impl Iterator<Item = (&'k String, Value, Value)>), Trouble> {
    let mut commands = vec![vec![b"TIME".as_slice()]];
    commands.extend(keys.iter().flat_map(|key| questions(key.as_bytes())));
    let mut replies = connection.ask_all(&commands)?.into_iter();
    let server_micros = replies.next().and_then(Value::micros);
    // The wall clock of this machine, for a node that does not show its own.
    let server_micros = server_micros.unwrap_or_else(|| report::since_1970().as_micros() as u64);
    Ok((
        server_micros,
        keys.iter()
            .map_while(move |key| Some((key, replies.next()?, replies.next()?))),
    ))
}

/// How many calls wait in each queue, and which one is first.
fn read_queues(
    connection: &mut Connection,
    queues: &[String],
    keys: &mut Keys,
) -> Result<(), Trouble> {
    let (server_micros, replies) = ask_of_each(connection, queues, |key| {
        let first = vec![b"ZRANGE", key, b"0", b"0", b"WITHSCORES"];
        [vec![b"ZCARD", key], first]
    })?;
    for (queue, count, first) in replies {
        keys.queues
            .extend(Queue::of(count, first, server_micros).map(|found| (queue.clone(), found)));
    }
    Ok(())
}

/// What the replies mean; none if the key has gone.
fn meaning(value: Value, expires_in: Value) -> Result<Option<(Stored, Option<Duration>)>, Trouble> {
    let expires_in = match expires_in {
        Value::Integer(-1) => None,
        Value::Integer(left @ 0..) => Some(Duration::from_millis(left.unsigned_abs())),
        other => return other.accepted("PTTL").map(|_| None),
    };
    let stored = match value {
        Value::Bulk(value) if value.len() > LONGEST_LOCK => Stored::LongText,
        Value::Bulk(value) => Stored::Text(value),
        Value::Error(ErrorReply {
            cause: Cause::Server(ServerError::WrongType),
            ..
        }) => Stored::OtherType,
        other => return other.accepted("GETRANGE").map(|_| None),
    };
    Ok(Some((stored, expires_in)))
}

fn within(end: Instant) -> Result<(), Trouble> {
    if Instant::now() < end {
        return Ok(());
    }
    let longest = Human(LONGEST_SCAN);
    Err(Trouble::refused(
        "SCAN",
        format_args!("no end within {longest}"),
    ))
}
