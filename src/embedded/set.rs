//! The embedded node's `SET`, whose options are many, and `MSETEX`, which has some of them.

use super::expire::{integer, signed};
use super::keyspace::{Keyspace, Millis};
use super::reply::{self, NOT_AN_INTEGER, SYNTAX};

const BAD_EXPIRE_IN_SET: &str = "ERR invalid expire time in 'set' command";
const BAD_EXPIRE_IN_MSETEX: &str = "ERR invalid expire time in 'msetex' command";
const BAD_KEY_COUNT: &str = "ERR invalid numkeys value";
const TOO_FEW_PAIRS: &str = "ERR wrong number of key-value pairs";

/// The options of one `SET`.
#[derive(Default)]
struct SetOptions<'o> {
    only_new: bool,
    only_old: bool,
    only_equal: Option<&'o [u8]>,
    /// The unit that was used, in milliseconds, and the number as text.
    expire: Option<(i64, &'o [u8])>,
}

impl<'o> SetOptions<'o> {
    fn parse(options: &[&'o [u8]], can_compare: bool) -> Option<SetOptions<'o>> {
        let mut parsed = SetOptions::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
            if is(b"PX") || is(b"EX") {
                let unit = if is(b"PX") { 1 } else { 1000 };
                let number = options.next().filter(|_| parsed.expire.is_none_or(|(before, _)| before == unit))?;
                parsed.expire = Some((unit, number));
            } else if is(b"NX") && !parsed.only_old && parsed.only_equal.is_none() {
                parsed.only_new = true;
            } else if is(b"XX") && !parsed.only_new && parsed.only_equal.is_none() {
                parsed.only_old = true;
            } else if is(b"IFEQ") && can_compare && !parsed.only_new && !parsed.only_old {
                parsed.only_equal = Some(options.next()?);
            } else {
                return None;
            }
        }
        Some(parsed)
    }

    /// When the key is to expire, if it is.
    fn deadline(&self, now: Millis, bad: &'static str) -> Result<Option<Millis>, &'static str> {
        let Some((unit, number)) = self.expire else { return Ok(None) };
        let delay = integer(number).ok_or(NOT_AN_INTEGER)?.checked_mul(unit).filter(|&delay| delay > 0);
        let deadline = delay.and_then(|delay| signed(now).checked_add(delay)).ok_or(bad)?;
        Ok(Some(deadline.unsigned_abs()))
    }

    /// Whether they let all of these keys be set.
    fn permit_all(&self, pairs: &[&[u8]], database: &Keyspace, now: Millis) -> bool {
        pairs.chunks_exact(2).all(|pair| self.permit(database.value(pair[0], now)))
    }

    /// Whether they let a key be set that has this value at present.
    fn permit(&self, present: Option<&[u8]>) -> bool {
        match self.only_equal {
            Some(_) => present == self.only_equal,
            None => !(self.only_new || self.only_old) || present.is_some() == self.only_old,
        }
    }
}

/// `SET key value [NX | XX | IFEQ value] [PX ms | EX s]`, the options in any order. All of them are read before the
/// number is. Not every server can compare.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
    can_compare: bool,
    now: Millis,
    out: &mut Vec<u8>,
) {
    let Some(options) = SetOptions::parse(options, can_compare) else { return reply::error(out, SYNTAX) };
    match options.deadline(now, BAD_EXPIRE_IN_SET) {
        Err(error) => reply::error(out, error),
        Ok(_) if !options.permit(database.value(key, now)) => reply::null(out),
        Ok(deadline) => {
            database.set(key, value, deadline, now);
            reply::simple(out, "OK");
        }
    }
}

/// `MSETEX count key value … [NX | XX] [PX ms | EX s]`: all keys or none.
pub(super) fn set_all(database: &mut Keyspace, key_count: &[u8], values: &[&[u8]], now: Millis, out: &mut Vec<u8>) {
    let count = integer(key_count).and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let Some(count) = count else { return reply::error(out, BAD_KEY_COUNT) };
    let Some((pairs, options)) = count.checked_mul(2).and_then(|words| values.split_at_checked(words)) else {
        return reply::error(out, TOO_FEW_PAIRS);
    };
    let Some(options) = SetOptions::parse(options, false) else { return reply::error(out, SYNTAX) };
    match options.deadline(now, BAD_EXPIRE_IN_MSETEX) {
        Err(error) => reply::error(out, error),
        Ok(_) if !options.permit_all(pairs, database, now) => reply::integer(out, 0),
        Ok(deadline) => {
            pairs.chunks_exact(2).for_each(|pair| database.set(pair[0], pair[1], deadline, now));
            reply::integer(out, 1);
        }
    }
}
