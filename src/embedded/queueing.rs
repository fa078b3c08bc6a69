//! The queue of a fair lock as the scripts [`FAIR`](crate::protocol::script::FAIR) and
//! [`FENCED_FAIR`](crate::protocol::script::FENCED_FAIR) leave it, written out in Rust. What they do with the lock's
//! key is in [`fair_key`](super::fair_key).
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::config::Condition;
use super::failure::ScriptFailure;
use super::fair_key::FairKey;
use super::keyspace::{Keyspace, Millis};
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY, ScriptValue};
use crate::algorithm::place::MOST_TICKET;
use crate::protocol::script::FENCED_FAIR;

/// Digits of the greatest ticket at the front of a queue.
const HEAD: usize = 15;
/// Bytes of a place, with the space before it.
const LENGTH: usize = 47;
/// So many newcomers later, places in the middle that have ended are taken out.
const NEWCOMERS: usize = 32;

/// A place.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    ticket: u64,
    deadline: Millis,
    id: Vec<u8>,
}

/// What stands under a queue's key.
#[derive(Default)]
struct Queue {
    seen: u64,
    places: Vec<Place>,
}

impl Queue {
    fn read(text: &[u8]) -> Option<Queue> {
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.trim().parse().ok();
        let (head, places) = text.split_at_checked(HEAD)?;
        let place = |place: &[u8]| {
            let (ticket, deadline) = (number(place.get(1..16)?)?, number(place.get(17..30)?)?);
            Some(Place { ticket, deadline, id: place.get(31..LENGTH)?.to_vec() })
        };
        let places = places.chunks(LENGTH).map(place).collect::<Option<Vec<Place>>>()?;
        Some(Queue { seen: number(head)?, places })
    }

    fn text(&self) -> Vec<u8> {
        let mut text = format!("{:015}", self.seen).into_bytes();
        for place in &self.places {
            text.extend_from_slice(format!(" {:015}:{:013}:", place.ticket, place.deadline).as_bytes());
            text.extend_from_slice(&place.id);
        }
        text
    }

    /// The first place from this one on that counts.
    fn next(&self, from: usize, now: Millis) -> usize {
        let counts = |place: &&Place| place.deadline >= now;
        from + self.places[from.min(self.places.len())..].iter().take_while(|place| !counts(place)).count()
    }
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(
    script: &'static str,
    database: &mut Keyspace,
    (key, queue_key): (&[u8], &[u8]),
    values: &[&[u8]],
    condition: Condition,
    now: Millis,
) -> Result<ScriptValue, ScriptFailure> {
    let [what, argument, rest @ ..] = values else { return Err(NO_ARGUMENT.into()) };
    let written = |first: &str| match condition {
        Condition::OutOfMemory if first.contains("SET") => Err(ScriptFailure::of_call(OUT_OF_MEMORY, script, first)),
        Condition::Replica => Err(ScriptFailure::of_call(READ_ONLY, script, first)),
        Condition::Loading | Condition::OutOfMemory | Condition::Serving => Ok(()),
    };
    let lock = FairKey::read(script, database, key, now);
    let is_free = lock.is_free(now);
    match *what {
        b"take" => {
            if let Some(answer) = lock.answer_to_take(argument, now) {
                return Ok(answer);
            }
        }
        b"release" if !lock.is_of(argument) => return Ok(ScriptValue::Integer(0)),
        b"release" => lock.release((database, key), rest, condition, now)?,
        _ => {}
    }
    let read = database.value(queue_key, now).map_or_else(|| Some(Queue::default()), Queue::read);
    let Some(mut queue) = read.or_else(|| (*what == b"release").then(Queue::default)) else {
        return Ok(ScriptValue::Integer(-2));
    };
    let first = queue.next(0, now);
    let id_at = |queue: &Queue, place: usize| queue.places.get(place).map(|place| place.id.clone());
    if *what == b"release" {
        let next = id_at(&queue, first);
        return Ok(match rest.get(if script == FENCED_FAIR { 3 } else { 2 }) {
            Some(undoes) if next.as_deref().is_none_or(|next| next == *undoes) => ScriptValue::Unpublished(1),
            _ => ScriptValue::Released(next),
        });
    }
    let is_of = |id: &[u8]| queue.places.iter().position(|place| place.id == id);
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    if *what == b"leave" {
        let own = is_of(argument);
        let successor = rest.get(2).zip(rest.get(3));
        let next = own.and_then(|own| id_at(&queue, queue.next(own + 1, now)));
        let next = next.filter(|_| own == Some(first));
        match own {
            Some(own) => _ = queue.places.remove(own),
            None if successor.is_none() => return Ok(ScriptValue::Integer(0)),
            None => {}
        }
        let mut end = database.deadline(queue_key, now).flatten();
        if let Some((id, lasts)) = successor {
            let deadline = now + number(lasts).ok_or(NO_ARGUMENT)?;
            queue.seen = (queue.seen + 1).min(MOST_TICKET);
            queue.places.push(Place { ticket: queue.seen, deadline, id: id.to_vec() });
            end = Some(end.unwrap_or(0).max(deadline));
        }
        match end.filter(|_| !queue.places.is_empty()) {
            None => {
                written("redis.pcall('DEL', KEYS[2]")?;
                database.remove(queue_key, now);
            }
            Some(end) => {
                written("redis.pcall('SET', KEYS[2], rest")?;
                database.set(queue_key, &queue.text(), Some(end), now);
            }
        }
        return Ok(ScriptValue::Left(next));
    }
    let [ttl, id, sent, keeps, more @ ..] = rest else { return Err(NO_ARGUMENT.into()) };
    let of_fence = more.get(2..).unwrap_or_default();
    let (sent, keeps) = (number(sent).ok_or(NO_ARGUMENT)?, number(keeps).ok_or(NO_ARGUMENT)?);
    let own = is_of(id);
    let counts = |place: &&Place| place.deadline >= now;
    let stored = own.and_then(|own| queue.places.get(own)).filter(counts).map(|place| place.ticket);
    let mine = if sent > 0 { sent } else { stored.unwrap_or(queue.seen + 1) }.min(MOST_TICKET);
    let is_alone = |own: usize| queue.next(own + 1, now) >= queue.places.len();
    let is_first = match own {
        Some(own) if own == first && stored == Some(mine) => true,
        _ if sent > 0 && keeps > 0 => false,
        Some(own) if first < queue.places.len() => own == first && is_alone(own),
        _ => first >= queue.places.len(),
    };
    if is_free && is_first {
        let ttl = number(ttl).filter(|ttl| *ttl > 0).ok_or(NO_ARGUMENT)?;
        return lock.grant((database, key), (argument, ttl, of_fence), condition, now);
    }
    let held = lock.held_for((database, key), now);
    let mut position = own.filter(|&own| own >= first).unwrap_or(queue.places.len()) + 1 - first;
    if keeps > 0 {
        let place = Place { ticket: mine, deadline: now + keeps, id: id.to_vec() };
        queue.seen = queue.seen.max(mine);
        let is_last = queue.places.last().is_some_and(|last| last.ticket < mine);
        match own {
            Some(own) if stored == Some(mine) => {
                queue.places[own] = place;
                queue.places.drain(..first);
            }
            None if is_last && queue.places.len() % NEWCOMERS > 0 => {
                queue.places.push(place);
                queue.places.drain(..first);
            }
            _ => {
                queue.places.retain(|other| other.id != place.id && other.deadline >= now);
                let is_behind = |other: &Place| (other.ticket, &other.id) > (mine, &place.id);
                let at = queue.places.iter().position(is_behind).unwrap_or(queue.places.len());
                position = at + 1;
                queue.places.insert(at, place);
            }
        }
        written("redis.pcall('SET', KEYS[2], queue")?;
        let end = database.deadline(queue_key, now).flatten().unwrap_or(0).max(now + keeps);
        database.set(queue_key, &queue.text(), Some(end), now);
    }
    let first = queue.places.get(queue.next(0, now)).filter(|place| place.id != *id);
    let lasts = first.map_or(0, |place| place.deadline - now + 1);
    let next = first.map(|place| place.id.clone());
    let first = String::from_utf8_lossy(next.as_deref().unwrap_or(id)).into_owned();
    let answer = format!("{held} {mine:015} {position} {lasts} {first}");
    Ok(ScriptValue::Queued(answer, next.filter(|_| is_free)))
}
