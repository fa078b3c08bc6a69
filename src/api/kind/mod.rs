//! The kinds of locks: type parameters of [`Mutex`](crate::Mutex), [`MutexGuard`](crate::MutexGuard) and
//! [`Lease`](crate::Lease).
//!
//! A kind is a type without values. Only these combinations are kinds; any other one does not compile.
//!
//! | Kind | Made by | Beyond what every lock has |
//! |---|---|---|
//! | [`Plain`] | [`Redlock::mutex`](crate::Redlock::mutex) | `fenced`, `fair`, `reentrant`, `holder` |
//! | [`Fenced`] | [`fenced`](crate::Mutex::fenced) | `fair`, `reentrant`, `holder`; guard: `fence` |
//! | [`Read`] | [`Redlock::read_mutex`](crate::Redlock::read_mutex) | |
//! | [`Write`] | [`Redlock::write_mutex`](crate::Redlock::write_mutex) | `fenced`; guard: `downgrade` |
//! | [`Fenced<Write>`](Fenced) | `fenced` of a writer | guard: `fence`, `downgrade` |
//! | [`Set`] | [`Redlock::mutex_set`](crate::Redlock::mutex_set) | `names`; guard: `names` |
//! | [`Slot`] | [`Redlock::semaphore`](crate::Redlock::semaphore) | `permits`; guard: `slot` |
//! | [`Reentrant`], [`Reentrant<Fenced>`](Reentrant) | [`reentrant`](crate::Mutex::reentrant) | `lock_as`; guard: `fence` if it is fenced |
//! | [`Any`] | [`erase`](crate::Mutex::erase) | guard: `fence`, if there is one |
//!
//! Code for every kind is generic:
//!
//! ```
//! use quorumlock::kind::Kind;
//! use quorumlock::{MutexGuard, Result};
//! use std::time::Duration;
//!
//! /// A step that is protected by whatever lock its caller holds.
//! fn step<K: Kind>(guard: &MutexGuard<K>) -> Result<()> {
//!     guard.ensure(Duration::from_secs(1))?;
//!     println!("{} for {:?}", guard.name(), guard.remaining());
//!     Ok(())
//! }
//! ```

mod markers;
pub(crate) mod sealed;

pub use markers::{Any, Fenced, Plain, Read, Reentrant, Set, Slot, Write};

/// A kind of lock. Sealed: the kinds of this module are all there are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of lock",
    label = "not a kind of lock",
    note = "the kinds: Plain, Fenced, Read, Write, Fenced<Write>, Set, Slot, Reentrant, Reentrant<Fenced>, Any"
)]
pub trait Kind: sealed::Sealed + 'static {}

impl Kind for Plain {}
impl Kind for Fenced<Plain> {}
impl Kind for Read {}
impl Kind for Write {}
impl Kind for Fenced<Write> {}
impl Kind for Set {}
impl Kind for Slot {}
impl Kind for Reentrant<Plain> {}
impl Kind for Reentrant<Fenced> {}
impl Kind for Any {}
