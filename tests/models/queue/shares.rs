//! Permits, and locks to read and to write, on one node: what their scripts do beside those of a mutex.
//!
//! A lock is *free* for a call if its entry would be granted now. Each script sends a turn to those that it has made
//! the lock free for, and the other message to the first one behind them. The grant of a permit removes
//! its entry. A refusal only because of entries in front removes those of them that have no receiver.

use crate::call::Reply;
use crate::node::{CALLS, Calls, Kind, Node, Take, bit};
use crate::rules::Rule;

impl Node {
    pub(crate) fn take_share(&mut self, rule: Rule, take: Take) -> (Reply, Option<usize>) {
        let Take { call, stores_only, challenged, .. } = take;
        if self.holders & bit(call) != 0 {
            return (Reply::Granted, None);
        }
        let (before, ticket) = (self.grantable(), self.ticket(take));
        if self.first().is_some() || !self.has_room(call) || stores_only {
            self.scores[call] = ticket;
        }
        if challenged.is_some() && self.first() == challenged {
            while let Some(first) = self.first().filter(|&first| first != call) {
                self.send_turn(first);
                self.remove(first);
            }
        } else if !stores_only {
            if self.has_room(call) && !self.is_granted(call) {
                self.remove_dead_before(rule, call);
            }
            if self.is_granted(call) {
                self.holders |= bit(call);
                if matches!(self.kind, Kind::Permits(_)) {
                    self.scores[call] = 0;
                }
                self.wake_shares(rule, before, Some(call));
                return (Reply::Granted, None);
            }
        }
        self.wake_shares(rule, before, Some(call));
        let (rank, is_free) = (self.rank(call), self.has_room(call));
        (Reply::Refused { ticket: ticket.into(), rank, is_free }, self.first())
    }

    pub(crate) fn release_share(&mut self, rule: Rule, call: usize, ticket: Option<u8>) {
        let before = self.grantable();
        self.holders &= !bit(call);
        self.has_unseen_death = false;
        self.scores[call] = ticket.unwrap_or(0);
        self.wake_shares(rule, before, Some(call));
    }

    pub(crate) fn leave_share(&mut self, rule: Rule, call: usize) {
        let before = self.grantable();
        self.scores[call] = 0;
        if rule != Rule::LeaveWakesNone {
            self.wake_shares(rule, before, None);
        }
    }

    /// Whether the holders leave room for the call.
    fn has_room(&self, call: usize) -> bool {
        match self.kind {
            Kind::Mutex => false,
            Kind::Permits(permits) => self.holders.count_ones() < permits.into(),
            Kind::ReadWrite(writers) if writers & bit(call) != 0 => self.holders == 0,
            Kind::ReadWrite(writers) => self.holders & writers == 0,
        }
    }

    /// Whether the entries in front leave room, too.
    fn is_granted(&self, call: usize) -> bool {
        let mut in_front = self.queue().take_while(|&other| other != call);
        self.has_room(call)
            && match self.kind {
                Kind::Mutex => false,
                Kind::Permits(permits) => {
                    in_front.count() < usize::from(permits).saturating_sub(self.holders.count_ones() as usize)
                }
                Kind::ReadWrite(writers) if writers & bit(call) != 0 => in_front.next().is_none(),
                Kind::ReadWrite(writers) => in_front.all(|other| writers & bit(other) == 0),
            }
    }

    /// The calls with an entry that would be granted now.
    pub(crate) fn grantable(&self) -> Calls {
        self.queue()
            .filter(|&call| self.holders & bit(call) == 0 && self.is_granted(call))
            .fold(0, |calls, call| calls | bit(call))
    }

    fn remove_dead_before(&mut self, rule: Rule, call: usize) {
        let in_front: Calls =
            self.queue().take_while(|&other| other != call).fold(0, |calls, other| calls | bit(other));
        let dead = in_front & !self.receivers & !self.holders;
        for other in (0..CALLS).filter(|&other| dead & bit(other) != 0 && rule != Rule::BlocksWhileAway) {
            self.remove(other);
        }
    }

    pub(crate) fn wake_shares(&mut self, rule: Rule, before: Calls, caller: Option<usize>) {
        let own = caller.map_or(0, bit);
        loop {
            let now = self.grantable();
            let new = now & !before & !own;
            let dead = new & !self.receivers;
            if dead != 0 && rule != Rule::BlocksWhileAway {
                (0..CALLS).filter(|&call| dead & bit(call) != 0).for_each(|call| self.remove(call));
                continue;
            }
            self.turns |= new & self.receivers;
            let next = self.queue().find(|&call| (now | self.holders) & bit(call) == 0);
            let next = next.filter(|&next| now != 0 && own & bit(next) == 0 && rule != Rule::NoNext);
            let Some(next) = next else { return };
            let is_heard = self.receivers & bit(next) != 0 || rule == Rule::BlocksWhileAway;
            if is_heard || rule == Rule::NextMayBeDead {
                self.nexts |= bit(next) & self.receivers;
                return;
            }
            // Those behind it may be granted now.
            self.remove(next);
        }
    }

    /// Whether a call that waits would be granted if it asked, and what it asked with were its entry.
    pub(crate) fn would_grant(&self, call: usize) -> bool {
        let take = Take { call, ticket: Ok(self.scores[call].max(1)), stores_only: false, challenged: None };
        let mut node = *self;
        node.take_share(Rule::Proved, take).0 == Reply::Granted
    }
}
