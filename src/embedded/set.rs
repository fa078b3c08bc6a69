//! The embedded node's `SET`, whose options are many, and `MSETEX`, which has some of them.

use super::keyspace::{Keyspace, Millis};
use super::numbers::{integer, signed};
use super::reply::{NOT_AN_INTEGER, SYNTAX};

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
        self.expire.map(|(unit, number)| deadline(unit, number, now, bad)).transpose()
    }

    /// Whether they let a key be set. Not every value can be compared.
    fn permit(&self, key: &[u8], database: &Keyspace, now: Millis) -> Result<bool, &'static str> {
        if self.only_equal.is_some() {
            return Ok(database.string(key, now)? == self.only_equal);
        }
        Ok(!(self.only_new || self.only_old) || database.exists(key, now) == self.only_old)
    }
}

/// The end of a number of units from now on, a unit being so many milliseconds.
fn deadline(unit: i64, number: &[u8], now: Millis, bad: &'static str) -> Result<Millis, &'static str> {
    let delay = integer(number).ok_or(NOT_AN_INTEGER)?.checked_mul(unit).filter(|&delay| delay > 0);
    let deadline = delay.and_then(|delay| signed(now).checked_add(delay)).ok_or(bad)?;
    Ok(deadline.unsigned_abs())
}

/// The end of a key that is set for a number of milliseconds from now on.
///
/// # Errors
/// What a server replies to a number that it cannot use.
pub(super) fn deadline_of_set(milliseconds: &[u8], now: Millis) -> Result<Millis, &'static str> {
    deadline(1, milliseconds, now, BAD_EXPIRE_IN_SET)
}

/// `SET key value [NX | XX | IFEQ value] [PX ms | EX s]`, the options in any order: whether the key was set. All of
/// them are read before the number is. Not every server can compare.
///
/// # Errors
/// What a server replies then.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
    can_compare: bool,
    now: Millis,
) -> Result<bool, &'static str> {
    let options = SetOptions::parse(options, can_compare).ok_or(SYNTAX)?;
    let deadline = options.deadline(now, BAD_EXPIRE_IN_SET)?;
    let is_permitted = options.permit(key, database, now)?;
    if is_permitted {
        database.set(key, value, deadline, now);
    }
    Ok(is_permitted)
}

/// `MSETEX count key value … [NX | XX] [PX ms | EX s]`: all keys or none; whether they were set.
///
/// # Errors
/// What a server replies then.
pub(super) fn set_all(
    database: &mut Keyspace,
    key_count: &[u8],
    values: &[&[u8]],
    now: Millis,
) -> Result<bool, &'static str> {
    let count = integer(key_count).and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let words = count.ok_or(BAD_KEY_COUNT)?.checked_mul(2);
    let (pairs, options) = words.and_then(|words| values.split_at_checked(words)).ok_or(TOO_FEW_PAIRS)?;
    let options = SetOptions::parse(options, false).ok_or(SYNTAX)?;
    let deadline = options.deadline(now, BAD_EXPIRE_IN_MSETEX)?;
    let pairs = pairs.chunks_exact(2);
    let are_permitted = pairs.clone().all(|pair| options.permit(pair[0], database, now) == Ok(true));
    if are_permitted {
        pairs.for_each(|pair| database.set(pair[0], pair[1], deadline, now));
    }
    Ok(are_permitted)
}
