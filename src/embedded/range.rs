//! A part of a string or a sorted set, from one index to another one. Negative ones count from the
//! end.

use super::numbers::signed;
use super::reply::NOT_AN_INTEGER;
use crate::algorithm::digits::integer;

/// The part from the first index to the last one. A last one before the beginning counts as
/// `least_end`.
///
/// # Errors
/// What a server replies to an index that is no number, or the one that there is instead of a
/// value.
pub(super) fn part<'v, T>(
    all: Result<&'v [T], &'static str>,
    bounds: [&[u8]; 2],
    least_end: i64,
) -> Result<&'v [T], &'static str> {
    let [Some(start), Some(end)] = bounds.map(integer) else {
        return Err(NOT_AN_INTEGER);
    };
    let all = all?;
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
