//! How a call waits for other programs: its entry in the queues of the nodes, and its turn. Its
//! [`QueuedCall`] decides what it does there.

use super::super::queueing;
use super::{Attempts, Waiter, random, wait_bounds};
use crate::algorithm::kind::Kind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::queue::{self, QueuedCall, Setup, TakeRequest};
use crate::algorithm::time::Timestamp;
use crate::engine::calls::InTurn;
use crate::engine::local_queue::QueuePosition;
use crate::engine::seat::Seat;
use crate::engine::wait_registry::Wakening;
use crate::events::error::Result;
use crate::os::clock;
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;

impl<'a> Attempts<'a, '_> {
    /// How to ask in the call's turn.
    pub(super) fn in_turn(&mut self) -> Option<InTurn> {
        if self.machine.queue().is_none() && !self.asks_without_entry() {
            return None;
        }
        let clock = clock::micros_since_epoch();
        let now = self.call.client().engine.now();
        let is_asked_on = self.search.is_asked_on;
        let request = self.machine.queue().map(|queue| {
            let request = queue.request(clock, now);
            if is_asked_on {
                queue.ask_on(now)
            } else {
                queue.ask(now)
            }
            request
        });
        let request = request.unwrap_or(TakeRequest::WITHOUT_ENTRY);
        // Messages, which could be forged, do not decide the order of fair locks.
        let by_command = request.by_command && !self.call.lock.is_fair && !self.call.lock.is_set();
        let request = TakeRequest {
            must_queue: self.call.lock.is_fair,
            by_command,
            ..request
        };
        Some(InTurn {
            request,
            latest: queue::latest_ticket(clock),
        })
    }

    /// Whether a call that has no entry asks in turn.
    fn asks_without_entry(&self) -> bool {
        let client = self.call.client();
        match &self.ticket {
            // It waits, and without messages. A writer would have others in front of it for ever. A
            // reader, which other readers let in past a writer that waits, lets that one have its
            // turn first.
            Some(_) if self.call.lock.kind.is_read_write() && !client.engine.has_messages() => {
                let patience = self.call.started.after(client.settings.place_lease);
                self.call.lock.kind == Kind::Read && self.now.steady < patience
            }
            // The turn of this program ended with the release that woke another one.
            _ if client
                .engine
                .woke_another(self.call.awaited_keys(None))
                .is_some() =>
            {
                true
            }
            _ => self.call.is_in_turn() || self.search.asks_in_turn,
        }
    }

    /// Has these nodes store the call's ticket.
    pub(super) fn store(&mut self, nodes: NodeSet) {
        let (key, kind) = self.awaited();
        let Some(queue) = self.machine.queue() else {
            return;
        };
        if let Some(ticket) = queue.ticket {
            self.call
                .client()
                .engine
                .store(key, kind, queue.entry(), ticket, nodes);
        }
    }

    /// The key whose queue the call waits in, and the kind of that lock.
    pub(super) fn awaited(&self) -> (&'a Arc<str>, Kind) {
        (
            &self.call.awaited_keys(Some(self.key_index))[0],
            self.call.kind(),
        )
    }

    /// Creates an entry for the call.
    pub(super) fn enqueue(&mut self) {
        let setup = self.setup();
        let now = self.call.client().engine.now();
        let entry = self.seat().entry();
        self.machine.enter(QueuedCall::new(setup, entry, now), now);
    }

    /// What stays the same for all calls of the client.
    pub(in crate::api::lock) fn setup(&self) -> Setup {
        let client = self.call.client();
        Setup {
            nodes: client.names.nodes.len(),
            place_lease: client.settings.place_lease,
        }
    }

    /// The call as one that waits.
    pub(super) fn seat(&mut self) -> &Seat<'a> {
        let (key, kind) = self.awaited();
        let client = self.call.client();
        let wait = self.wait;
        let ticket = &self.ticket;
        let waiter = self.waiter.get_or_insert_with(|| {
            let seat = client.engine.sit(key, kind, random());
            if let Some(ticket) = ticket {
                ticket.notify_by_interrupt(seat.interrupt());
            }
            Box::new(Waiter {
                registration: wait.register(seat.interrupt(), &client.engine.channel_watch),
                seat,
            })
        });
        &waiter.seat
    }

    /// Whether a set has to store its entry before it asks for all keys: it does so unless it was
    /// told.
    pub(super) fn is_to_enqueue(&mut self) -> bool {
        let is_set = self.call.lock.is_set();
        is_set && !self.asks_for_all && self.machine.queue().is_some_and(|queue| !queue.is_told())
    }

    /// Stores the entry of a set in the queue of the key that it waits for. If that is free, it
    /// asks for all keys.
    pub(super) fn enqueue_set(&mut self) -> Result<()> {
        let Some(mut in_turn) = self.in_turn() else {
            return Ok(());
        };
        in_turn.request.stores_only = true;
        let key = LockKey::One(Arc::clone(self.awaited().0));
        let (_, result) = self.ask_nodes(&key, Kind::Plain, Some(in_turn))?;
        self.machine
            .set_wait_bounds(wait_bounds(&result, self.key_index, self.waiter.as_deref()));
        let Some(round) = result.queue else {
            return Ok(());
        };
        let held = round
            .replies
            .iter()
            .filter(|(_, reply)| !reply.is_free())
            .count();
        let is_free = result.tally.nodes() - held >= result.tally.quorum();
        // Where too few nodes have a queue, the next attempt finds out what they hold.
        let is_known = round.nodes().len() >= result.tally.quorum();
        self.asks_for_all = is_free || !is_known;
        if let (Some(ticket), true) = (&self.ticket, held >= result.tally.quorum()) {
            ticket.record_answer(self.now.steady);
        }
        self.machine
            .enqueued(&round, is_free && is_known, self.now.steady, random());
        let leaves = self
            .machine
            .queue()
            .map_or(NodeSet::EMPTY, |queue| match queue.ticket {
                Some(_) => queue.leaves(),
                None => round.nodes(),
            });
        if let (Some(waiter), false) = (&self.waiter, leaves.is_empty()) {
            waiter.seat.step_aside(leaves);
        }
        Ok(())
    }

    /// Waits until then at the latest, and hands the machine what has ended the wait. False for a
    /// call that does not wait.
    pub(super) fn wait_in_turn(&mut self, until: Timestamp) -> Result<bool> {
        if self.ticket.is_none() {
            return Ok(false);
        }
        self.account.begin_to_wait(&self.call, self.now.lease);
        if self.follow_refusal() {
            let is_head = self.wait_in_queue()?;
            self.machine.woken(self.now.steady);
            return Ok(is_head);
        }
        let is_fair = self.call.lock.is_fair;
        self.seat();
        let Some(waiter) = &self.waiter else {
            return Ok(false);
        };
        if let (true, Some(nodes)) = (is_fair, waiter.seat.denied()) {
            return Err(self.call.client().not_told(self.call.name(), nodes));
        }
        let wakening = self.wait_for_messages(waiter, until);
        let now = self.call.client().engine.now();
        let Some(wakening) = wakening else {
            self.machine.cancelled();
            return Ok(true);
        };
        for note in &wakening.notes {
            self.machine.on_message(note.node, note.message, note.at);
        }
        if wakening.is_inattentive || wakening.is_interrupted && self.call.has_slot_handed_on() {
            self.machine.retry_now(now);
        }
        self.machine.woken(now);
        Ok(true)
    }

    /// Waits until then at the latest, and returns what has arrived. None: the wait is cancelled,
    /// or the client shut down, which interrupts it as well.
    fn wait_for_messages(&self, waiter: &Waiter<'_>, until: Timestamp) -> Option<Wakening> {
        loop {
            let longest = waiter.registration.before_sleep();
            if self.is_cancelled() {
                return None;
            }
            let next_check = self.call.client().engine.now().after(longest);
            let wakening = waiter.seat.wait(until.min(next_check));
            if self.is_cancelled() {
                return None;
            }
            if wakening.is_any() || next_check >= until {
                return Some(wakening);
            }
        }
    }

    /// A set that was refused for another key than the one it waits for joins the end of that one's
    /// queue. Nothing is held meanwhile.
    pub(super) fn follow_refusal(&mut self) -> bool {
        let refused = self
            .last
            .as_ref()
            .and_then(|(_, result)| result.refused_key());
        let queues = self.call.local.queues();
        let Some(index) = refused.filter(|&key| key != self.key_index && key < queues.len()) else {
            return false;
        };
        self.waiter = None;
        self.key_index = index;
        self.ticket = Some(queues[index].join(self.now).0);
        self.machine.leave_queue();
        true
    }

    /// Whether other threads of this client are in front in the queue of a semaphore, or have all
    /// of its slots.
    pub(super) fn is_behind(&self) -> bool {
        let position = |ticket| self.call.position(ticket, self.now.lease);
        let is_head = |position| matches!(position, QueuePosition::Head(_));
        self.call.lock.permits.is_some()
            && self
                .ticket
                .as_ref()
                .map(position)
                .is_some_and(|position| !is_head(position))
    }

    /// Waits to be the head of the queue again, as before the first attempt. False when the time is
    /// up.
    pub(super) fn wait_in_queue(&mut self) -> Result<bool> {
        self.waiter = None;
        if self.machine.queue().is_some() {
            self.machine.leave_queue();
        }
        let Some(ticket) = &self.ticket else {
            return Ok(false);
        };
        let position = self.call.position(ticket, self.now.lease);
        let is_head = queueing::wait_in_queue(
            &mut self.call,
            ticket,
            position,
            self.now,
            self.wait,
            self.account,
        )?;
        self.now = self.call.client().engine.readings();
        Ok(is_head)
    }
}
