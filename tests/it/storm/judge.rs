//! What must be true of every storm.

use super::log::{Stay, Story};
use crate::prelude::*;

/// Two holders of a lock do not overlap in time, and the numbers grow in the order of holding.
pub(crate) fn no_two_overlap(story: &Story) {
    for pair in story.done.windows(2) {
        assert!(
            pair[0].until <= pair[1].since,
            "two held the lock at once: {pair:?}"
        );
        assert!(
            pair[0].value < pair[1].value,
            "the later one has no greater number: {pair:?}"
        );
    }
}

/// Every number that was written was the number before and one more, and [`no_two_overlap`]: no
/// number was written twice, except by writers that were killed before they could log it.
pub(crate) fn no_update_is_lost(story: &Story, counter: u64, killed: usize) {
    no_two_overlap(story);
    let unsure = counter
        .checked_sub(story.done.len() as u64)
        .expect("no update is lost");
    assert!(
        unsure <= killed as u64,
        "{unsure} updates without a writer, and {killed} were killed"
    );
}

/// How many stays overlap at most.
pub(crate) fn most_at_once<'s>(stays: impl IntoIterator<Item = &'s Stay>) -> usize {
    let changes = stays
        .into_iter()
        .flat_map(|stay| [(stay.since, 1_isize), (stay.until, -1)]);
    let mut changes: Vec<_> = changes.collect();
    // An end is before a beginning at the same time.
    changes.sort_unstable();
    let mut inside = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        inside += change;
        inside
    });
    counts.max().unwrap_or(0).unsigned_abs()
}

/// No server keeps a key. Entries of programs that were killed are removed by the next release of
/// their lock.
pub(crate) fn nothing_is_left(servers: &[Server], mut release: impl FnMut()) {
    let is_empty = |server: &Server| server.keys().is_ok_and(|keys| keys.is_empty());
    let are_empty = || {
        let is_done = eventually(SOON / 20, || servers.all(is_empty));
        if !is_done {
            release();
        }
        is_done
    };
    let is_done = eventually(SOON, are_empty);
    assert!(is_done, "{:?}", servers.each(Server::keys));
}
