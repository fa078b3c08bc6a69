//! `GETRANGE`: a part of a string, from one index to another one. Negative ones count from the end.

use super::expire::integer;
use super::keyspace::{Keyspace, Millis};
use super::reply::{self, NOT_AN_INTEGER};

pub(super) fn get_range(database: &Keyspace, key: &[u8], bounds: [&[u8]; 2], now: Millis, out: &mut Vec<u8>) {
    let [Some(start), Some(end)] = bounds.map(integer) else {
        return reply::error(out, NOT_AN_INTEGER);
    };
    let value = match database.string(key, now) {
        Ok(value) => value.unwrap_or_default(),
        Err(error) => return reply::error(out, error),
    };
    let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let is_backward = start < 0 && end < 0 && start > end;
    let place = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    let (start, end) = (place(start), place(end).min(length - 1));
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.filter(|_| !is_backward).and_then(|(start, end)| value.get(start..=end));
    reply::bulk(out, part.unwrap_or_default());
}
