//! Values with several entries: of read-write locks, and of the queues of fair locks. The comments of
//! `read_write.lua` and `queue.lua` have the formats.

use super::token::Token;

/// The greatest number that the scripts keep.
const MOST: u64 = 9_007_199_254_740_991;
/// Digits of the greatest ticket, in front of the places of a queue.
pub(super) const HEAD: usize = 15;
/// Bytes of one place: a space, the ticket, the deadline and the id, with colons between.
pub(super) const PLACE: usize = 47;

/// What a read-write lock has in its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ReadWrite {
    pub(super) is_writer: bool,
    /// The writer or the readers, each with the time of the server until which it is one.
    pub(super) entries: Vec<(Token, u64)>,
    /// The last fence, and until which time of the server it is kept, if a writer has asked for one.
    pub(super) fence: Option<(u64, u64)>,
    /// Until which time of the server a writer that waits keeps new readers out.
    pub(super) mark: Option<u64>,
}

/// From `w deadline token`, or `r deadline:token deadline:token ...`; behind that, or alone, may stand `q deadline`; in
/// front of all, or alone, `f fence deadline`.
pub(super) fn read_write(text: &str) -> Option<ReadWrite> {
    let words: Vec<&str> = text.split(' ').collect();
    let (fence, words) = match words.as_slice() {
        ["f", fence, kept, rest @ ..] => (Some((positive(fence)?, number(kept)?)), rest),
        words => (None, words),
    };
    let (mark, words) = match words {
        [entries @ .., "q", deadline] => (Some(positive(deadline)?), entries),
        entries => (None, entries),
    };
    let entry = |deadline: &str, token: &str| Some((Token::of(token)?, number(deadline)?));
    let (is_writer, entries) = match words {
        [] => (false, Vec::new()),
        ["w", deadline, token] => (true, vec![entry(deadline, token)?]),
        ["r", first, rest @ ..] => {
            let entries = [first].into_iter().chain(rest).map(|word| {
                let (deadline, token) = word.split_once(':')?;
                entry(deadline, token)
            });
            (false, entries.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(ReadWrite { is_writer, entries, fence, mark })
}

/// The deadline of each place. From the greatest ticket, and ` ticket:deadline:id` of each place.
pub(super) fn queue(text: &str) -> Option<Vec<u64>> {
    let (head, places) = text.is_ascii().then(|| text.split_at_checked(HEAD))??;
    let is_whole = are_digits(head) && places.len() % PLACE == 0;
    let deadlines = (0..places.len() / PLACE).map(|index| {
        let place = places[index * PLACE..(index + 1) * PLACE].strip_prefix(' ')?;
        let mut fields = place.splitn(3, ':');
        let (ticket, deadline, id) = (fields.next()?, fields.next()?, fields.next()?);
        let is_place = ticket.len() == HEAD && are_digits(ticket) && are_digits(deadline) && !id.contains([' ', ':']);
        is_place.then(|| deadline.parse().ok())?
    });
    is_whole.then(|| deadlines.collect())?
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number as the scripts write it.
pub(super) fn number(text: &str) -> Option<u64> {
    let number = text.parse::<u64>().ok().filter(|number| *number <= MOST)?;
    (number.to_string() == text).then_some(number)
}

/// A number that the scripts leave out where it is zero, or never write as zero.
pub(super) fn positive(text: &str) -> Option<u64> {
    number(text).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_read_write_locks_are_a_writer_or_readers() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let token = |text: &str| Token::of(text).unwrap();
        let whole = |fence, is_writer, entries, mark| Some(ReadWrite { is_writer, entries, fence, mark });
        let read = |is_writer, entries| whole(None, is_writer, entries, None);
        let (first, second) = ((token(&one), 7), (token(&two), 8));
        assert!(read_write(&format!("w 7 {one}")) == read(true, vec![first.clone()]));
        assert!(read_write(&format!("r 7:{one} q 9")) == whole(None, false, vec![first.clone()], Some(9)));
        assert!(read_write(&format!("r 7:{one} 8:{two}")) == read(false, vec![first.clone(), second]));
        assert!(read_write("q 9") == whole(None, false, vec![], Some(9)));
        assert!(read_write("f 5 6") == whole(Some((5, 6)), false, vec![], None));
        assert!(read_write("f 5 0") == whole(Some((5, 0)), false, vec![], None));
        assert!(read_write("f 5 6 q 9") == whole(Some((5, 6)), false, vec![], Some(9)));
        assert!(read_write(&format!("f 5 6 w 7 {one}")) == whole(Some((5, 6)), true, vec![first.clone()], None));
        assert!(read_write(&format!("f 5 6 r 7:{one} q 9")) == whole(Some((5, 6)), false, vec![first], Some(9)));
        for wrong in ["", "r", "w", "q", "q 09", "q x", &one, &format!("w 7:{one}"), &format!("r 7 {one}"), "r 7:1"] {
            assert!(read_write(wrong).is_none(), "{wrong:?}");
        }
        for wrong in ["f", "f 5", "f 5 6 ", "f 05 6", "f 5 x", "f 5 9007199254740992", "q 9 f 5 6", "f 5 6 f 5 6"] {
            assert!(read_write(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_queue_has_a_deadline_for_each_place() {
        let place = |deadline: &str| format!(" 000000000000002:{deadline}:00000000000000ff");
        let head = "000000000000012";
        let with = |deadlines_ms: &[u64]| Some(deadlines_ms.to_vec());
        assert!(queue(head) == with(&[]));
        let (first, second) = (place("0000000000900"), place("1795361689000"));
        assert!(queue(&format!("{head}{first}{second}")) == with(&[900, 1_795_361_689_000]));
        for wrong in ["", "x", "00000000000001x", &format!("{head} "), &format!("{head}{}", place("000000000090x"))] {
            assert!(queue(wrong).is_none(), "{wrong:?}");
        }
        assert!(queue(&format!("{head}{}", first.replace(' ', "-"))).is_none());
    }
}
