//! Values with several entries: of read-write locks. The comments of `read_write.lua` have the format.

use super::token::Token;

/// The greatest number that the scripts keep.
const MOST: u64 = 9_007_199_254_740_991;
/// What a read-write lock has in its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ReadWrite {
    pub(super) is_writer: bool,
    /// The writer or the readers, each with the time of the server until which it is one.
    pub(super) entries: Vec<(Token, u64)>,
    /// The last fence, and until which time of the server it is kept, if a writer has asked for one.
    pub(super) fence: Option<(u64, u64)>,
}

/// From `w deadline token`, or `r deadline:token deadline:token ...`; in front of that, or alone, `f fence deadline`.
/// What an old version wrote behind it, `q deadline`, is ignored.
pub(super) fn read_write(text: &str) -> Option<ReadWrite> {
    let words: Vec<&str> = text.split(' ').collect();
    let (fence, words) = match words.as_slice() {
        ["f", fence, kept, rest @ ..] => (Some((positive(fence)?, number(kept)?)), rest),
        words => (None, words),
    };
    let words = match words {
        [entries @ .., "q", deadline] if deadline.bytes().all(|byte| byte.is_ascii_digit()) => entries,
        entries => entries,
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
    Some(ReadWrite { is_writer, entries, fence })
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
        let whole = |fence, is_writer, entries| Some(ReadWrite { is_writer, entries, fence });
        let read = |is_writer, entries| whole(None, is_writer, entries);
        let (first, second) = ((token(&one), 7), (token(&two), 8));
        assert!(read_write(&format!("w 7 {one}")) == read(true, vec![first.clone()]));
        assert!(read_write(&format!("r 7:{one} q 9")) == read(false, vec![first.clone()]));
        assert!(read_write(&format!("r 7:{one} 8:{two}")) == read(false, vec![first.clone(), second]));
        assert!(read_write("q 9") == read(false, vec![]));
        assert!(read_write("f 5 6") == whole(Some((5, 6)), false, vec![]));
        assert!(read_write("f 5 0") == whole(Some((5, 0)), false, vec![]));
        assert!(read_write("f 5 6 q 9") == whole(Some((5, 6)), false, vec![]));
        assert!(read_write(&format!("f 5 6 w 7 {one}")) == whole(Some((5, 6)), true, vec![first.clone()]));
        assert!(read_write(&format!("f 5 6 r 7:{one} q 9")) == whole(Some((5, 6)), false, vec![first]));
        for wrong in ["", "r", "w", "q", "q x", &one, &format!("w 7:{one}"), &format!("r 7 {one}"), "r 7:1"] {
            assert!(read_write(wrong).is_none(), "{wrong:?}");
        }
        for wrong in ["f", "f 5", "f 5 6 ", "f 05 6", "f 5 x", "f 5 9007199254740992", "q 9 f 5 6", "f 5 6 f 5 6"] {
            assert!(read_write(wrong).is_none(), "{wrong:?}");
        }
    }
}
