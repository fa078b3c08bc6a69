//! What the scripts do on a node: functions over the key of the lock, the queue, and the subscriptions there.
//!
//! A queue has one entry for each call at most. Its score is the call's ticket, or 0 without an entry. Calls are
//! numbered by their members, so that the lower number is first among equal tickets.

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
    /// The token of an attempt whose undo was executed before: a late message. It ends with its time to live.
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
    /// Whether a program was killed since the last release: until then no script looks behind those that hold.
    pub(crate) has_unseen_death: bool,
    pub(crate) scores: [u8; CALLS],
    /// The calls whose channels have a receiver.
    pub(crate) receivers: Calls,
    /// Messages under way: turns, and those to the next ones.
    pub(crate) turns: Calls,
    pub(crate) nexts: Calls,
    /// Entries that were removed by another call's script, or with the queue, since this was last emptied.
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

impl Node {
    /// Asks for the lock. The head of the queue is that of the refusal.
    pub(crate) fn take(&mut self, rule: Rule, take: Take) -> (Reply, Option<usize>) {
        let Take { call, stores_only, .. } = take;
        if self.kind != Kind::Mutex {
            return self.take_share(rule, take);
        }
        if self.lock == Lock::Call(call as u8) {
            return (Reply::Granted, None);
        }
        let is_free = self.lock == Lock::Free;
        let is_empty = self.scores == [0; CALLS];
        let ticket = self.ticket(take);
        if !(is_free && is_empty) || stores_only {
            self.scores[call] = ticket;
        }
        if take.challenged.is_some() && self.first() == take.challenged && take.challenged != Some(call) {
            if rule != Rule::OnlySecondPasses || self.rank(call) == 1 {
                while let Some(first) = self.first().filter(|&first| first != call) {
                    self.send_turn(first);
                    self.remove(first);
                }
            }
        } else if is_free {
            let before = self.nexts;
            let first = self.wake(rule, (!stores_only).then_some(call));
            if !stores_only && first.is_none_or(|first| first == call) {
                self.lock = Lock::Call(call as u8);
                // A grant sends nothing: its release does.
                self.nexts = before;
                if rule == Rule::GrantRemoves {
                    self.granted_away |= if self.scores[call] > 0 { bit(call) } else { 0 };
                    self.scores[call] = 0;
                }
                return (Reply::Granted, None);
            }
        }
        let rank = self.rank(call);
        (Reply::Refused { ticket: ticket.into(), rank, is_free }, self.first())
    }

    /// Undoes an attempt, or ends a hold. With a ticket, the entry is stored again; without, it is removed.
    pub(crate) fn release(&mut self, rule: Rule, call: usize, ticket: Option<u8>) {
        if self.lock == Lock::Call(call as u8) {
            self.lock = Lock::Free;
        }
        if self.kind != Kind::Mutex {
            return self.release_share(rule, call, ticket);
        }
        self.granted_away &= !bit(call);
        let keeps = rule == Rule::NoAgreement && self.scores[call] > 0;
        if !keeps || ticket.is_none() {
            self.scores[call] = ticket.unwrap_or(0);
        }
        if self.lock == Lock::Free {
            self.wake(rule, Some(call));
        }
    }

    /// What a call without an entry releases.
    pub(crate) fn release_newcomer(&mut self, rule: Rule) {
        self.lock = Lock::Free;
        if self.kind == Kind::Mutex {
            self.wake(rule, None);
        } else {
            self.wake_shares(rule, 0, None);
        }
    }

    /// Removes the entry of a call that has no attempt there.
    pub(crate) fn leave(&mut self, rule: Rule, call: usize) {
        if self.kind != Kind::Mutex {
            return self.leave_share(rule, call);
        }
        let has_entry = std::mem::take(&mut self.scores[call]) > 0;
        if has_entry && self.lock == Lock::Free && rule != Rule::LeaveWakesNone {
            self.wake(rule, None);
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

    /// Removes the entries in front that have no receiver, sends a turn to the first one that has, and the other
    /// message to the next one that has. Nothing is sent to the caller. Returns the first one.
    fn wake(&mut self, rule: Rule, caller: Option<usize>) -> Option<usize> {
        let mut first = None;
        for call in self.queue() {
            let is_caller = caller == Some(call);
            let is_heard = self.receivers & bit(call) != 0 || rule == Rule::BlocksWhileAway;
            if let Some(first) = first {
                // The first one may have ended when its turn arrives.
                let is_undone = caller == Some(first) && rule == Rule::UndoWakesNoNext;
                if is_caller || is_undone || rule == Rule::NoNext {
                    break;
                }
                if is_heard || rule == Rule::NextMayBeDead {
                    self.nexts |= bit(call) & self.receivers;
                    break;
                }
            }
            if first.is_none() && (is_caller || is_heard) {
                if !is_caller {
                    self.send_turn(call);
                }
                first = Some(call);
            } else if rule != Rule::PassedWhileAway {
                self.remove(call);
            }
        }
        first
    }

    pub(crate) fn send_turn(&mut self, call: usize) {
        self.turns |= bit(call) & self.receivers;
    }

    pub(crate) fn remove(&mut self, call: usize) {
        self.scores[call] = 0;
        self.removed |= bit(call);
    }
}
