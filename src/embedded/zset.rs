//! The commands for sorted sets that a tool needs to show a queue, and tests to make one: `ZRANGE`
//! and `ZADD`.
//!
//! Left out: the options of `ZADD`, and those of `ZRANGE` but for WITHSCORES.

use super::keyspace::{Keyspace, Millis};
use super::range::part;
use super::reply::{Reply, SYNTAX};
use super::sorted_set::{Member, score, score_text};

const NO_SCORE: &str = "ERR value is not a valid float";

/// `ZADD key score member …`: how many members are new.
///
/// # Errors
/// What a server replies then.
pub(super) fn add(
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
///
/// # Errors
/// What a server replies then.
pub(super) fn range(
    members: Result<&[Member], &'static str>,
    bounds: [&[u8]; 2],
    options: &[&[u8]],
) -> Result<Reply, &'static str> {
    let has_scores = match options {
        [] => false,
        [b"WITHSCORES"] => true,
        _ => return Err(SYNTAX),
    };
    let mut replies = Vec::new();
    for Member { name, score } in part(members, bounds, -1)? {
        replies.push(Reply::bulk(&**name));
        if has_scores {
            replies.push(Reply::bulk(score_text(*score)));
        }
    }
    Ok(Reply::Array(replies))
}
