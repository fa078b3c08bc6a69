//! The kinds of locks: type parameters of [`Mutex`](crate::Mutex),
//! [`MutexGuard`](crate::MutexGuard) and [`Lease`](crate::Lease).
//!
//! A kind is a type without values. Only these combinations are kinds; any other one does not
//! compile.
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

pub(crate) mod sealed;

use crate::algorithm::kind::Kind as LockKind;
use crate::protocol::key_space;
use crate::protocol::lock_key::LockKey;
use sealed::Sealed;
use std::marker::PhantomData;

/// A kind of lock. Sealed: the kinds of this module are all there are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of lock",
    label = "not a kind of lock",
    note = "the kinds: Plain, Fenced, Read, Write, Fenced<Write>, Set, Slot, Reentrant, Reentrant<Fenced>, Any"
)]
pub trait Kind: Sealed + 'static {}

/// One holder at a time. The kind of a lock for which no other is named.
#[derive(Debug)]
pub enum Plain {}

impl Kind for Plain {}

impl Sealed for Plain {
    fn kind_of(kind: LockKind, key: &LockKey) -> Option<LockKind> {
        let is_plain =
            matches!(kind, LockKind::Plain | LockKind::Permit(_)) && matches!(key, LockKey::One(_));
        is_plain.then_some(LockKind::Plain)
    }
}

/// `K` with a number for each acquisition: [`Plain`] or [`Write`].
#[derive(Debug)]
pub struct Fenced<K = Plain>(PhantomData<K>);

impl Kind for Fenced<Plain> {}

impl Sealed for Fenced<Plain> {
    fn is(kind: LockKind) -> bool {
        matches!(kind, LockKind::Fenced(_))
    }
}

impl Kind for Fenced<Write> {}

impl Sealed for Fenced<Write> {
    fn is(kind: LockKind) -> bool {
        matches!(kind, LockKind::Write(Some(_)))
    }
}

/// One of many readers, and no writer. [`Write`] has the rules of the two sides of a read-write
/// lock.
#[derive(Debug)]
pub enum Read {}

impl Kind for Read {}

impl Sealed for Read {
    fn is(kind: LockKind) -> bool {
        kind == LockKind::Read
    }
}

/// One writer, and no reader.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// # let another = quorumlock::Redlock::builder().node(node.url()).build()?;
/// let (read, write) = (redlock.read_mutex("prices"), redlock.write_mutex("prices"));
///
/// let here = read.lock()?;
/// let elsewhere = another.read_mutex("prices").try_lock()?.expect("readers share the lock");
/// assert!(write.try_lock()?.is_none(), "a writer waits for all of them");
/// drop((here, elsewhere));
///
/// let guard = write.lock()?;
/// // … and reads what it has written, together with others.
/// let guard = guard.downgrade()?;
/// assert!(another.read_mutex("prices").try_lock()?.is_some());
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * Every reader and every writer has a lease of its own, with the [`ttl`](crate::Mutex::ttl) and
///   the [`watchdog`](crate::Mutex::watchdog) of its mutex. After a crash of a reader, a writer
///   waits for the time to live of that reader at most. The end of one reader's lease changes no
///   other lease.
/// * Readers and writers that wait form one queue: the lock goes to them in the order in which they
///   came, and readers next to each other have it together. So neither side starves. New readers
///   wait behind a writer that waits, and `try_lock` of a reader returns `None`; `try_lock` of a
///   writer delays no other call. Behind the entry of a program that has crashed, others wait for
///   [`Builder::place_lease`](crate::Builder::place_lease) at most.
/// * **A thread must not read again while it reads.** If a writer begins to wait in between, the
///   thread waits for the writer, and the writer for the thread, until the lease ends. For the same
///   reason a reader cannot become a writer: two threads that both want it would wait for each
///   other.
/// * The threads of a program that share a client share one lease to read: it is lost for all of
///   them at once. Up to 64 programs read at once; the next one finds the lock held. A lease that
///   has a watchdog is extended until the last guard is dropped, within the widest limits of their
///   watchdogs. A thread with a watchdog has a lease of its own if another one has asked for the
///   signal of a lease without. Of readers that share a lease, each has its time to live, less 10
///   ms or a quarter of the validity.
/// * **It is another lock than a plain one of the same name: the two do not exclude each other.**
///   Its key is `quorumlock-rw:`, the prefix and the name, and no other library understands it. No
///   name with its prefix may begin with that.
/// * Nodes need scripts: one that runs none, or none for this user, does not count
///   ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`,
///   `SET`, `DEL`, `PEXPIRE` and `TIME`. A key that holds something else is left as it is
///   ([`Cause::UnexpectedValue`](crate::Cause::UnexpectedValue)). Writers have a number if they are
///   [fenced](crate::Mutex::fenced); entries have no [label](crate::Builder::label).
///
/// Rule 14 has the rest, and the header of `protocol/kinds/read_write.rs` the proof that a writer
/// is alone.
#[derive(Debug)]
pub enum Write {}

impl Kind for Write {}

impl Sealed for Write {
    fn is(kind: LockKind) -> bool {
        kind == LockKind::Write(None)
    }
}

/// Several names, all or none of them.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::ReleaseOutcome;
///
/// // A transfer touches two accounts.
/// let guard = redlock.mutex_set(["accounts/7", "accounts/3"]).lock()?;
/// assert_eq!(guard.names().collect::<Vec<_>>(), ["accounts/3", "accounts/7"]);
///
/// // Each of them is the lock that any other program takes alone.
/// assert!(redlock.mutex("accounts/7").try_lock()?.is_none());
/// assert!(redlock.mutex_set(["accounts/7", "accounts/9"]).try_lock()?.is_none());
/// assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * One attempt takes one round trip, whatever the number of names: each node is asked for all
///   keys in one write, and votes for the set only if it has set them all. A set that is refused
///   holds nothing: what a node has set for it is deleted at once.
/// * A wait holds nothing either. It waits for the first name that was refused, and then tries all
///   of them again. So sets do not deadlock, with each other or with single locks, in whatever
///   order their names are given. A set that shares names with many others may wait for longer than
///   any of them.
/// * There is one lease for all: one end, one [`watchdog`](crate::Mutex::watchdog), one loss. When
///   a quorum of nodes has lost one of the keys, the set is lost.
///
/// Each key is the key of a plain lock, for this and for other Redlock libraries. A set of one name
/// is the plain lock of that name. A set can be neither fair nor fenced: take a fenced lock for
/// each resource whose writes must carry a number.
#[derive(Debug)]
pub enum Set {}

impl Kind for Set {}

impl Sealed for Set {
    fn is(kind: LockKind) -> bool {
        // A set of one name is a plain lock.
        kind == LockKind::Plain
    }
}

/// One of k slots: at most k holders at once, for a licence for three, or a service that bears ten
/// calls at a time.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// let reports = redlock.semaphore("reports", 2);
/// let first = reports.lock()?;
/// let second = reports.lock()?;
/// assert_ne!(first.slot(), second.slot());
/// assert!(reports.try_lock()?.is_none(), "both permits are held");
///
/// drop(first);
/// assert!(reports.try_lock()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Permits are slots
///
/// Counting over a quorum is unsound: with 5 nodes, majorities would admit 16 holders of 10
/// permits. So the permits are k plain locks, named `name#0` to `name#k-1`, and the holder of one
/// of them has a permit. What is promised of a plain lock is promised of each permit: it is a lease
/// with a time to live, and the permit of a program that was killed can be taken when its time has
/// passed. Plain locks of these names exclude permits.
///
/// Programs may use different k for one name: never more permits are held than the largest k.
///
/// # What it costs
///
/// One round trip as long as permits are left, as a rule: the slot that this client released last
/// is tried first, or any one. If that is held, the nodes are asked for another one and reply which
/// are free, and a free one is tried: three round trips, so that a call may take three node
/// timeouts. If none is free, the call waits in the one queue of the semaphore on each node; a
/// release tells the first one, and which slot it is. Threads that share a client queue in their
/// order, by the name; the first of them has the program's entry.
///
/// # What it does not promise
///
/// There is no number: the numbers of different slots could not be compared. Programs are served in
/// their order as a rule: a first attempt may come in between, and so may a slot that is free on
/// some nodes only. A call that takes several permits one after the other can deadlock with another
/// one that does the same.
#[derive(Debug)]
pub enum Slot {}

impl Kind for Slot {}

impl Sealed for Slot {
    fn kind_of(kind: LockKind, key: &LockKey) -> Option<LockKind> {
        // A slot is the plain lock of its name. Without the semaphore, there are at least as many
        // permits.
        match kind {
            LockKind::Permit(_) => Some(kind),
            _ => Plain::kind_of(kind, key)
                .and_then(|_| key_space::slot(key.title().as_bytes()))
                .map(|slot| LockKind::Permit(slot.saturating_add(1))),
        }
    }
}

/// `K` ([`Plain`] or [`Fenced`]) that its owner may lock again while it holds it. The owner is the
/// calling thread, or an [`Owner`](crate::Owner) for work that moves between threads.
///
/// For everything but its owner it is the lock that it was made of: it has the same key, and
/// excludes locks that are not reentrant and is excluded by them, also those of the same thread.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::{ReentrantMutex, ReleaseOutcome, Result};
///
/// fn ship(order: &ReentrantMutex) -> Result<()> {
///     let _guard = order.lock()?;
///     print_label(order)
/// }
///
/// fn print_label(order: &ReentrantMutex) -> Result<()> {
///     let guard = order.lock()?;
///     assert_eq!(guard.unlock()?, ReleaseOutcome::StillHeld(1));
///     Ok(())
/// }
///
/// let order = redlock.mutex("orders/42").reentrant();
/// ship(&order)?;
/// assert_eq!(order.lock()?.unlock()?, ReleaseOutcome::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A call that takes the lock again
///
/// * sends nothing, waits in no queue, and has a limit of its own only where an extension has to be
///   waited for;
/// * is refused as [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended or its loss
///   was [signalled](crate::MutexGuard::lost): a new lock under an old guard would hide that the
///   old one is lost. When the last guard of a lost lock was dropped, the lock can be taken anew;
/// * extends the lease first when its mutex has a longer [`ttl`](crate::Mutex::ttl) than the lease
///   was last set to, or when less than two thirds of that `ttl` remain. It fails as
///   [`Unavailable`](crate::ErrorKind::Unavailable) if the extension does; the outer guards are as
///   before. A shorter `ttl` changes nothing;
/// * lets the lock be extended as long as the [`watchdog`](crate::Mutex::watchdog) of its mutex
///   allows, counted from this call, where that is longer than for the calls before. That works
///   until the last guard is dropped.
///
/// Guards may be dropped in any order. The last one releases the lock. The guard of a thread stays
/// there, as its owner does:
///
/// ```compile_fail,E0277
/// # let redlock = quorumlock::Redlock::builder().node("redis://127.0.0.1").build().unwrap();
/// let guard = redlock.mutex("orders/42").reentrant().lock().unwrap();
/// std::thread::spawn(move || drop(guard));
/// ```
#[derive(Debug)]
pub struct Reentrant<K = Plain>(PhantomData<(K, *const ())>);

impl Kind for Reentrant<Plain> {}
impl Kind for Reentrant<Fenced> {}

impl<K: Sealed> Sealed for Reentrant<K> {
    const IS_REENTRANT: bool = true;

    fn kind_of(kind: LockKind, key: &LockKey) -> Option<LockKind> {
        K::kind_of(kind, key)
    }
}

/// Any kind but a reentrant one, known at run time only: for collections, and for bindings to other
/// languages.
#[derive(Debug)]
pub enum Any {}

impl Kind for Any {}

impl Sealed for Any {
    fn is(_: LockKind) -> bool {
        true
    }
}
