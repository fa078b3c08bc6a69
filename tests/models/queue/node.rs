//! What the scripts do on a node, step for step as `queue.lua` does: functions over the key of the
//! lock, the queue, and the subscriptions there. What depends on the kind of the lock is in
//! [`shares`](crate::shares).
//!
//! A queue has one entry for each call at most. Its score is the call's ticket, or 0 without an
//! entry. Calls are numbered by their members, so that the lower number is first among equal
//! tickets.

use crate::call::Reply;
use crate::rules::Rule;

pub(crate) const CALLS: usize = 4;

/// What the key of the lock holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lock {
    #[default]
    Free,
    /// The token of this call's present attempt, or of the hold.
    Call(u8),
    /// A call that has no entry, and will release.
    Newcomer,
    /// The token of an attempt whose undo was executed before: a late message. It ends with its
    /// time to live.
    Late,
    /// The token of an attempt that was not undone.
    Leaked,
}

/// Which locks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    #[default]
    Mutex,
    /// So many permits.
    Permits(u8),
    /// These calls write, and the others read.
    ReadWrite(Calls),
}

/// A set of calls, as bits.
pub(crate) type Calls = u8;

pub(crate) fn bit(call: usize) -> Calls {
    1 << call
}

/// The part of a node that scripts read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) lock: Lock,
    /// The calls that hold permits, read or write.
    pub(crate) holders: Calls,
    /// Whether a program was killed since the last release: until then no script looks behind those
    /// that hold.
    pub(crate) has_unseen_death: bool,
    pub(crate) scores: [u8; CALLS],
    /// The calls whose channels have a receiver.
    pub(crate) receivers: Calls,
    /// Messages under way: turns, and those to the next ones.
    pub(crate) turns: Calls,
    pub(crate) nexts: Calls,
    /// Entries that were removed by another call's script, or with the queue, since this was last
    /// emptied.
    pub(crate) removed: Calls,
    /// Entries that a grant to their call removed, which only a weaker rule does.
    pub(crate) granted_away: Calls,
}

/// How a call asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) call: usize,
    /// Its ticket; without one, the time by its clock.
    pub(crate) ticket: Result<u8, u8>,
    pub(crate) stores_only: bool,
    /// The head that it challenges.
    pub(crate) challenged: Option<usize>,
}

impl Take {
    pub(crate) fn new(call: usize, ticket: Result<u8, u8>) -> Take {
        Take {
            call,
            ticket,
            stores_only: false,
            challenged: None,
        }
    }
}

/// What a script sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Turn,
    /// "?"
    Next,
    /// ".": a client ignores it.
    Ping,
}

/// All that a script tells.
const MOST: usize = 64;

impl Node {
    /// Asks for the lock. The head of the queue is returned with a refusal.
    pub(crate) fn take(&mut self, rule: Rule, take: Take) -> (Reply, Option<usize>) {
        let Take {
            call,
            stores_only,
            challenged,
            ..
        } = take;
        if self.is_held_by(call) {
            return (Reply::Granted, None);
        }
        let ticket = self.ticket(take);
        let mut grants = !stores_only;
        if !(grants && self.fits(call, 0, None) && self.scores == [0; CALLS]) {
            self.scores[call] = ticket;
        }
        if challenged.is_some() && challenged != Some(call) && self.first() == challenged {
            if rule != Rule::OnlySecondPasses || self.rank(call) == 1 {
                while let Some(first) = self.first().filter(|&first| first != call) {
                    self.tell(rule, first, Mark::Turn);
                    self.remove(first);
                }
            }
            grants = false;
        } else if !self.fits(call, self.rank_for(rule, call), None) {
            let is_mutex = self.kind == Kind::Mutex;
            let mark = if is_mutex { Mark::Turn } else { Mark::Ping };
            self.wake(rule, (Some(call), true), MOST, Some(mark));
        }
        let rank = self.rank_for(rule, call);
        if grants && self.fits(call, rank, None) {
            let blocker = self.blocker(rule, call, rank);
            if self.fits(call, rank, blocker) {
                self.grant(call);
                if !self.keeps_entry(call) {
                    let rank = self.rank(call);
                    self.scores[call] = 0;
                    // Those behind a permit's call were told before: there is one slot less, and
                    // one entry less. One in front may be dead.
                    if rank > 0 || matches!(self.kind, Kind::ReadWrite(_)) {
                        self.wake(rule, (Some(call), true), 1, None);
                    }
                } else if rule == Rule::GrantRemoves {
                    self.granted_away |= if self.scores[call] > 0 { bit(call) } else { 0 };
                    self.scores[call] = 0;
                }
                return (Reply::Granted, None);
            }
        }
        let rank = self.rank(call);
        let is_free = self.has_room(call);
        (
            Reply::Refused {
                ticket: ticket.into(),
                rank,
                is_free,
            },
            self.first(),
        )
    }

    /// Asks by the command of the lock.
    pub(crate) fn set(&mut self, call: usize) -> Reply {
        if self.lock != Lock::Free {
            return Reply::Taken;
        }
        self.lock = Lock::Call(call as u8);
        Reply::Granted
    }

    /// Undoes an attempt, or ends a hold. With a ticket, the entry is stored again; without, it is
    /// removed.
    pub(crate) fn release(&mut self, rule: Rule, call: usize, ticket: Option<u8>) {
        if self.lock == Lock::Call(call as u8) {
            self.lock = Lock::Free;
        }
        self.holders &= !bit(call);
        self.granted_away &= !bit(call);
        self.has_unseen_death = false;
        let keeps = rule == Rule::NoAgreement && self.scores[call] > 0;
        if !keeps || ticket.is_none() {
            self.scores[call] = ticket.unwrap_or(0);
        }
        self.wake_all(rule, Some(call));
    }

    /// What a call without an entry releases.
    pub(crate) fn release_newcomer(&mut self, rule: Rule) {
        self.lock = Lock::Free;
        self.wake_all(rule, None);
    }

    /// Removes the entry of a call that has no attempt there.
    pub(crate) fn leave(&mut self, rule: Rule, call: usize) {
        self.scores[call] = 0;
        if rule != Rule::LeaveWakesNone {
            self.wake_all(rule, Some(call));
        }
    }

    /// The calls with an entry, the first one first.
    pub(crate) fn queue(&self) -> impl Iterator<Item = usize> + use<> {
        let mut calls: [usize; CALLS] = std::array::from_fn(|call| call);
        calls.sort_unstable_by_key(|&call| (self.scores[call], call));
        let scores = self.scores;
        calls.into_iter().filter(move |&call| scores[call] > 0)
    }

    /// The ticket of a call that asks.
    pub(crate) fn ticket(&self, take: Take) -> u8 {
        match (take.ticket, self.scores[take.call]) {
            (Ok(ticket), _) => ticket,
            (Err(_), stored @ 1..) => stored,
            (Err(clock), 0) => clock.max(self.scores.iter().max().map_or(0, |last| last + 1)),
        }
    }

    pub(crate) fn first(&self) -> Option<usize> {
        self.queue().next()
    }

    pub(crate) fn rank(&self, call: usize) -> u32 {
        self.queue().take_while(|&other| other != call).count() as u32
    }

    fn rank_for(&self, rule: Rule, call: usize) -> u32 {
        let in_front = self.queue().take_while(|&other| other != call);
        match rule {
            Rule::PassedWhileAway => in_front
                .filter(|&other| self.receivers & bit(other) != 0)
                .count() as u32,
            _ => in_front.count() as u32,
        }
    }

    fn wake_all(&mut self, rule: Rule, caller: Option<usize>) {
        self.wake(rule, (caller, false), MOST, None);
    }

    /// Tells those that would be granted now, at most so many, and the next one that it is that.
    /// Removes those without a receiver. With a mark, they get that instead of a turn, and those
    /// from the caller on get nothing.
    fn wake(
        &mut self,
        rule: Rule,
        (caller, is_take): (Option<usize>, bool),
        most: usize,
        mark: Option<Mark>,
    ) {
        let mut rank = 0;
        let mut first = None;
        let mut told = 0;
        for call in self.queue() {
            let is_caller = caller == Some(call);
            if told < most && self.fits(call, rank, first) {
                if is_caller && mark.is_some() {
                    return;
                }
                let is_known = is_caller || mark.is_none() && !is_take && self.was_told(rank);
                if is_known || self.tell(rule, call, mark.unwrap_or(Mark::Turn)) {
                    told += usize::from(!is_known);
                    first = first.or(Some(call));
                    rank += 1;
                    if is_caller && rule == Rule::UndoWakesNoNext {
                        return;
                    }
                } else if rule != Rule::PassedWhileAway {
                    self.remove(call);
                }
            } else if first.is_none()
                || is_caller
                || mark == Some(Mark::Ping)
                || rule == Rule::NoNext
                || self.tell(rule, call, Mark::Next)
                || rule == Rule::NextMayBeDead
            {
                return;
            } else if rule != Rule::PassedWhileAway {
                self.remove(call);
            }
        }
    }

    /// Sends a message. Returns whether it has a receiver.
    pub(crate) fn tell(&mut self, rule: Rule, call: usize, mark: Mark) -> bool {
        let receiver = bit(call) & self.receivers;
        match mark {
            Mark::Turn => self.turns |= receiver,
            Mark::Next => self.nexts |= receiver,
            Mark::Ping => {}
        }
        receiver != 0 || rule == Rule::BlocksWhileAway
    }

    pub(crate) fn remove(&mut self, call: usize) {
        self.scores[call] = 0;
        self.removed |= bit(call);
    }
}
