//! Which thread is which: a coroutine has a number of its own, though all are on one thread of the
//! system.

use crate::kernel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadNumber(usize);

impl ThreadNumber {
    pub(crate) fn current() -> ThreadNumber {
        // The library's own tests run without a simulation.
        ThreadNumber(if kernel::is_inside() {
            kernel::with(|world| world.current_task())
        } else {
            0
        })
    }

    pub(crate) fn short(self) -> u32 {
        self.0 as u32
    }
}
