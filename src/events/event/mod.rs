//! What happens to locks and nodes, for logs, alarms and metrics: [`Event`], which
//! [`Builder::observer`](crate::Builder::observer) hands to a closure of the program.
//!
//! ```
//! use quorumlock::Redlock;
//! use quorumlock::event::Event;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! # let node = quorumlock::embedded::EmbeddedNode::start()?;
//! let total = Arc::new(AtomicU32::new(0));
//! let counted = Arc::clone(&total);
//! let observer = move |event: &Event| {
//!     println!("{}: {event}", event.severity());
//!     if let Event::Acquired { attempts, .. } = event {
//!         counted.fetch_add(*attempts, Ordering::Relaxed);
//!     }
//! };
//! let redlock = Redlock::builder().node(node.url()).observer(observer).build()?;
//! let _ = redlock.mutex("orders/42").lock()?.unlock()?;
//! assert_eq!(total.load(Ordering::Relaxed), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When and where an observer is called
//!
//! * On the thread whose call caused or found the event, before that call returns; for automatic
//!   extension, on the watchdog thread. Events of different threads have no defined order.
//! * An event that belongs to no call (nodes, and the releases of dropped guards) waits in a queue,
//!   which one thread at a time delivers, in order. A call that reports an event delivers queued
//!   events after its own: at most 32, so that a slow observer does not block the thread. A call
//!   that waits does so after each attempt. The next call of any thread delivers the rest. Without
//!   calls, the watchdog thread does, if there is one, within a second; and so does the drop of the
//!   client's last handle, for one [`node_timeout`](crate::Builder::node_timeout) at most.
//! * The queue holds 65,536 events. Events of releases that do not fit are dropped, and so are
//!   those that are pending when the client has ended. [`EventsDropped`](Event::EventsDropped)
//!   counts them.
//! * Never while a lock of this library is held. A callback may use the client: lock, unlock, drop
//!   guards, drop clients. The events of its own calls, with this client or another, are not
//!   reported, because that would never end. Nodes that go down or up meanwhile are reported
//!   afterwards.
//! * Several observers of one client are called one after the other, in the order in which they
//!   were added, with the same event.
//! * A panic of an observer is caught and discarded. It changes nothing: not the result of the
//!   call, not the watchdog, not a guard that another panic drops, and not the other observers.
//!
//! A client without an observer creates no event.
//!
//! # Rules for observers
//!
//! * Return quickly. A slow observer delays the call that reports the event, by up to 34 times its
//!   own duration, and the threads that wait behind that call for the same lock. The lease of a
//!   lock that was just acquired shrinks meanwhile; if it ends, the call fails as
//!   [`Unavailable`](crate::ErrorKind::Unavailable). On the watchdog thread a slow observer delays
//!   extensions, and locks may be lost. Send slow work to another thread, by a channel.
//! * Do not wait for a lock that the same thread holds or waits for: that is a deadlock. The same
//!   is true for any mutex that the program may hold while it locks or unlocks.
//! * The client owns its observers, so an observer that owns the client leaks both.

#[cfg(feature = "log")]
mod logging;
mod reason;
mod severity;
mod text;
mod variants;

pub use crate::algorithm::incarnation::mismatch::Mismatch;
#[cfg(feature = "log")]
pub use logging::log;
pub use reason::{GaveUpReason, LossReason};
pub use severity::Severity;
pub use variants::Event;
