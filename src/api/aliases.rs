//! Familiar names of mutexes and guards of one kind, for fields and signatures.

use crate::api::guard::MutexGuard;
use crate::api::kind::{Fenced, Read, Reentrant, Set, Slot, Write};
use crate::api::mutex::Mutex;

/// A lock whose acquisitions are numbered: [`Mutex::fenced`].
pub type FencedMutex = Mutex<Fenced>;
/// A held [`FencedMutex`]. Beyond what each [`MutexGuard`] has: [`fence`](MutexGuard::fence).
pub type FencedGuard = MutexGuard<Fenced>;
/// The reading side of a read-write lock: [`Redlock::read_mutex`](crate::Redlock::read_mutex).
pub type RwReadMutex = Mutex<Read>;
/// A read-write lock held for reading.
pub type RwReadGuard = MutexGuard<Read>;
/// The writing side of a read-write lock: [`Redlock::write_mutex`](crate::Redlock::write_mutex).
pub type RwWriteMutex = Mutex<Write>;
/// A read-write lock held for writing. Beyond what each [`MutexGuard`] has:
/// [`downgrade`](MutexGuard::downgrade).
pub type RwWriteGuard = MutexGuard<Write>;
/// The writing side of a read-write lock, with a number for each writer:
/// [`Redlock::write_mutex`](crate::Redlock::write_mutex) and `fenced`.
pub type FencedRwWriteMutex = Mutex<Fenced<Write>>;
/// A read-write lock held for writing. Beyond what each [`MutexGuard`] has: `fence` and
/// `downgrade`.
pub type FencedRwWriteGuard = MutexGuard<Fenced<Write>>;
/// The lock of several names, all or none of them:
/// [`Redlock::mutex_set`](crate::Redlock::mutex_set).
pub type MutexSet = Mutex<Set>;
/// A held [`MutexSet`]. Beyond what each [`MutexGuard`] has: [`names`](MutexGuard::names).
pub type SetGuard = MutexGuard<Set>;
/// A lock of which at most k are held at once: [`Redlock::semaphore`](crate::Redlock::semaphore).
pub type Semaphore = Mutex<Slot>;
/// A held slot of a [`Semaphore`]. Beyond what each [`MutexGuard`] has: [`slot`](MutexGuard::slot).
pub type Permit = MutexGuard<Slot>;
/// A lock that its owner may lock again while it holds it: [`Mutex::reentrant`].
pub type ReentrantMutex = Mutex<Reentrant>;
/// One level of a [`ReentrantMutex`], held by this thread and not to be sent to another one.
pub type ReentrantGuard = MutexGuard<Reentrant>;
