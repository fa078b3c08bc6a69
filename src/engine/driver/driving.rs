//! Which thread drives.

use super::wait_cell::WaitSlot;

/// What the driver does at present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    /// There is none, or it has the mutex.
    Absent,
    /// The thread that sleeps on the cell of this number was called to drive.
    Named(WaitSlot),
    /// It waits for replies.
    Polling(Poll),
}

/// One poll.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Poll {
    number: u64,
    /// Whether it ends when the hold of the present batch is over.
    ends_hold: bool,
}

/// The driver, and the threads that poll though another one has taken over.
pub(super) struct Driving {
    driver: Driver,
    /// How many polls were begun.
    polls: u64,
    /// How many of those have not come back from which another thread has taken over.
    deposed: usize,
}

impl Driving {
    pub(super) fn new() -> Driving {
        Driving {
            driver: Driver::Absent,
            polls: 0,
            deposed: 0,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.driver == Driver::Absent
    }

    /// The poll in which the driver waits.
    pub(super) fn poll(&self) -> Option<Poll> {
        if let Driver::Polling(poll) = self.driver {
            Some(poll)
        } else {
            None
        }
    }

    /// Whether the thread that has the mutex ends a hold: there is no driver, or its poll does not
    /// end with the hold.
    pub(super) fn leaves_hold(&self) -> bool {
        match self.driver {
            Driver::Absent => true,
            Driver::Named(_) => false,
            Driver::Polling(poll) => !poll.ends_hold,
        }
    }

    /// The thread that drives begins a poll.
    pub(super) fn begin_poll(&mut self, ends_hold: bool) -> Poll {
        self.polls += 1;
        let poll = Poll {
            number: self.polls,
            ends_hold,
        };
        self.driver = Driver::Polling(poll);
        poll
    }

    /// A poll is over. Nothing else ends with it if another thread has taken over.
    pub(super) fn end_poll(&mut self, poll: Poll) {
        if self.poll() == Some(poll) {
            self.driver = Driver::Absent;
        } else {
            self.deposed -= 1;
        }
    }

    /// The thread that polls drives no more, though it has not come back.
    pub(super) fn depose(&mut self) {
        self.deposed += 1;
        self.driver = Driver::Absent;
    }

    /// Whether a thread polls that does not drive.
    pub(super) fn has_deposed(&self) -> bool {
        self.deposed > 0
    }

    /// The thread of this cell is called to drive.
    pub(super) fn name(&mut self, slot: WaitSlot) {
        self.driver = Driver::Named(slot);
    }

    /// Whether the thread of this cell was called to drive.
    pub(super) fn is_named(&self, slot: WaitSlot) -> bool {
        self.driver == Driver::Named(slot)
    }

    /// The thread of this cell is awake, or has no reason to come.
    pub(super) fn forget_named(&mut self, slot: WaitSlot) {
        if self.is_named(slot) {
            self.driver = Driver::Absent;
        }
    }

    /// The thread that was named has not come in time.
    pub(super) fn forget_late(&mut self) {
        if let Driver::Named(_) = self.driver {
            self.driver = Driver::Absent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wait_cell::WaitCell;
    use super::*;

    #[test]
    fn a_poll_that_was_deposed_ends_no_other() {
        let mut driving = Driving::new();
        let old = driving.begin_poll(false);
        driving.depose();
        let new = driving.begin_poll(false);
        driving.end_poll(old);
        assert!(!driving.has_deposed());
        assert!(driving.poll() == Some(new));
        driving.end_poll(new);
        assert!(driving.is_absent());
    }

    #[test]
    fn the_thread_that_has_the_mutex_ends_a_hold_that_no_driver_ends() {
        let mut driving = Driving::new();
        assert!(driving.leaves_hold());
        for ends_hold in [false, true] {
            driving.begin_poll(ends_hold);
            assert_eq!(driving.leaves_hold(), !ends_hold);
        }
        driving.name(WaitCell::<()>::new().slot);
        assert!(!driving.leaves_hold());
    }

    #[test]
    fn only_the_thread_that_was_named_is_forgotten() {
        let [named, other] = [(); 2].map(|()| WaitCell::<()>::new().slot);
        let mut driving = Driving::new();
        driving.name(named);
        driving.forget_named(other);
        assert!(!driving.is_absent());
        driving.forget_named(named);
        assert!(driving.is_absent());
    }

    #[test]
    fn a_thread_that_was_named_and_is_late_is_forgotten_and_one_that_polls_is_not() {
        let mut driving = Driving::new();
        driving.name(WaitCell::<()>::new().slot);
        driving.forget_late();
        assert!(driving.is_absent());
        let poll = driving.begin_poll(false);
        driving.forget_late();
        assert!(driving.poll() == Some(poll));
    }
}
