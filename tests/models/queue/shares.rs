//! What depends on the kind of the lock: the parts of `mutex.lua` and `plain.lua`, `permit.lua` and
//! `read_write.lua` that `queue.lua` uses. A call for a permit asks for a slot that is free, if
//! there is one.

use crate::call::Reply;
use crate::node::{Calls, Kind, Lock, Mark, Node, Take, bit};
use crate::rules::Rule;

impl Kind {
    pub(crate) fn writes(self, call: usize) -> bool {
        matches!(self, Kind::ReadWrite(writers) if writers & bit(call) != 0)
    }
}

impl Node {
    pub(crate) fn is_held_by(&self, call: usize) -> bool {
        self.lock == Lock::Call(call as u8) || self.holders & bit(call) != 0
    }

    /// What the key of the lock shows of its holder to a call that is refused.
    pub(crate) fn holder(&self) -> Option<Lock> {
        let first = || (self.holders != 0).then(|| Lock::Call(self.holders.trailing_zeros() as u8));
        match self.kind {
            Kind::Mutex => Some(self.lock).filter(|&lock| lock != Lock::Free),
            Kind::Permits(permits) => first().filter(|_| self.free(permits) == 0),
            Kind::ReadWrite(_) => first(),
        }
    }

    fn free(&self, permits: u8) -> u32 {
        u32::from(permits).saturating_sub(self.holders.count_ones())
    }

    /// Whether an entry with so many in front, the first of which is that call's, would be granted
    /// now.
    pub(crate) fn fits(&self, call: usize, rank: u32, first: Option<usize>) -> bool {
        match self.kind {
            Kind::Mutex => self.lock == Lock::Free && rank == 0,
            Kind::Permits(permits) => rank < self.free(permits),
            Kind::ReadWrite(_) if self.kind.writes(call) => rank == 0 && self.holders == 0,
            Kind::ReadWrite(writers) => {
                !first.is_some_and(|first| self.kind.writes(first)) && self.holders & writers == 0
            }
        }
    }

    /// Whether an entry with so many in front would have been granted before this release or leave.
    pub(crate) fn was_told(&self, rank: u32) -> bool {
        matches!(self.kind, Kind::Permits(permits) if rank + 1 < self.free(permits))
    }

    /// The call whose entry keeps the caller from the lock.
    pub(crate) fn blocker(&mut self, rule: Rule, call: usize, rank: u32) -> Option<usize> {
        if self.kind.writes(call) || self.kind == Kind::Mutex {
            return None;
        }
        let in_front = self.queue().take(rank as usize);
        for other in in_front
            .filter(|&other| self.kind.writes(other))
            .collect::<Vec<_>>()
        {
            let may_have_it = self.holders == 0 && self.first() == Some(other);
            if self.tell(
                rule,
                other,
                if may_have_it { Mark::Turn } else { Mark::Ping },
            ) {
                return Some(other);
            }
            self.remove(other);
        }
        None
    }

    pub(crate) fn grant(&mut self, call: usize) {
        match self.kind {
            Kind::Mutex => self.lock = Lock::Call(call as u8),
            Kind::Permits(_) | Kind::ReadWrite(_) => self.holders |= bit(call),
        }
    }

    pub(crate) fn keeps_entry(&self, call: usize) -> bool {
        self.kind == Kind::Mutex || self.kind.writes(call)
    }

    /// Whether only entries in front keep the call from the lock.
    pub(crate) fn has_room(&self, call: usize) -> bool {
        self.fits(call, 0, None)
    }

    /// The calls with an entry that would be granted now.
    pub(crate) fn grantable(&self) -> Calls {
        let is_granted = |call: usize| {
            let mut in_front = self.queue().take_while(|&other| other != call);
            let blocker = self
                .queue()
                .take_while(|&other| other != call)
                .find(|&other| self.kind.writes(other));
            self.fits(call, in_front.by_ref().count() as u32, blocker)
        };
        let waiting = self
            .queue()
            .filter(|&call| self.holders & bit(call) == 0 && is_granted(call));
        waiting.fold(0, |calls, call| calls | bit(call))
    }

    /// Whether a call that waits would be granted if it asked, and what it asked with were its
    /// entry.
    pub(crate) fn would_grant(&self, call: usize) -> bool {
        let take = Take::new(call, Ok(self.scores[call].max(1)));
        let mut node = *self;
        node.take(Rule::Proved, take).0 == Reply::Granted
    }
}
