//! The order in which programs try to take a lock that was released.

/// Whose turn it is when a lock was released, as far as somebody knows who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOrder {
    /// So many have waited for longer.
    After(u8),
    /// His, or that of somebody who was overtaken.
    Due,
    /// His, for some time, or there is nobody else.
    Overdue,
}

impl WakeOrder {
    /// Of somebody who began to wait behind so many others; so many have had the lock since.
    pub fn of(others: u8, departed: u8) -> WakeOrder {
        match others.saturating_sub(departed) {
            0 if others == 0 || departed > others => WakeOrder::Overdue,
            0 => WakeOrder::Due,
            in_front => WakeOrder::After(in_front),
        }
    }
}
