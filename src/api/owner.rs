//! The owners of reentrant locks, and what each holds.

use crate::api::lock::Lock;
use crate::api::shared_lock::SharedLock;
use crate::engine::swept_table::SweptTable;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// An owner of [reentrant](crate::Mutex::reentrant) locks that is no thread: a unit of work that
/// moves between threads, for example a request. [`Mutex::lock_as`](crate::Mutex::lock_as) takes a
/// lock for it.
///
/// It may be sent to another thread, and is used by one at a time. Its guards may go wherever they
/// like. Dropping it releases nothing: its guards do.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::{Owner, Wait};
/// use std::{thread, time::Duration};
///
/// let order = redlock.mutex("orders/42").reentrant();
/// let request = Owner::new();
/// let guard = order.lock_as(&request, &Wait::unlimited())?.expect("there is no limit");
///
/// // The next step of the request runs on another thread.
/// thread::spawn({
///     let order = order.clone();
///     move || {
///         assert!(order.try_lock().unwrap().is_none(), "this thread is another owner");
///         assert!(order.lock_as(&request, &Wait::timeout(Duration::ZERO)).unwrap().is_some());
///     }
/// })
/// .join().unwrap();
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// One owner does not serve two threads at once:
///
/// ```compile_fail,E0277
/// let owner = quorumlock::Owner::new();
/// std::thread::scope(|threads| drop(threads.spawn(|| println!("{owner:?}"))));
/// ```
#[derive(Default)]
pub struct Owner {
    holds: RefCell<SweptTable<HoldKey, Weak<SharedLock>>>,
    pub(in crate::api) is_thread: bool,
}

/// A lock of a client.
#[derive(PartialEq, Eq, Hash)]
struct HoldKey {
    /// The address of what the client's handles share. The entry of a client that has gone has no
    /// hold.
    client: usize,
    key: Arc<str>,
}

impl HoldKey {
    fn of(lock: &Lock) -> HoldKey {
        HoldKey {
            client: lock.client.address(),
            key: Arc::clone(lock.key().title()),
        }
    }
}

impl Owner {
    /// An owner that holds nothing.
    pub fn new() -> Owner {
        Owner::default()
    }

    /// The owner that a thread is.
    pub(crate) fn of_thread() -> Owner {
        Owner {
            is_thread: true,
            ..Owner::default()
        }
    }

    /// What this owner has of a lock, counted once more.
    pub(in crate::api) fn hold_of(&self, lock: &Lock) -> Option<Arc<SharedLock>> {
        self.holds
            .borrow()
            .get(&HoldKey::of(lock))
            .and_then(Weak::upgrade)
    }

    pub(in crate::api) fn insert(&self, lock: &Lock, hold: &Arc<SharedLock>) {
        self.holds
            .borrow_mut()
            .insert(HoldKey::of(lock), Arc::downgrade(hold));
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}

/// The owner that this thread is. A thread that is just ending is one that holds nothing.
pub(in crate::api) fn of_thread() -> Rc<Owner> {
    thread_local! {
        static THREAD: Rc<Owner> = Rc::new(Owner::of_thread());
    }
    THREAD
        .try_with(Rc::clone)
        .unwrap_or_else(|_| Rc::new(Owner::of_thread()))
}
