//! The queue of those that wait for a lock, as `queue.lua` leaves it, written out in Rust: the part
//! of a script that is the same for locks of all kinds. [`LockKind`] is the part before it.
//!
//! Step for step what the script does, in its order, so that the two can be read side by side. Not
//! so: the node lets every client publish and touch a queue.

use super::calls::Calls;
use super::numbers::DAY;
use super::options::score;
use super::reply::{Answer, Failure, NO_ARGUMENT, Reply, Reply::Integer};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::queue::Member;
use crate::protocol::queue::CHANNEL;

/// Bytes of the number of a client, at the beginning of an entry.
pub(super) const CLIENT: usize = 16;
/// For how long a queue is kept, in milliseconds.
const RETENTION: &[u8] = b"60000";
/// Most entries that one script sends a message to.
pub(super) const MOST_TOLD: usize = 64;
/// What a client writes is so long. No client can name another entry, so that none counts as alive.
const ENTRY_SIZES: std::ops::RangeInclusive<usize> = 18..=47;
/// Most entries that a challenge removes.
const MOST_CHALLENGED: usize = 128;
/// The kind of an entry of a writer.
pub(super) const WRITER: u64 = 1;

/// In what locks differ: the functions that the part before `queue.lua` defines. An entry has a
/// kind, which is a number that matters for semaphores and for read-write locks.
pub(super) trait LockKind {
    /// The kind of the entry that the caller has or would have.
    fn asked(&self) -> u64 {
        0
    }

    /// The kind of an entry.
    fn kind_of(&self, _member: &[u8]) -> u64 {
        0
    }

    /// Whether an entry with so many in front, the first of which is of this kind, would be granted
    /// now.
    fn fits(&mut self, calls: &Calls<'_>, kind: u64, rank: usize, first: Option<u64>) -> bool;

    /// The kind of an entry that keeps the caller from the lock with so many in front.
    fn blocker(&self, _calls: &mut Calls<'_>, _rank: usize) -> Option<u64> {
        None
    }

    /// The reply to a take where the lock is held with the caller's token.
    fn has_key(&self, _calls: &Calls<'_>) -> Reply {
        Integer(1)
    }

    /// Grants the lock to the caller; the reply.
    ///
    /// # Errors
    /// What keeps the script from an answer.
    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<Reply>, Failure>;

    /// Whether a grant leaves the caller's entry in the queue.
    fn keeps_entry(&self) -> bool {
        true
    }

    /// Otherwise: whether more may be granted than one run tells, so that a grant tells another
    /// one.
    fn grant_tells(&self) -> bool {
        true
    }

    /// Whether an entry with so many in front would have been granted before this release or leave,
    /// too: it received a message then. Called for an entry that fits.
    fn is_known(&self, _calls: &Calls<'_>, _rank: usize) -> bool {
        false
    }

    /// For how long the lock is held, in milliseconds: 0 when it is free, -1 without an end.
    fn held_for(&self, calls: &Calls<'_>) -> i64;

    /// A letter for each slot of a semaphore.
    fn slots(&self, _calls: &Calls<'_>) -> String {
        "-".to_owned()
    }
}

/// What the key of a lock holds.
pub(super) struct Held {
    /// Whether that is the caller's token; for a release: was.
    pub(super) is_ours: bool,
    /// The value, or nothing.
    pub(super) by: Vec<u8>,
}

/// Runs the part of a script that is about the queue.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>, kind: impl LockKind, held: Held) -> Answer {
    let verb = calls.text(1);
    let me = match verb {
        b"take" => calls.text(4),
        b"leave" => calls.text(2),
        b"release" => calls.text(3),
        _ => b"",
    };
    let queue = Queue {
        calls,
        kind,
        held,
        me,
        told: 0,
        has_more: false,
    };
    if matches!(verb, b"release" | b"leave") {
        queue.end(verb == b"leave")
    } else {
        queue.take()
    }
}

/// Sends a message to the client of an entry, if it is one: whether it has a receiver.
pub(super) fn send(calls: &mut Calls<'_>, member: &[u8], message: &[u8]) -> bool {
    ENTRY_SIZES.contains(&member.len())
        && calls.publish([CHANNEL, &member[..CLIENT]].concat(), message)
}

/// The message that it is an entry's turn.
pub(super) fn turn(calls: &Calls<'_>, member: &[u8]) -> Vec<u8> {
    [member.get(CLIENT..).unwrap_or_default(), b" ", calls.key].concat()
}

/// A running script.
struct Queue<'q, 's, K> {
    calls: &'q mut Calls<'s>,
    kind: K,
    held: Held,
    /// The caller's entry, or nothing.
    me: &'s [u8],
    /// How many entries have received a message.
    told: usize,
    /// Whether more entries without a receiver may be in front.
    has_more: bool,
}

impl<K: LockKind> Queue<'_, '_, K> {
    /// The verbs of a caller that holds the lock, or waits for it, no longer.
    ///
    /// # Errors
    /// What keeps the caller's entry from being removed.
    fn end(mut self, is_leave: bool) -> Answer {
        let ticket = if is_leave { b"" } else { self.calls.text(4) };
        let mut done = !is_leave && self.held.is_ours;
        if !ticket.is_empty() {
            // No failure of these keeps a release from an answer.
            let _ = score(ticket).map(|score| self.calls.zadd(score, self.me));
            let _ = self.calls.pexpire(&self.calls.queue.clone(), RETENTION);
        } else if !self.me.is_empty() {
            let gone = self.calls.zrem(self.me);
            let mut stored = self.calls.members().iter();
            if let Err(failure) = &gone
                && !done
                && stored.any(|member| *member.name == *self.me)
            {
                return Err(failure.clone());
            }
            if is_leave && gone != Ok(true) {
                return Ok(Integer(0));
            }
            done |= is_leave;
        }
        self.wake(MOST_TOLD, None);
        let reply = match self.told {
            _ if self.has_more => 3,
            0 => i64::from(done),
            _ => 2,
        };
        Ok(Integer(if done { reply } else { -reply }))
    }

    fn take(mut self) -> Answer {
        if self.held.is_ours {
            return Ok(self.kind.has_key(self.calls));
        }
        let mode = self.calls.text(6);
        let challenged = self.calls.text(7);
        let mut grants = !matches!(mode, b"q" | b"s");
        let mut ticket = self.calls.argument(5).and_then(score);
        let mut state = 'n';
        if mode != b"n" {
            (ticket, state) = self.store(mode, ticket, grants)?;
        }
        let is_challenged = !challenged.is_empty() && challenged != self.me;
        if is_challenged
            && self
                .first_entry()
                .is_some_and(|first| *first == *challenged)
        {
            self.remove_in_front();
            grants = false;
        } else {
            let asked = self.kind.asked();
            let rank = self.rank();
            if !self.kind.fits(self.calls, asked, rank, None) {
                // The first entry for a lock with one holder may ask. Otherwise only the dead are
                // removed.
                let may_ask = mode != b"n" && self.kind.keeps_entry() && asked != WRITER;
                self.wake(MOST_TOLD, Some(if may_ask { b"" } else { b"." }));
            }
        }
        if grants && let Some(answer) = self.grant()? {
            return Ok(answer);
        }
        let value = self.holder_shown();
        let ticket = ticket.unwrap_or(0.0);
        let rank = self.rank();
        let left = self.kind.held_for(self.calls);
        let slots = self.kind.slots(self.calls);
        let mut reply = format!("{state} {ticket:.0} {rank} {left} {value} {slots} ").into_bytes();
        // A longer one is of no program of ours.
        let first = self.first_entry().unwrap_or_default();
        reply.extend_from_slice(&first[..first.len().min(Member::LONGEST + 1)]);
        Ok(Reply::Bulk(reply))
    }

    /// What a refusal shows of the holder.
    fn holder_shown(&self) -> String {
        let holder = &self.held.by[..];
        let digits = holder
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let is_ours =
            digits == OwnerToken::LENGTH && holder.get(digits).is_none_or(|&byte| byte == b' ');
        let part = if is_ours {
            &holder[..8]
        } else {
            &holder[holder.len().saturating_sub(8)..]
        };
        let shown = part.iter().map(|&byte| {
            if matches!(byte, b'0'..=b'~') {
                char::from(byte)
            } else {
                '_'
            }
        });
        match holder {
            [] => "-".to_owned(),
            _ => shown.chain((!is_ours).then_some('!')).collect(),
        }
    }

    /// Stores the caller's entry, unless the lock is free and the queue is empty. Its ticket, and
    /// its state.
    fn store(
        &mut self,
        mode: &[u8],
        mut ticket: Option<f64>,
        grants: bool,
    ) -> Result<(Option<f64>, char), Failure> {
        let queue = &self.calls.queue.clone();
        let mut state = 'n';
        if let Ok(Some(_)) = self.calls.get(queue) {
            // Another type.
            let _ = self.calls.del(queue);
        }
        let own = self
            .calls
            .members()
            .iter()
            .find(|member| *member.name == *self.me);
        let mut stored = own.map(|own| own.score);
        if matches!(mode, b"p" | b"q") {
            let latest = self.calls.clock().saturating_add(DAY) as f64;
            let last_score =
                |calls: &Calls<'_>| calls.members().last().map_or(0.0, |last| last.score);
            if last_score(self.calls) > latest {
                // An entry that is more than a day ahead is damage, and would let all tickets
                // behind it be so.
                let _ = self.calls.remove_above(latest);
            }
            stored = stored.filter(|stored| *stored <= latest);
            let fresh = ticket
                .ok_or(NO_ARGUMENT)?
                .min(latest)
                .max(last_score(self.calls) + 1.0);
            ticket = Some(stored.unwrap_or(fresh));
        }
        let asked = self.kind.asked();
        if !(grants
            && self.kind.fits(self.calls, asked, 0, None)
            && !self.calls.database.exists(queue))
        {
            if stored != ticket {
                let score = ticket.ok_or(NO_ARGUMENT)?.round_ties_even();
                if self.calls.zadd(score, self.me).is_err() {
                    state = 'o';
                }
            }
            // After any write, a server whose memory is full would store the lock.
            if state == 'n' {
                let _ = self.calls.pexpire(queue, RETENTION);
            }
        }
        Ok((
            ticket,
            if stored.is_some() && state == 'n' {
                'y'
            } else {
                state
            },
        ))
    }

    /// Removes the entries up to the caller's, and sends each a message.
    fn remove_in_front(&mut self) {
        for _ in 0..MOST_CHALLENGED {
            let Some(first) = self.first_entry().filter(|first| **first != *self.me) else {
                return;
            };
            if self.calls.zrem(&first) != Ok(true) {
                return;
            }
            self.tell(&first, b"");
        }
    }

    /// Grants the lock, if no entry keeps the caller from it.
    fn grant(&mut self) -> Result<Option<Reply>, Failure> {
        let asked = self.kind.asked();
        let rank = self.rank();
        if !self.kind.fits(self.calls, asked, rank, None) {
            return Ok(None);
        }
        let blocker = self.kind.blocker(self.calls, rank);
        if !self.kind.fits(self.calls, asked, rank, blocker) {
            return Ok(None);
        }
        let answer = self.kind.grant(self.calls)?;
        if answer.is_some() && !self.kind.keeps_entry() {
            let _ = self.calls.zrem(self.me);
            // One in front has been sent a message, and has not asked so far: it may have no
            // receiver.
            if rank > 0 || self.kind.grant_tells() {
                self.wake(self.told + 1, None);
            }
        }
        Ok(answer)
    }

    /// Sends a message to the entries that would be granted now, until so many have received one,
    /// and to the next one that it is the next. Removes those without a receiver. With a mark, the
    /// first ones receive that instead, and those from the caller's entry on nothing.
    fn wake(&mut self, most: usize, mark: Option<&[u8]>) {
        let mut rank = 0;
        let mut first = None;
        for count in [2, 256, 2048, 8192] {
            let members = self.calls.members();
            let members: Vec<_> = members
                .iter()
                .skip(rank)
                .take(count)
                .map(|member| member.name.clone())
                .collect();
            for member in &members {
                let is_me = !member.is_empty() && **member == *self.me;
                let kind = self.kind.kind_of(member);
                if self.told < most && self.kind.fits(self.calls, kind, rank, first) {
                    let is_known = is_me || mark.is_none() && self.kind.is_known(self.calls, rank);
                    if is_me && mark.is_some() {
                        return;
                    } else if is_known || self.tell(member, mark.unwrap_or_default()) {
                        self.told += usize::from(!is_known);
                        first = first.or(Some(kind));
                        rank += 1;
                        continue;
                    }
                } else if first.is_none() || is_me || mark == Some(b".") || self.tell(member, b"?")
                {
                    return;
                }
                let _ = self.calls.zrem(member);
            }
            if members.len() < count {
                return;
            }
        }
        self.has_more = true;
    }

    /// Whether the message that it is an entry's turn, behind a mark, has a receiver.
    fn tell(&mut self, member: &[u8], mark: &[u8]) -> bool {
        let message = [mark, &turn(self.calls, member)].concat();
        send(self.calls, member, &message)
    }

    fn first_entry(&self) -> Option<Box<[u8]>> {
        self.calls.members().first().map(|first| first.name.clone())
    }

    /// How many entries are in front of the caller's; all, if it has none.
    fn rank(&self) -> usize {
        let members = self.calls.members();
        members
            .iter()
            .position(|member| *member.name == *self.me)
            .unwrap_or(members.len())
    }
}
