//! The embedded node's `SET`, whose options are many.

use super::expire::{integer, signed};
use super::keyspace::{Keyspace, Millis};
use super::reply::{self, NOT_AN_INTEGER, SYNTAX};

const BAD_EXPIRE_IN_SET: &str = "ERR invalid expire time in 'set' command";

/// `SET key value [NX | XX | IFEQ value] [PX ms | EX s]`, the options in any order. All of them are read before the number
/// is. Not every server can compare.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
    can_compare: bool,
    now: Millis,
    out: &mut Vec<u8>,
) {
    let (mut only_new, mut only_old, mut only_equal) = (false, false, None);
    // The unit that was used, in milliseconds, and the number as text.
    let mut expire: Option<(i64, &[u8])> = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let unit = if option.eq_ignore_ascii_case(b"PX") {
            1
        } else if option.eq_ignore_ascii_case(b"EX") {
            1000
        } else if option.eq_ignore_ascii_case(b"NX") && !only_old && only_equal.is_none() {
            only_new = true;
            continue;
        } else if option.eq_ignore_ascii_case(b"XX") && !only_new && only_equal.is_none() {
            only_old = true;
            continue;
        } else if option.eq_ignore_ascii_case(b"IFEQ") && can_compare && !only_new && !only_old {
            let Some(&expected) = options.next() else {
                return reply::error(out, SYNTAX);
            };
            only_equal = Some(expected);
            continue;
        } else {
            return reply::error(out, SYNTAX);
        };
        match options.next() {
            Some(number) if expire.is_none_or(|(before, _)| before == unit) => expire = Some((unit, number)),
            _ => return reply::error(out, SYNTAX),
        }
    }
    let deadline = match expire {
        None => None,
        Some((unit, number)) => {
            let Some(number) = integer(number) else {
                return reply::error(out, NOT_AN_INTEGER);
            };
            let deadline =
                number.checked_mul(unit).filter(|&delay| delay > 0).and_then(|delay| signed(now).checked_add(delay));
            let Some(deadline) = deadline else {
                return reply::error(out, BAD_EXPIRE_IN_SET);
            };
            Some(deadline.unsigned_abs())
        }
    };
    let present = database.value(key, now);
    let unfit = match only_equal {
        Some(_) => present != only_equal,
        None => (only_new || only_old) && present.is_some() != only_old,
    };
    if unfit {
        return reply::null(out);
    }
    database.set(key, value, deadline, now);
    reply::simple(out, "OK");
}
