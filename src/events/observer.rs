//! Who is told what happens: for logs, metrics and alarms.

use crate::events::event::{
    Acquired, AttemptLost, EventsDropped, Extended, ExtensionFailed, KeyWithoutExpiry, Lost, NodeDown, NodeMayEvict,
    NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded, ReleaseFailed, ReleaseNotificationsRefused, Released,
    Repaired,
};
use std::sync::Arc;

/// Is told what happens to the locks and nodes of a client. Given to [`Builder::observer`](crate::Builder::observer).
///
/// Every method does nothing unless it is implemented. A client without an observer spends nothing on it.
///
/// ```
/// use quorumlock::{Acquired, NodeUp, Observer, Redlock, Released};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Journal(Mutex<Vec<String>>);
///
/// impl Journal {
///     fn note(&self, line: String) {
///         self.0.lock().unwrap().push(line);
///     }
/// }
///
/// impl Observer for Journal {
///     fn acquired(&self, event: &Acquired) {
///         self.note(format!("took {} at attempt {}", event.resource(), event.attempts()));
///     }
///     fn node_up(&self, event: &NodeUp) {
///         self.note(format!("{} is up", event.address()));
///     }
///     fn released(&self, event: &Released) {
///         self.note(format!("{:?} {}", event.outcome(), event.resource()));
///     }
/// }
///
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// let journal = Arc::new(Journal::default());
/// let redlock = Redlock::builder().node(node.url()).observer(Arc::clone(&journal)).build()?;
/// redlock.mutex("orders/42").lock()?.unlock()?;
///
/// let mut lines = journal.0.lock().unwrap();
/// assert!(lines.contains(&"took orders/42 at attempt 1".to_owned()));
/// assert!(lines.contains(&"Released orders/42".to_owned()));
/// assert!(lines.iter().any(|line| line.ends_with(" is up")));
/// # lines.clear();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When and where it is called
///
/// * On the thread in whose call a thing happened or was found out, before that call returns; for automatic extension, on
///   the watchdog's thread. The order of what several threads tell is open.
/// * What no call in particular is about (nodes, and the releases of dropped guards) waits in a queue, which one thread at a
///   time delivers, in order. Every call that has something to tell delivers some of it after its own event: at most 32
///   events, so that a slow observer does not capture a thread. A call that waits does so after each attempt. What is left
///   is delivered by the next call of any thread; if none comes and there is a watchdog's thread, by that one, within a
///   second; and when the last handle of the client is dropped, then, for one
///   [`node_timeout`](crate::Builder::node_timeout) at most.
/// * The queue takes 65,536 events. Outcomes of releases that do not fit are dropped, and so is what is left when the client
///   has ended. [`events_dropped`](Observer::events_dropped) tells how many those were.
/// * Never while a lock of this library is held. A callback may use the client: lock, unlock, drop guards, drop clients.
///   What it does so itself, with this client or another, is not told, as there would be no end to it. Nodes that go down
///   or up meanwhile are told afterwards.
/// * A panic in a callback is caught and dropped. It changes nothing, not the result of the call, not the watchdog, and
///   not a guard that is dropped by another panic.
///
/// # What to mind
///
/// * Be quick. A slow callback delays the call that it is part of, by up to 33 times its own duration, and threads that
///   queue behind that call for the same resource; time goes on meanwhile for a lock that was just taken. On the watchdog's
///   thread it delays extensions, and with them it may cost locks. Where there is much to do, send it elsewhere by a
///   channel.
/// * Do not wait, in a callback, for a lock that the thread itself holds or waits for: it would wait for itself. The same
///   goes for any mutex that the program may hold while it locks or unlocks.
/// * The client keeps its observer, so an observer that keeps a client keeps both for ever.
pub trait Observer: Send + Sync {
    /// A lock was taken; its guard is about to be returned. Of a lease that is [attached](crate::Mutex::attach) it is not told,
    /// nor anything when a lock is [detached](crate::MutexGuard::detach).
    fn acquired(&self, event: &Acquired) {
        let _ = event;
    }

    /// An attempt to take a lock was lost, and undone.
    fn attempt_lost(&self, event: &AttemptLost) {
        let _ = event;
    }

    /// Events were dropped: the observer takes longer for them than they take to happen. Told before what still waits in the
    /// queue.
    fn events_dropped(&self, event: &EventsDropped) {
        let _ = event;
    }

    /// A lock was extended, by hand or automatically.
    fn extended(&self, event: &Extended) {
        let _ = event;
    }

    /// Too few nodes answered an extension, by hand or automatic. The lock is still held.
    fn extension_failed(&self, event: &ExtensionFailed) {
        let _ = event;
    }

    /// A wait for a lock has failed, because the lock is held by a key that has no expiry. Once for each wait.
    fn key_without_expiry(&self, event: &KeyWithoutExpiry) {
        let _ = event;
    }

    /// A lock was lost: once for each guard at most. A guard that has a [`Watchdog`](crate::Watchdog), or was asked for its
    /// [`lost`](crate::MutexGuard::lost) channel, is told of at the same time as by that channel, in time. Of any other it
    /// is found out when it is next extended or released. Whatever was lost, the guard's release follows.
    fn lost(&self, event: &Lost) {
        let _ = event;
    }

    /// A node cannot be asked any more, or could not from the beginning, or answers attempts with an error. Once for each time that it goes down, however often
    /// it is tried. A connection that ends while nothing is asked, as idle ones do, is told of only if it cannot be made
    /// again.
    fn node_down(&self, event: &NodeDown) {
        let _ = event;
    }

    /// A node has a limit of memory, and evicts keys when it is full. Once for each connection to it.
    fn node_may_evict(&self, event: &NodeMayEvict) {
        let _ = event;
    }

    /// A node is declared durable and appends nothing to disk: the declaration is ignored. Once for each connection to it.
    fn node_not_durable(&self, event: &NodeNotDurable) {
        let _ = event;
    }

    /// A node was restarted or was a replica, and its votes do not count for a while. Told with its first answer, and again when it has been
    /// down meanwhile, or restarted once more.
    fn node_quarantined(&self, event: &NodeQuarantined) {
        let _ = event;
    }

    /// A node votes, for the first time or again: after it was down, or in quarantine.
    fn node_up(&self, event: &NodeUp) {
        let _ = event;
    }

    /// The quarantine of a node is over. Told once, with the first answer of the node after that.
    fn quarantine_ended(&self, event: &QuarantineEnded) {
        let _ = event;
    }

    /// Too few nodes answered a release. That of a dropped guard is told like that of one that was unlocked: as
    /// [`released`](Observer::released) or as this, and when [`released`](Observer::released) says.
    fn release_failed(&self, event: &ReleaseFailed) {
        let _ = event;
    }

    /// A lock was released. Of a guard that was dropped it is told when the answers are in, or the node timeout is over and
    /// too few are; found out by whichever thread next uses the client for something else, the watchdog's included. If none
    /// does, it is not told.
    fn released(&self, event: &Released) {
        let _ = event;
    }

    /// The key of a held lock was set again where it was lost, with an extension.
    fn repaired(&self, event: &Repaired) {
        let _ = event;
    }

    /// A node refuses to tell others of our releases, or us of theirs. Told once for each.
    fn release_notifications_refused(&self, event: &ReleaseNotificationsRefused) {
        let _ = event;
    }
}

/// Tells the observer inside, so that the program can keep a handle on it.
impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn acquired(&self, event: &Acquired) {
        (**self).acquired(event);
    }

    fn attempt_lost(&self, event: &AttemptLost) {
        (**self).attempt_lost(event);
    }

    fn events_dropped(&self, event: &EventsDropped) {
        (**self).events_dropped(event);
    }

    fn extended(&self, event: &Extended) {
        (**self).extended(event);
    }

    fn extension_failed(&self, event: &ExtensionFailed) {
        (**self).extension_failed(event);
    }

    fn key_without_expiry(&self, event: &KeyWithoutExpiry) {
        (**self).key_without_expiry(event);
    }

    fn lost(&self, event: &Lost) {
        (**self).lost(event);
    }

    fn node_down(&self, event: &NodeDown) {
        (**self).node_down(event);
    }

    fn node_may_evict(&self, event: &NodeMayEvict) {
        (**self).node_may_evict(event);
    }

    fn node_not_durable(&self, event: &NodeNotDurable) {
        (**self).node_not_durable(event);
    }

    fn node_quarantined(&self, event: &NodeQuarantined) {
        (**self).node_quarantined(event);
    }

    fn node_up(&self, event: &NodeUp) {
        (**self).node_up(event);
    }

    fn quarantine_ended(&self, event: &QuarantineEnded) {
        (**self).quarantine_ended(event);
    }

    fn release_failed(&self, event: &ReleaseFailed) {
        (**self).release_failed(event);
    }

    fn released(&self, event: &Released) {
        (**self).released(event);
    }

    fn repaired(&self, event: &Repaired) {
        (**self).repaired(event);
    }

    fn release_notifications_refused(&self, event: &ReleaseNotificationsRefused) {
        (**self).release_notifications_refused(event);
    }
}
