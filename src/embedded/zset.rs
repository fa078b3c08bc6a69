//! The commands for sorted sets that a tool needs to show or repair a queue: `ZADD`, `ZCARD`, `ZRANGE`, `ZREM` and
//! `ZSCORE`.
//!
//! Left out: the options of `ZADD`, and those of `ZRANGE` but for WITHSCORES.

use super::command::Command;
use super::expire::integer;
use super::keyspace::{Keyspace, Millis};
use super::reply::{self, NOT_AN_INTEGER, SYNTAX};
use super::sorted_set::{Member, score, score_text};

const NO_SCORE: &str = "ERR value is not a valid float";

/// Runs one of these commands for a key.
pub(super) fn run(
    command: Command,
    database: &mut Keyspace,
    key: &[u8],
    rest: &[&[u8]],
    now: Millis,
    out: &mut Vec<u8>,
) {
    let done = match (command, rest) {
        (Command::Zadd, _) => add(database, key, rest, now).map(|count| reply::integer(out, count)),
        (Command::Zrange, [start, end, options @ ..]) => range(database, key, [start, end], options, now, out),
        (Command::Zrem, names) => remove(database, key, names, now).map(|count| reply::integer(out, count)),
        (Command::Zscore, [name, ..]) => {
            database.members(key, now).map(|members| match members.iter().find(|member| *member.name == **name) {
                Some(member) => reply::bulk(out, score_text(member.score).as_bytes()),
                None => reply::null(out),
            })
        }
        _ => database.members(key, now).map(|members| reply::integer(out, count(members.len()))),
    };
    if let Err(error) = done {
        reply::error(out, error);
    }
}

/// `ZADD key score member …`: how many members are new.
fn add(database: &mut Keyspace, key: &[u8], rest: &[&[u8]], now: Millis) -> Result<i64, &'static str> {
    let (pairs, []) = rest.as_chunks::<2>() else { return Err(SYNTAX) };
    let scores = pairs.iter().map(|[text, _]| score(text)).collect::<Option<Vec<_>>>().ok_or(NO_SCORE)?;
    let pairs = scores.into_iter().zip(pairs);
    database.change_set(key, now, |set| count(pairs.filter(|(score, [_, name])| set.add(name, *score)).count()))
}

/// `ZREM key member …`: how many there were.
fn remove(database: &mut Keyspace, key: &[u8], names: &[&[u8]], now: Millis) -> Result<i64, &'static str> {
    database.change_set(key, now, |set| count(names.iter().filter(|name| set.remove(name)).count()))
}

/// `ZRANGE key start end [WITHSCORES]`. Negative indexes count from the end.
fn range(
    database: &Keyspace,
    key: &[u8],
    bounds: [&[u8]; 2],
    options: &[&[u8]],
    now: Millis,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if options.iter().any(|option| !option.eq_ignore_ascii_case(b"WITHSCORES")) {
        return Err(SYNTAX);
    }
    let [Some(start), Some(end)] = bounds.map(integer) else { return Err(NOT_AN_INTEGER) };
    let members = database.members(key, now)?;
    let length = count(members.len());
    let index = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (start, end) = (index(start).max(0), index(end).min(length - 1));
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| members.get(start..=end)).unwrap_or_default();
    reply::array(out, if options.is_empty() { part.len() } else { 2 * part.len() });
    for Member { name, score } in part {
        reply::bulk(out, name);
        if !options.is_empty() {
            reply::bulk(out, score_text(*score).as_bytes());
        }
    }
    Ok(())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
