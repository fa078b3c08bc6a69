//! The embedded node's `SET`, whose options are many.

use super::keyspace::{Keyspace, Millis};
use super::numbers::{integer, signed};
use super::reply::{NOT_AN_INTEGER, SYNTAX};

const BAD_EXPIRE: &str = "ERR invalid expire time in 'set' command";

/// The options of one `SET`.
#[derive(Default)]
struct SetOptions<'o> {
    only_new: bool,
    only_old: bool,
    /// The unit that was used, in milliseconds, and the number as text.
    expire: Option<(i64, &'o [u8])>,
}

impl<'o> SetOptions<'o> {
    fn parse(options: &[&'o [u8]]) -> Option<SetOptions<'o>> {
        let mut parsed = SetOptions::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
            if is(b"PX") || is(b"EX") {
                let unit = if is(b"PX") { 1 } else { 1000 };
                let number = options
                    .next()
                    .filter(|_| parsed.expire.is_none_or(|(before, _)| before == unit))?;
                parsed.expire = Some((unit, number));
            } else if is(b"NX") && !parsed.only_old {
                parsed.only_new = true;
            } else if is(b"XX") && !parsed.only_new {
                parsed.only_old = true;
            } else {
                return None;
            }
        }
        Some(parsed)
    }

    /// When the key is to expire, if it is.
    fn deadline(&self, now: Millis) -> Result<Option<Millis>, &'static str> {
        self.expire
            .map(|(unit, number)| deadline(unit, number, now))
            .transpose()
    }

    /// Whether they let a key be set.
    fn permit(&self, key: &[u8], database: &Keyspace, now: Millis) -> bool {
        !(self.only_new || self.only_old) || database.exists(key, now) == self.only_old
    }
}

/// The end of a number of units from now on, a unit being so many milliseconds.
fn deadline(unit: i64, number: &[u8], now: Millis) -> Result<Millis, &'static str> {
    let delay = integer(number)
        .ok_or(NOT_AN_INTEGER)?
        .checked_mul(unit)
        .filter(|&delay| delay > 0);
    let deadline = delay
        .and_then(|delay| signed(now).checked_add(delay))
        .ok_or(BAD_EXPIRE)?;
    Ok(deadline.unsigned_abs())
}

/// The end of a key that is set for a number of milliseconds from now on.
///
/// # Errors
/// What a server replies to a number that it cannot use.
pub(super) fn deadline_of_set(milliseconds: &[u8], now: Millis) -> Result<Millis, &'static str> {
    deadline(1, milliseconds, now)
}

/// `SET key value [NX | XX] [PX ms | EX s]`, the options in any order: whether the key was set. All
/// of them are read before the number is.
///
/// # Errors
/// What a server replies then.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
    now: Millis,
) -> Result<bool, &'static str> {
    let options = SetOptions::parse(options).ok_or(SYNTAX)?;
    let deadline = options.deadline(now)?;
    let is_permitted = options.permit(key, database, now);
    if is_permitted {
        database.set(key, value, deadline, now);
    }
    Ok(is_permitted)
}
