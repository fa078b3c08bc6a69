//! The queue of those that wait for a lock, as `queue.lua` leaves it, written out in Rust: the part of a script that is
//! the same for locks of all kinds. [`LockKind`] is the part before it.
//!
//! Step for step what the script does, in its order, so that the two can be read side by side. Not so: the node lets
//! every client publish and touch a queue.

use super::calls::{Arguments, Calls};
use super::failure::ScriptFailure;
use super::numbers::DAY;
use super::reply::{NO_ARGUMENT, ScriptValue};
use super::sorted_set::{Member, score};
use crate::protocol::key_space;
pub(super) use crate::protocol::queue::CHANNEL;

/// What the key of a queue begins with; the key of the lock follows.
pub(super) const QUEUE: &[u8] = key_space::QUEUE.as_bytes();
/// Bytes of the number of a client, at the beginning of an entry.
pub(super) const CLIENT: usize = 16;
/// For how long a queue is kept, in milliseconds.
const RETENTION: &[u8] = b"60000";
/// Most entries that one script sends a message to.
pub(super) const MOST_TOLD: usize = 64;
/// What a client writes is so long. No client can name another entry, so that none counts as alive.
pub(super) const ENTRY_SIZES: std::ops::RangeInclusive<usize> = 18..=47;
/// Most entries that a challenge removes.
const MOST_CHALLENGED: usize = 128;

/// What a queue has to know about the lock that it is for, besides [`LockKind`].
pub(super) struct Lock<'a> {
    pub(super) key: &'a [u8],
    pub(super) queue: &'a [u8],
    /// Whether the lock is held with the caller's token; for a release: was.
    pub(super) ours: bool,
    /// What the key of the lock holds, or nothing.
    pub(super) holder: Vec<u8>,
}

/// In what locks differ: the functions that the part before `queue.lua` defines.
pub(super) trait LockKind {
    /// The kind of an entry, as far as it matters for this kind of lock.
    type Entry: Copy;

    /// The kind of the entry that the caller has or would have.
    fn asked(&self) -> Self::Entry;

    fn kind_of(&self, member: &[u8]) -> Self::Entry;

    /// Whether an entry with so many in front, the first of which is of this kind, would be granted now.
    fn fits(&mut self, calls: &Calls<'_>, kind: Self::Entry, rank: usize, first: Option<Self::Entry>) -> bool;

    /// The kind of an entry that keeps the caller from the lock with so many in front.
    fn blocker(&self, _calls: &mut Calls<'_>, _queue: &[u8], _rank: usize) -> Option<Self::Entry> {
        None
    }

    /// The reply to a take where the lock is held with the caller's token.
    fn has_key(&self) -> ScriptValue {
        ScriptValue::Integer(1)
    }

    /// Grants the lock to the caller; the reply.
    ///
    /// # Errors
    /// What keeps the script from an answer.
    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<ScriptValue>, ScriptFailure>;

    /// Whether a grant leaves the caller's entry in the queue.
    fn keeps_entry(&self) -> bool {
        true
    }

    /// Otherwise: whether more may be granted than one run tells, so that a grant tells another one.
    fn grant_tells(&self) -> bool {
        true
    }

    /// Whether a lock has one holder, so that its first entry may ask.
    fn has_one_holder(&self) -> bool {
        true
    }

    /// Whether an entry with so many in front would have been granted before this release or leave, too: it received a
    /// message then. Called for an entry that fits.
    fn is_known(&self, _rank: usize) -> bool {
        false
    }

    /// For how long the lock is held, in milliseconds: 0 when it is free, -1 without an end.
    fn held_for(&self, calls: &Calls<'_>) -> i64;

    /// A letter for each slot of a semaphore.
    fn slots(&self, _calls: &Calls<'_>) -> String {
        "-".to_owned()
    }
}

/// Runs the part of a script that is about the queue.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run<K: LockKind>(
    calls: &mut Calls<'_>,
    kind: K,
    lock: Lock<'_>,
    arguments: Arguments<'_>,
) -> Result<ScriptValue, ScriptFailure> {
    let verb = arguments.or_empty(1);
    let me = match verb {
        b"take" => arguments.or_empty(4),
        b"leave" => arguments.or_empty(2),
        b"release" => arguments.or_empty(3),
        _ => b"",
    };
    let queue = Queue { calls, kind, lock, me, told: 0, has_more: false };
    match verb {
        b"release" => Ok(queue.release(arguments.or_empty(4))),
        b"leave" => Ok(queue.leave()),
        _ => queue.take(arguments),
    }
}

/// A running script.
struct Queue<'q, 's, K> {
    calls: &'q mut Calls<'s>,
    kind: K,
    lock: Lock<'q>,
    /// The caller's entry, or nothing.
    me: &'q [u8],
    /// How many entries have received a message.
    told: usize,
    /// Whether more entries without a receiver may be in front.
    has_more: bool,
}

impl<K: LockKind> Queue<'_, '_, K> {
    fn release(mut self, ticket: &[u8]) -> ScriptValue {
        if ticket.is_empty() {
            self.remove_own();
        } else {
            // No failure of these keeps a release from an answer.
            let _ = score(ticket).map(|score| self.calls.zadd(self.lock.queue, score, self.me));
            let _ = self.calls.pexpire(self.lock.queue, RETENTION);
        }
        let done = self.lock.ours;
        self.wake_and_reply(done)
    }

    fn leave(mut self) -> ScriptValue {
        let is_named = !self.me.is_empty();
        if is_named && !self.remove_own() {
            return ScriptValue::Integer(0);
        }
        self.wake_and_reply(is_named)
    }

    fn remove_own(&mut self) -> bool {
        !self.me.is_empty() && self.calls.zrem(self.lock.queue, self.me) == Ok(true)
    }

    fn wake_and_reply(&mut self, done: bool) -> ScriptValue {
        self.wake(MOST_TOLD, None);
        ScriptValue::Integer(match (self.has_more, self.told, done) {
            (true, _, _) => {
                if done {
                    3
                } else {
                    -3
                }
            }
            (false, 1.., _) => {
                if done {
                    2
                } else {
                    -2
                }
            }
            (false, 0, _) => i64::from(done),
        })
    }

    fn take(mut self, arguments: Arguments<'_>) -> Result<ScriptValue, ScriptFailure> {
        if self.lock.ours {
            return Ok(self.kind.has_key());
        }
        let (mode, challenged) = (arguments.or_empty(6), arguments.or_empty(7));
        let mut grants = !matches!(mode, b"q" | b"s");
        let mut ticket = arguments.at(5).and_then(score);
        let mut state = 'n';
        if mode != b"n" {
            (ticket, state) = self.store(mode, ticket, grants)?;
        }
        let is_challenged = !challenged.is_empty() && challenged != self.me;
        if is_challenged && self.first_entry().is_some_and(|first| *first == *challenged) {
            self.remove_in_front();
            grants = false;
        } else {
            let (asked, rank) = (self.kind.asked(), self.rank());
            if !self.kind.fits(self.calls, asked, rank, None) {
                // The first entry for a lock with one holder may ask. Otherwise only the dead are removed.
                let mark: &[u8] = if mode != b"n" && self.kind.has_one_holder() { b"" } else { b"." };
                self.wake(MOST_TOLD, Some(mark));
            }
        }
        if grants && let Some(answer) = self.grant()? {
            return Ok(answer);
        }
        let value = self.holder_shown();
        let (ticket, rank, left) = (ticket.unwrap_or(0.0), self.rank(), self.kind.held_for(self.calls));
        let slots = self.kind.slots(self.calls);
        let mut reply = format!("{state} {ticket:.0} {rank} {left} {value} {slots} ").into_bytes();
        reply.extend_from_slice(&self.first_entry().unwrap_or_default());
        Ok(ScriptValue::Bulk(reply))
    }

    /// What a refusal shows of the holder.
    fn holder_shown(&self) -> String {
        let holder = &self.lock.holder[..];
        let digits = holder.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let shown = |bytes: &[u8]| -> String {
            bytes.iter().map(|&byte| if matches!(byte, b'0'..=b'~') { char::from(byte) } else { '_' }).collect()
        };
        match holder {
            [] => "-".to_owned(),
            _ if digits == 40 && holder.get(40).is_none_or(|&byte| byte == b' ') => shown(&holder[..8]),
            _ => shown(&holder[holder.len().saturating_sub(8)..]) + "!",
        }
    }

    /// Stores the caller's entry, unless the lock is free and the queue is empty. Its ticket, and its state.
    fn store(&mut self, mode: &[u8], ticket: Option<f64>, grants: bool) -> Result<(Option<f64>, char), ScriptFailure> {
        let queue = self.lock.queue;
        let (mut ticket, mut state) = (ticket, 'n');
        let is_own = |member: &&Member| *member.name == *self.me;
        let stored = self.calls.members(queue).map(|all| all.iter().find(is_own).map(|own| own.score));
        let mut stored = stored.unwrap_or_else(|_| {
            let _ = self.calls.del(queue);
            None
        });
        if matches!(mode, b"p" | b"q") {
            let latest = self.calls.clock().saturating_add(DAY) as f64;
            if self.last_score() > latest {
                // An entry that is more than a day ahead is damage, and would let all tickets behind it be so.
                let _ = self.calls.remove_above(queue, latest);
            }
            let last = self.last_score();
            stored = stored.filter(|stored| *stored <= latest);
            let fresh = ticket.ok_or(NO_ARGUMENT)?.min(latest).max(last + 1.0);
            ticket = Some(stored.unwrap_or(fresh));
        }
        let asked = self.kind.asked();
        if !(grants && self.kind.fits(self.calls, asked, 0, None) && !self.calls.exists(queue)) {
            if stored != ticket {
                let score = ticket.ok_or(NO_ARGUMENT)?.round_ties_even();
                if self.calls.zadd(queue, score, self.me).is_err() {
                    state = 'o';
                }
            }
            // After any write, a server whose memory is full would store the lock.
            if state == 'n' {
                let _ = self.calls.pexpire(queue, RETENTION);
            }
        }
        Ok((ticket, if stored.is_some() && state == 'n' { 'y' } else { state }))
    }

    fn last_score(&self) -> f64 {
        self.calls.members(self.lock.queue).ok().and_then(<[_]>::last).map_or(0.0, |last| last.score)
    }

    /// Removes the entries up to the caller's, and sends each a message.
    fn remove_in_front(&mut self) {
        for _ in 0..MOST_CHALLENGED {
            let Some(first) = self.first_entry().filter(|first| **first != *self.me) else { return };
            if self.calls.zrem(self.lock.queue, &first) != Ok(true) {
                return;
            }
            self.tell(&first, b"");
        }
    }

    /// Grants the lock, if no entry keeps the caller from it.
    fn grant(&mut self) -> Result<Option<ScriptValue>, ScriptFailure> {
        let (asked, rank) = (self.kind.asked(), self.rank());
        if !self.kind.fits(self.calls, asked, rank, None) {
            return Ok(None);
        }
        let blocker = self.kind.blocker(self.calls, self.lock.queue, rank);
        if !self.kind.fits(self.calls, asked, rank, blocker) {
            return Ok(None);
        }
        let answer = self.kind.grant(self.calls)?;
        if answer.is_some() && !self.kind.keeps_entry() {
            let _ = self.calls.zrem(self.lock.queue, self.me);
            // One in front has been sent a message, and has not asked so far: it may have no receiver.
            if rank > 0 || self.kind.grant_tells() {
                self.wake(self.told + 1, None);
            }
        }
        Ok(answer)
    }

    /// Sends a message to the entries that would be granted now, until so many have received one, and to the next one
    /// that it is the next. Removes those without a receiver. With a mark, the first ones receive that instead, and
    /// those from the caller's entry on nothing.
    fn wake(&mut self, most: usize, mark: Option<&[u8]>) {
        let (mut rank, mut first) = (0, None);
        for count in [2, 256, 2048, 8192] {
            let Ok(members) = self.calls.members(self.lock.queue) else { return };
            let members: Vec<_> = members.iter().skip(rank).take(count).map(|member| member.name.clone()).collect();
            for member in &members {
                let (is_me, kind) = (!member.is_empty() && **member == *self.me, self.kind.kind_of(member));
                if self.told < most && self.kind.fits(self.calls, kind, rank, first) {
                    let is_known = is_me || mark.is_none() && self.kind.is_known(rank);
                    if is_me && mark.is_some() {
                        return;
                    } else if is_known || self.tell(member, mark.unwrap_or_default()) {
                        self.told += usize::from(!is_known);
                        first = first.or(Some(kind));
                        rank += 1;
                        continue;
                    }
                } else if first.is_none() || is_me || mark == Some(b".") || self.tell(member, b"?") {
                    return;
                }
                let _ = self.calls.zrem(self.lock.queue, member);
            }
            if members.len() < count {
                return;
            }
        }
        self.has_more = true;
    }

    /// Whether the message has a receiver.
    fn tell(&mut self, member: &[u8], mark: &[u8]) -> bool {
        if !ENTRY_SIZES.contains(&member.len()) {
            return false;
        }
        let (client, entry) = member.split_at(member.len().min(CLIENT));
        let message = [mark, entry, b" ", self.lock.key].concat();
        self.calls.publish([CHANNEL, client].concat(), &message) != 0
    }

    fn first_entry(&self) -> Option<Box<[u8]>> {
        let members = self.calls.members(self.lock.queue).ok()?;
        members.first().map(|first| first.name.clone())
    }

    /// How many entries are in front of the caller's; all, if it has none.
    fn rank(&self) -> usize {
        let members = self.calls.members(self.lock.queue).unwrap_or_default();
        members.iter().position(|member| *member.name == *self.me).unwrap_or(members.len())
    }
}
