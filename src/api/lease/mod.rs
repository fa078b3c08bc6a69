//! A held lock without a guard, on its way to another thread, process or machine.

mod detached;
mod text;

pub(crate) use detached::DetachedLease;
pub use text::SecretText;

use crate::algorithm::fence::FencingToken;
use crate::api::kind::{Any, Fenced, Kind, Plain, Set, Write};
use crate::events::error::{Error, Result, config_error};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// A held lock without a guard. [`MutexGuard::detach`](crate::MutexGuard::detach) makes one,
/// [`Redlock::attach`](crate::Redlock::attach) and [`Mutex::attach`](crate::Mutex::attach) make a
/// guard of it.
///
/// The lock is still held: no other client gets it before [`end`](Lease::end). **Dropping a lease
/// releases nothing**, and nothing extends it; a lease that is not attached expires.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::{ExtendOutcome, Lease, ReleaseOutcome};
/// use std::time::Duration;
///
/// let lease: Lease = redlock.mutex("orders/42").lock()?.detach()?;
/// let text = lease.into_text();
///
/// // In another process, which has read `line` from a pipe, for example.
/// # let line = text.expose();
/// let lease: Lease = line.parse()?;
/// let guard = redlock.attach(lease)?;
/// assert_eq!(guard.extend(Duration::from_secs(15))?, ExtendOutcome::Extended);
/// assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Whose it is
///
/// A lock has one holder because a lease has one owner. Its text can be copied, and the library
/// cannot know: if two processes attach the same text, both believe that they have the lock. The
/// first to unlock it ends it for both; the `unlock` of the other returns
/// [`Expired`](crate::ReleaseOutcome::Expired), its extensions
/// [`Lost`](crate::ExtendOutcome::Lost). A child made by `fork` has a copy as well: one of the two
/// attaches it, the child with a client of its own.
///
/// # How long it lasts
///
/// In the process that detached it, as long as the guard would have. Once it has been text, its end
/// is a time of the wall clock, so that it means something in another process, on another machine
/// and after a restart. So **the wall clocks must agree**: by as much as one is behind, the lease
/// is relied on for too long there, though never for longer than its time to live. `extend` right
/// after `attach` makes it certain: it asks the nodes, and counts from then.
#[must_use = "dropping a lease releases nothing: the lock stays held until it expires"]
pub struct Lease<K: Kind = Plain> {
    pub(crate) detached: DetachedLease,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Lease<K> {
    /// Fails if the lock is not of this kind.
    pub(crate) fn of(detached: DetachedLease) -> Result<Lease<K>> {
        match K::kind_of(detached.kind, &detached.key) {
            Some(kind) => Ok(Lease {
                detached: DetachedLease { kind, ..detached },
                kind: PhantomData,
            }),
            None => Err(config_error("the lease of another kind of lock")),
        }
    }

    /// The key on the nodes: the marker of its kind, the prefix of its client, and the name of the
    /// lock. For a set, the first of its [`keys`](Lease::keys).
    pub fn key(&self) -> &str {
        &self.detached.key.each()[0]
    }

    /// How long the lock was last asked to last.
    pub fn ttl(&self) -> Duration {
        self.detached.ttl()
    }

    /// When the lock ends by the wall clock, in whole milliseconds, rounded down.
    pub fn end(&self) -> SystemTime {
        self.detached.end()
    }

    /// How long the lock can still be relied on, by the clocks as they are now. Zero when it cannot
    /// be attached any more.
    pub fn remaining(&self) -> Duration {
        self.detached.remaining()
    }

    /// One line of text for another process, from which `parse` makes the lease again:
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// # let lease = redlock.mutex("orders/42").lock()?.detach()?;
    /// use quorumlock::Lease;
    ///
    /// let text = lease.into_text();
    /// assert!(text.expose().starts_with("quorumlock-lease:1:orders/42:10000:"));
    /// let again: Lease = text.expose().parse()?;
    /// assert_eq!(again.key(), "orders/42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A process that has the text has the lock: see [`SecretText`].
    pub fn into_text(self) -> SecretText {
        self.detached.to_text()
    }
}

impl Lease<Set> {
    /// The keys on the nodes, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.detached.key.each().iter().map(|key| &**key)
    }
}

impl Lease<Fenced> {
    /// The number of the acquisition.
    pub fn fence(&self) -> FencingToken {
        self.detached.kind.number()
    }
}

impl Lease<Fenced<Write>> {
    /// The number of the writer.
    pub fn fence(&self) -> FencingToken {
        self.detached.kind.number()
    }
}

impl Lease<Any> {
    /// The number of the acquisition, if its kind has one.
    pub fn fence(&self) -> Option<FencingToken> {
        self.detached.kind.fence()
    }
}

/// Reads what [`Lease::into_text`] wrote: exactly that, without a line feed or blank around it, so
/// trim it if it comes from a file. Whether the lease still lasts shows when it is attached.
///
/// An error is of kind [`Config`](crate::ErrorKind::Config): the text is damaged, of a later
/// version, of another kind of lock than `K`, or something else. It is never quoted.
impl<K: Kind> FromStr for Lease<K> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Lease<K>> {
        Lease::of(DetachedLease::from_text(text)?)
    }
}

/// Shows the key and the end, never the owner token.
impl<K: Kind> fmt::Debug for Lease<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detached.fmt(f)
    }
}
