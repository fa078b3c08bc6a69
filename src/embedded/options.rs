//! The commands whose arguments are more than keys and values: `SET` with its options, the part of
//! a string or a sorted set between two indexes, and scores.
//!
//! Left out: the options of `ZADD`, and those of `ZRANGE` but for WITHSCORES, with which a tool
//! shows a queue.

use super::keyspace::{Keyspace, Member};
use super::numbers::{integer, signed};
use super::reply::{Failure, Reply, SYNTAX};

/// `SET key value [NX] [PX milliseconds]`: whether the key was set.
///
/// # Errors
/// What a server replies then.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
) -> Result<bool, Failure> {
    let (only_new, milliseconds) = match *options {
        [] => (false, None),
        [b"NX"] => (true, None),
        [b"PX", milliseconds] => (false, Some(milliseconds)),
        [b"NX", b"PX", milliseconds] => (true, Some(milliseconds)),
        _ => return Err(SYNTAX),
    };
    let deadline = milliseconds
        .map(|milliseconds| database.deadline_of_set(milliseconds))
        .transpose()?;
    let is_permitted = !only_new || !database.exists(key);
    if is_permitted {
        database.set(key, value, deadline);
    }
    Ok(is_permitted)
}

/// `ZADD key score member …`: how many members are new.
///
/// # Errors
/// What a server replies then.
pub(super) fn add(database: &mut Keyspace, key: &[u8], rest: &[&[u8]]) -> Result<usize, Failure> {
    let (pairs, []) = rest.as_chunks::<2>() else {
        return Err(SYNTAX);
    };
    let scores = pairs
        .iter()
        .map(|[text, _]| score(text))
        .collect::<Option<Vec<_>>>()
        .ok_or("ERR value is not a valid float")?;
    let mut new = 0;
    for (score, [_, name]) in scores.into_iter().zip(pairs) {
        new += usize::from(database.add(key, score, name)?);
    }
    Ok(new)
}

/// `ZRANGE key start end [WITHSCORES]`.
///
/// # Errors
/// What a server replies then.
pub(super) fn range(
    members: Result<&[Member], Failure>,
    bounds: [&[u8]; 2],
    options: &[&[u8]],
) -> Result<Reply, Failure> {
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

/// The part from the first index to the last one. A last one before the beginning counts as
/// `least_end`.
///
/// # Errors
/// What a server replies to an index that is no number, or the one that there is instead of a
/// value.
pub(super) fn part<'v, T>(
    all: Result<&'v [T], Failure>,
    bounds: [&[u8]; 2],
    least_end: i64,
) -> Result<&'v [T], Failure> {
    let [start, end] = bounds.map(integer);
    let (start, end, all) = (start?, end?, all?);
    let length = signed(all.len() as u64);
    let place = |index: i64, least: i64| {
        if index < 0 {
            index.saturating_add(length).max(least)
        } else {
            index
        }
    };
    let range = usize::try_from(place(start, 0))
        .ok()
        .zip(usize::try_from(place(end, least_end).min(length - 1)).ok());
    let is_backward = start < 0 && end < start;
    Ok(range
        .filter(|_| !is_backward)
        .and_then(|(start, end)| all.get(start..=end))
        .unwrap_or_default())
}

/// The number that a server reads from the text of a score. Left out: hexadecimal ones.
pub(super) fn score(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_named = text.iter().any(|letter| matches!(letter, b'i' | b'I'));
    (score.is_finite() || score.is_infinite() && is_named).then_some(score)
}

/// A score as Redis 7.0 replies it: 17 digits at most, with an exponent if the number has more
/// before the point. Newer servers leave out digits that are not needed.
fn score_text(score: f64) -> String {
    const DIGITS: usize = 17;
    if score.is_infinite() {
        return if score > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{score:.*e}", DIGITS - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(DIGITS as i32 - 1 - exponent) {
        Ok(decimals) if exponent >= -4 => trimmed(&format!("{score:.decimals$}")).to_owned(),
        _ => format!(
            "{}e{}{:02}",
            trimmed(digits),
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        ),
    }
}

/// Without zeros at the end of a fraction.
fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair was observed on Redis 7.0.
    #[test]
    fn scores_are_written_as_by_a_server() {
        let pairs = [
            ("1795519049784269", "1795519049784269"),
            ("0", "0"),
            ("1.5", "1.5"),
            ("0.1", "0.10000000000000001"),
            ("0.0001", "0.0001"),
            ("0.00001", "1.0000000000000001e-05"),
            ("12345678901234567", "12345678901234568"),
            ("1e16", "10000000000000000"),
            ("1e17", "1e+17"),
            ("-1.5e300", "-1.5000000000000001e+300"),
            ("1e-7", "9.9999999999999995e-08"),
            ("inf", "inf"),
            ("-Infinity", "-inf"),
        ];
        for (text, written) in pairs {
            assert_eq!(
                score_text(score(text.as_bytes()).unwrap()),
                written,
                "{text}"
            );
        }
        for text in ["", "x", "nan", "1e999", " 1", "1 ", "1x", "1,5"] {
            assert_eq!(score(text.as_bytes()), None, "{text}");
        }
    }
}
