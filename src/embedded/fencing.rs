//! The key of a fenced lock as the script [`FENCE`](crate::protocol::script::FENCE) leaves it, written out in Rust.
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::config::Condition;
use super::failure::ScriptFailure;
use super::keyspace::{Keyspace, Millis};
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY, ScriptValue};
use crate::protocol::script::FENCE;

/// The greatest number that a server counts exactly.
const MOST: u64 = (1 << 53) - 1;
/// A minute, in microseconds: how far before a server's clock a floor may be.
const MINUTE: u64 = 60_000_000;
/// A day, in microseconds: how far beyond the latest floor a fence may be.
const DAY: u64 = 86_400_000_000;

/// Bytes of an owner token.
const TOKEN: usize = 40;
/// Bytes of the longest label, with the space before it.
const LONGEST_LABEL: usize = 65;

/// What a key says. The label begins with its space.
struct Value<'k> {
    fence: u64,
    deadline: Millis,
    owner: &'k [u8],
    label: &'k [u8],
}

impl<'k> Value<'k> {
    /// The value that was written so, if there is one.
    fn read(bytes: &'k [u8]) -> Option<Value<'k>> {
        let mut fields = bytes.splitn(3, |&byte| byte == b' ');
        let fence = number(fields.next()?).filter(|fence| *fence > 0)?;
        let deadline = number(fields.next()?)?;
        let rest = fields.next()?;
        let (owner, label) = rest.split_at(rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len()));
        let is_token = owner.len() == TOKEN && owner.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_label = (2..=LONGEST_LABEL).contains(&label.len()) && label[1..].iter().all(u8::is_ascii_graphic);
        let is_valid = (owner.is_empty() || is_token) && (label.is_empty() || is_label);
        is_valid.then_some(Value { fence, deadline, owner, label })
    }
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    condition: Condition,
    now: Millis,
) -> Result<ScriptValue, ScriptFailure> {
    let [what, signature, retention, rest @ ..] = values else { return Err(NO_ARGUMENT.into()) };
    let read = database.value(key, now).map(Value::read);
    let Value { mut fence, mut deadline, owner, mut label } = match read {
        None => Value { fence: 0, deadline: 0, owner: b"", label: b"" },
        Some(None) => return Ok(ScriptValue::Integer(-2)),
        Some(Some(value)) => value,
    };
    let argument = |index: usize| rest.get(index).and_then(|text| number(text)).ok_or(NO_ARGUMENT);
    let (token, own_label) = signature.split_at(signature.len().min(TOKEN));
    let is_ours = owner == token;
    let mut owner_now = token;
    let mut answer = ScriptValue::Integer(1);
    let latest_floor = now * 1000 + MINUTE;
    let greatest = (latest_floor + DAY).min(MOST);
    if matches!(*what, b"acquire" | b"extend") {
        let is_held = !owner.is_empty() && deadline >= now;
        if is_held && !is_ours {
            let left = i64::try_from(deadline - now).unwrap_or(i64::MAX - 4);
            return Ok(ScriptValue::Integer(if *what == b"acquire" { -4 - left } else { -1 }));
        }
        if *what == b"extend" && !is_held {
            return Ok(ScriptValue::Integer(0));
        }
        if *what == b"acquire" {
            if is_held {
                return Ok(ScriptValue::Fence(fence));
            }
            fence = (fence + 1).max(argument(1)?.min(latest_floor));
            if fence > greatest {
                return Ok(ScriptValue::Integer(-3));
            }
            answer = ScriptValue::Fence(fence);
            label = own_label;
        }
        deadline = now + argument(0)?;
    } else if !is_ours {
        return Ok(ScriptValue::Integer(if owner.is_empty() { 0 } else { -1 }));
    } else if *what == b"raise" {
        fence = fence.max(argument(0)?);
        if fence > greatest {
            return Ok(ScriptValue::Integer(-3));
        }
    } else {
        (deadline, owner_now) = (0, b"");
    }
    let refusal = match condition {
        // A release writes something first that needs no memory.
        Condition::OutOfMemory if *what != b"release" => Some(OUT_OF_MEMORY),
        Condition::Replica => Some(READ_ONLY),
        Condition::Loading | Condition::OutOfMemory | Condition::Serving => None,
    };
    if let Some(error) = refusal {
        return Err(ScriptFailure::of_call(error, FENCE, "redis.pcall('SET'"));
    }
    let end = number(retention).filter(|time| *time > 0).and_then(|time| now.checked_add(time)).ok_or(NO_ARGUMENT)?;
    let mut value = format!("{fence} {deadline} ").into_bytes();
    value.extend_from_slice(owner_now);
    value.extend_from_slice(label);
    database.set(key, &value, Some(end), now);
    Ok(answer)
}

/// A number that counts exactly, written without leading zeros.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let is_canonical = matches!(text, [b'1'..=b'9', ..] | b"0") && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_canonical)?.parse().ok()?;
    (number <= MOST).then_some(number)
}
