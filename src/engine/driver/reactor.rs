//! What the driver needs of the connections and rounds that it drives.

use super::wait_cell::WaitSlot;
use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// What is driven.
pub(crate) trait Reactor {
    /// Names something to wait for.
    type Ticket: Copy + PartialEq + Send;
    /// Something that a thread waits for, and that any thread can begin for it.
    type Submission: Send;
    /// What becomes of it.
    type Verdict: Send;
    /// Something that no thread waits for.
    type Posting: Send;
    /// What one poll waits for and what it found: taken out of the reactor, so that the reactor is
    /// free meanwhile.
    type Watch;

    /// The present time.
    fn now(&self) -> Timestamp;
    /// Begins what was submitted. True: connections have to be made first.
    fn begin(&mut self, submission: &Self::Submission, now: Timestamp) -> (Self::Ticket, bool);
    /// Begins what was posted.
    fn begin_posted(&mut self, posting: Self::Posting, now: Timestamp);
    /// Ends the wait for a submission, and returns its result.
    fn conclude(&mut self, ticket: Self::Ticket) -> Self::Verdict;
    /// Whether there is nothing left to wait for.
    fn is_decided(&self, ticket: Self::Ticket) -> bool;
    /// Sets the slot to report when the ticket is decided. None: its owner is awake. A slot stays
    /// when its owner wakes up, and is then reported in vain.
    fn assign(&mut self, ticket: Self::Ticket, slot: Option<WaitSlot>);
    /// The owner's deadline has come: decides the ticket, unless there is more to wait for.
    fn expire(&mut self, ticket: Self::Ticket, now: Timestamp);
    /// The next waiter whose ticket an action has decided, each once.
    fn next_decided(&mut self) -> Option<WaitSlot>;
    /// Sends what was begun.
    fn flush(&mut self);
    /// Returns what to wait for. `alone`: no other thread is here.
    fn watch(&mut self, alone: bool, now: Timestamp) -> Self::Watch;
    /// Waits, with the mutex free, until something is ready or the time is up.
    fn poll(watch: &mut Self::Watch, timeout: Duration);
    /// Processes what is ready.
    fn absorb(&mut self, watch: Self::Watch, now: Timestamp);
    /// Ends a poll that is under way, if what there is to wait for has changed since.
    fn interrupt(&mut self);
    /// Ends all polls that are under way.
    fn end_polls(&mut self);
    /// A thread has driven for its own ticket alone, for so long.
    fn record_solitary_wait(&mut self, time: Duration);
    /// Whether there is work that no thread waits for: releases to send, now or later, or to be
    /// answered, or nodes that are being judged.
    fn has_work_left(&self) -> bool;
    /// When to drive for it next: now, while releases are on their way out. None when nothing is
    /// left to do.
    fn work_due(&self, now: Timestamp) -> Option<Timestamp>;
    /// Something to wait for that is decided when nothing is left to do at once.
    fn await_work(&mut self, now: Timestamp) -> Self::Ticket;
    /// Ends that wait.
    fn leave_work(&mut self, ticket: Self::Ticket);
    /// Decides all that is waited for in this way, and ends a poll that is under way.
    fn interrupt_work(&mut self);
}
