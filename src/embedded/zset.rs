//! The commands for sorted sets that a tool needs to show or repair a queue: `ZADD`, `ZCARD`,
//! `ZRANGE`, `ZREM` and `ZSCORE`.
//!
//! Left out: the options of `ZADD`, and those of `ZRANGE` but for WITHSCORES.

use super::keyspace::{Keyspace, Millis};
use super::range::part;
use super::reply::{self, SYNTAX};
use super::sorted_set::{Member, SortedSet, score, score_text};

const NO_SCORE: &str = "ERR value is not a valid float";

/// Runs the command of this name for a key.
///
/// # Errors
/// What a server replies then.
pub(super) fn run(
    command: &str,
    database: &mut Keyspace,
    key: &[u8],
    rest: &[&[u8]],
    now: Millis,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    match (command, rest) {
        ("ZADD", _) => reply::integer(out, add(database, key, rest, now)?),
        ("ZRANGE", [start, end, options @ ..]) => {
            range(database.members(key, now), [start, end], options, out)?
        }
        ("ZREM", names) => {
            let remove = |set: &mut SortedSet| names.iter().filter(|name| set.remove(name)).count();
            reply::integer(out, database.change_set(key, now, remove)?);
        }
        ("ZSCORE", [name, ..]) => {
            let member = database
                .members(key, now)?
                .iter()
                .find(|member| *member.name == **name);
            let score = member.map(|member| score_text(member.score));
            reply::bulk_or_null(out, score.as_ref().map(String::as_bytes));
        }
        _ => reply::integer(out, database.members(key, now)?.len()),
    }
    Ok(())
}

/// `ZADD key score member …`: how many members are new.
fn add(
    database: &mut Keyspace,
    key: &[u8],
    rest: &[&[u8]],
    now: Millis,
) -> Result<usize, &'static str> {
    let (pairs, []) = rest.as_chunks::<2>() else {
        return Err(SYNTAX);
    };
    let scores = pairs
        .iter()
        .map(|[text, _]| score(text))
        .collect::<Option<Vec<_>>>()
        .ok_or(NO_SCORE)?;
    let pairs = scores.into_iter().zip(pairs);
    database.change_set(key, now, |set| {
        pairs
            .filter(|(score, [_, name])| set.add(name, *score))
            .count()
    })
}

/// `ZRANGE key start end [WITHSCORES]`.
fn range(
    members: Result<&[Member], &'static str>,
    bounds: [&[u8]; 2],
    options: &[&[u8]],
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if options
        .iter()
        .any(|option| !option.eq_ignore_ascii_case(b"WITHSCORES"))
    {
        return Err(SYNTAX);
    }
    let part = part(members, bounds, -1)?;
    reply::array(
        out,
        if options.is_empty() {
            part.len()
        } else {
            2 * part.len()
        },
    );
    for Member { name, score } in part {
        reply::bulk(out, name);
        if !options.is_empty() {
            reply::bulk(out, score_text(*score).as_bytes());
        }
    }
    Ok(())
}
