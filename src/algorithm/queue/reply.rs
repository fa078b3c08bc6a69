//! What a node replies to a call that asks for a lock in its turn, and how it was asked.

use super::entry::{Entry, Member};
use crate::algorithm::holder::HolderTag;
use std::time::Duration;

/// Most slots of a semaphore.
pub const MOST_SLOTS: usize = 256;

/// Which ticket a call asks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketRequest {
    /// The one that the node has stored, or makes of this: the client's clock in microseconds.
    Proposed(u64),
    /// The call's own.
    Fixed(u64),
    /// None: the node stores no entry.
    None,
}

/// How a node is asked for a lock in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeRequest {
    /// The call, if it is to have an entry.
    pub entry: Option<Entry>,
    /// Its ticket.
    pub ticket: TicketRequest,
    /// Whether the node only stores the entry.
    pub stores_only: bool,
    /// The first entry that has let the call wait for too long: it and those behind it are removed
    /// up to the call's.
    pub challenged: Option<Member>,
    /// Whether it is an error that the node has no queue for the call.
    pub must_queue: bool,
    /// Whether to ask by `SET NX PX`, as a first attempt does: a quorum has found the call to be
    /// the first one.
    pub by_command: bool,
}

impl TakeRequest {
    /// Takes the lock if no call is first, and stores nothing.
    pub const WITHOUT_ENTRY: TakeRequest = TakeRequest {
        entry: None,
        ticket: TicketRequest::None,
        stores_only: false,
        challenged: None,
        must_queue: false,
        by_command: false,
    };
}

/// What has become of the call's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The user may not store it.
    Denied,
    /// There is no memory for it.
    NoMemory,
    /// It is stored now.
    Now,
    /// It was stored before.
    Before,
}

impl Storage {
    /// Whether the node has the entry.
    pub fn is_stored(self) -> bool {
        matches!(self, Storage::Before | Storage::Now)
    }
}

/// The reply of a node that does not grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReply {
    /// What has become of the entry.
    pub storage: Storage,
    /// The call's ticket there, in microseconds.
    pub ticket: u64,
    /// How many entries are in front.
    pub rank: u32,
    /// For how long the lock is held: zero is free, `None` is without an end.
    pub held: Option<Duration>,
    /// Which holder it has, if it is held.
    pub holder: Option<HolderTag>,
    /// Whether the holder is of another library, whose release sends no message.
    pub is_other_library: bool,
    /// Which slots of a semaphore are free, and which are held without an end.
    pub slots: Slots,
    /// The first entry, if there is one that a client may have written.
    pub head: Option<Member>,
}

impl QueueReply {
    /// Whether only entries in front keep the call from the lock.
    pub fn is_free(&self) -> bool {
        self.held == Some(Duration::ZERO)
    }
}

/// The slots of a semaphore on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    free: [u64; MOST_SLOTS / 64],
    endless: [u64; MOST_SLOTS / 64],
}

impl Slots {
    /// Reads a letter for each slot: "f" is free, "e" is held without an end, "t" is held. Anything
    /// else has none.
    pub fn of(letters: &[u8]) -> Slots {
        let mut slots = Slots::default();
        for (slot, letter) in letters.iter().enumerate().take(MOST_SLOTS) {
            let word = slot / 64;
            let bit = 1 << (slot % 64);
            match letter {
                b'f' => slots.free[word] |= bit,
                b'e' => slots.endless[word] |= bit,
                _ => {}
            }
        }
        slots
    }

    /// Whether the slot is free.
    pub fn is_free(&self, slot: usize) -> bool {
        contains(&self.free, slot)
    }

    /// How many are free.
    pub fn free(&self) -> u32 {
        self.free.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the slot is held without an end.
    pub fn is_endless(&self, slot: usize) -> bool {
        contains(&self.endless, slot)
    }
}

fn contains(slots: &[u64], slot: usize) -> bool {
    let word = slots.get(slot / 64);
    word.is_some_and(|word| word & 1 << (slot % 64) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_letter_by_letter() {
        let letters = ["t".repeat(64), "fet".to_owned()].concat();
        let slots = Slots::of(letters.as_bytes());
        let kinds: Vec<(bool, bool)> = (63..67)
            .map(|slot| (slots.is_free(slot), slots.is_endless(slot)))
            .collect();
        assert_eq!(
            kinds,
            [(false, false), (true, false), (false, true), (false, false)]
        );
        assert_eq!(Slots::of(b"-"), Slots::default());
        let all = Slots::of(&[b'f'; 300]);
        assert!(all.is_free(255) && !all.is_free(256));
    }
}
