//! Both sides of a read-write lock, with the same settings.

use quorumlock::kind::{Fenced, Kind, Write};
use quorumlock::{Mutex, Redlock, RwReadMutex, Watchdog};
use std::time::Duration;

pub(crate) struct Sides<W: Kind = Write> {
    pub(crate) read: RwReadMutex,
    pub(crate) write: Mutex<W>,
}

impl<W: Kind> Clone for Sides<W> {
    fn clone(&self) -> Sides<W> {
        Sides {
            read: self.read.clone(),
            write: self.write.clone(),
        }
    }
}

/// With numbers for writers.
pub(crate) type FencedSides = Sides<Fenced<Write>>;

impl Sides {
    pub(crate) fn of(client: &Redlock, name: &str) -> Sides {
        Sides {
            read: client.read_mutex(name),
            write: client.write_mutex(name),
        }
    }

    pub(crate) fn fenced(self) -> FencedSides {
        Sides {
            read: self.read,
            write: self.write.fenced(),
        }
    }
}

impl<W: Kind> Sides<W> {
    pub(crate) fn ttl(self, ttl: Duration) -> Sides<W> {
        Sides {
            read: self.read.ttl(ttl),
            write: self.write.ttl(ttl),
        }
    }

    pub(crate) fn watchdog(self, watchdog: Watchdog) -> Sides<W> {
        Sides {
            read: self.read.watchdog(watchdog.clone()),
            write: self.write.watchdog(watchdog),
        }
    }
}
