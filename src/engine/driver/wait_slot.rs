//! Wait slots: what threads sleep on until their tickets are decided.

/// How many wait slots there are. Each flush moves on to the next. A thread that sleeps until its slot is used again
/// may be woken needlessly.
pub(super) const SLOTS: usize = 32;

/// What a thread sleeps on until its ticket is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitSlot(pub(super) u8);

/// The slots of tickets that are decided now. An action on the reactor may decide other threads' tickets on the way,
/// and notes their slots here.
#[derive(Debug, Default)]
pub(crate) struct WaitSlots(pub(super) u32);

impl WaitSlots {
    pub(crate) fn insert(&mut self, slot: WaitSlot) {
        self.0 |= 1 << slot.0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let first = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (first < SLOTS).then_some(first)
        })
    }
}
