//! One attempt of a call for a permit: the search for a slot.
//!
//! ```text
//!   a first attempt: a slot that was released here, or any ── refused ──► the call waits, or asks in turn
//!   in turn: the slot that a message named, or any ── refused, another one is free ──► that one
//! ```
//!
//! So an attempt takes one round trip where permits are left, and three at most, each within a node
//! timeout. What a refused slot has set is undone before the next one is asked for.

use super::Lock;
use super::attempts::{Attempts, random};
use super::slots::PermitSlots;
use crate::algorithm::kind::Kind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::vote::Outcome;
use crate::api::held::Held;
use crate::api::held_lock::HeldLock;
use crate::engine::calls::RoundResult;
use crate::engine::local_queue::slots::TakenSlot;
use crate::events::error::Result;

/// Most slots that one attempt asks for.
const MOST_TRIES: u32 = 3;

impl Lock {
    /// What a guard that shares it with no other has of it.
    pub(super) fn held_alone(&self, held: HeldLock) -> Held {
        match self.kind {
            Kind::Write(_) => Held::Writer(held, Box::new(self.clone())),
            _ => Held::Alone(held),
        }
    }
}

impl<'a> Attempts<'a, '_> {
    /// Does what the machine asks for until it is done: the lock, of a semaphore with its slot.
    pub(super) fn run_for_held(&mut self) -> Result<Option<Held>> {
        let won = self.run()?;
        let slot = self.search.taken.take();
        slot.iter().for_each(TakenSlot::hold);
        Ok(won.map(|won| match slot {
            Some(slot) => Held::Permit(won, slot),
            None => self.call.lock.held_alone(won),
        }))
    }

    /// Searches a slot, and makes an attempt at it.
    pub(super) fn search(&mut self) -> Result<()> {
        let Some(permits) = &self.call.lock.permits else {
            return Ok(());
        };
        let mut next = self.first_slot(permits);
        // Whether a refused attempt is neither counted nor undone.
        let mut is_open = false;
        for tries in 1..=MOST_TRIES {
            let Some(slot) = next.or_else(|| self.any_slot(permits)) else {
                break;
            };
            if is_open {
                self.undo_refused();
                is_open = false;
            }
            self.search.is_asked_on = tries > 1;
            if !self.try_slot(permits, slot)? {
                break;
            }
            let Some((_, result)) = &self.last else {
                break;
            };
            is_open = true;
            let is_refused = result.tally.acquisition() == Outcome::Held;
            let was_in_turn = result.queue.is_some();
            self.report_endless(permits, result);
            let free = self.free_slot(permits);
            let goes_on = is_refused && tries < MOST_TRIES && self.goes_on(free, was_in_turn);
            if !goes_on {
                self.searched(permits, tries);
                return Ok(());
            }
            self.give_up_slot();
            next = free;
        }
        if is_open {
            self.searched(permits, MOST_TRIES);
        } else {
            // All slots are this client's.
            self.machine.refused_here(self.now.steady, random());
        }
        Ok(())
    }

    /// Undoes what the slot that was tried last has set: another one is asked for.
    fn undo_refused(&mut self) {
        let departure = self.departure();
        if let Some((record, result)) = &self.last {
            let reached = record.reached.without(result.tally.refused());
            self.call.undo(record, reached, departure);
        }
    }

    /// Whether a refused attempt asks for another slot: one that is free, or in turn, if it does
    /// not wait for that.
    fn goes_on(&mut self, free: Option<usize>, was_in_turn: bool) -> bool {
        if was_in_turn || self.machine.queue().is_some() {
            return free.is_some();
        }
        self.search.asks_in_turn =
            self.call.wait_deadline().is_none() || !self.call.client().engine.has_messages();
        self.search.asks_in_turn
    }

    /// The slot to ask for first: one that a message named, or that was released here; of a first
    /// attempt, any.
    fn first_slot(&mut self, permits: &PermitSlots) -> Option<usize> {
        let named = self
            .machine
            .queue()
            .and_then(|queue| queue.take_slot())
            .map(usize::from);
        named
            .filter(|&slot| {
                slot < permits.keys.len()
                    && permits.slots.is_open(&permits.locks, slot, self.now.lease)
            })
            .or_else(|| match self.machine.queue() {
                Some(_) => self.search.free.take(),
                None => permits.slots.last_released(&permits.locks),
            })
    }

    fn any_slot(&self, permits: &PermitSlots) -> Option<usize> {
        let start = random() as usize % permits.keys.len();
        permits
            .slots
            .open_slot(&permits.locks, start, self.now.lease)
    }

    /// The slot that is free on most nodes, by what they replied to the last attempt.
    fn free_slot(&self, permits: &PermitSlots) -> Option<usize> {
        let (_, result) = self.last.as_ref()?;
        let round = result.queue.as_deref()?;
        let setup = self.setup();
        let start = random() as usize % permits.keys.len();
        let is_open = |slot| permits.slots.is_open(&permits.locks, slot, self.now.lease);
        round.free_slot(
            &setup,
            setup.nodes - round.replies.len(),
            permits.keys.len(),
            start,
            is_open,
        )
    }

    /// Reports slots whose keys have no expiry: their permits are lost, though a call that gets
    /// another one succeeds.
    fn report_endless(&self, permits: &PermitSlots, result: &RoundResult) {
        let Some(round) = &result.queue else { return };
        let found: Vec<(usize, NodeSet)> = round.endless_slots(&self.setup(), permits.keys.len());
        let slots = found.iter().map(|&(slot, _)| slot).collect::<Vec<_>>();
        let engine = &self.call.client().engine;
        let reported = permits
            .slots
            .record_endless(&slots, self.now.steady, engine.node_timeout());
        for &(slot, nodes) in found.iter().filter(|(slot, _)| reported.contains(slot)) {
            self.call
                .client()
                .report
                .key_without_expiry(&permits.keys[slot], nodes);
        }
    }

    /// Asks for a slot. A call that has no entry lets the next thread in the queue try another one
    /// meanwhile. False if a thread of this client has it.
    fn try_slot(&mut self, permits: &'a PermitSlots, slot: usize) -> Result<bool> {
        let Some(taken) = permits.slots.take(&permits.locks, slot, self.now.lease) else {
            return Ok(false);
        };
        self.search.taken = Some(taken);
        if let (Some(ticket), None) = (&self.ticket, self.machine.queue()) {
            ticket.set_away(true);
        }
        self.call.local = &permits.locks[slot];
        self.ask()?;
        Ok(true)
    }

    /// Counts the whole attempt.
    fn searched(&mut self, permits: &PermitSlots, round_trips: u32) {
        if !matches!(&self.last, Some((_, result)) if result.is_won()) {
            self.give_up_slot();
        }
        self.search.free = self.free_slot(permits);
        self.attempted(round_trips);
        // A slot that was granted too late is given up as well.
        if self.machine.is_lost() {
            self.give_up_slot();
        }
    }

    /// The slot that was tried is not acquired: the thread is back at its place in the queue.
    fn give_up_slot(&mut self) {
        if let Some(ticket) = &self.ticket {
            ticket.set_away(false);
        }
        self.search.taken = None;
    }
}
