//! The events, with their fields.

use super::reason::{GaveUpReason, LossReason};
use super::severity::Severity;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use std::sync::Arc;
use std::time::Duration;

/// Declares the events: of each, its code, and the field that is the lock or the node that it is
/// about.
macro_rules! events {
    (
        $(
            $(#[$what:meta])*
            $event:ident = $code:literal $(of $name:ident)? $(at $node:ident)? { $($fields:tt)* }
        )*
    ) => {
        /// One event. `Display` is one line for a log, in plain technical English; the [page of
        /// messages](crate::docs::messages) shows every line.
        ///
        /// Each call for a lock ends in exactly one of [`Acquired`](Event::Acquired) and
        /// [`GaveUp`](Event::GaveUp). [`Waiting`](Event::Waiting) precedes either, once, if the
        /// call waits at all. So the number of `Waiting` less the number of ends with `has_waited`
        /// is the number of calls that wait now.
        ///
        /// In every variant, `name` is the name of the lock without the prefix of its key; for a
        /// set, the names with commas between them; for a slot of a semaphore, the name of the
        /// semaphore, `#` and the number of the slot. `node` is the address of a node: `host:port`,
        /// or `unix:` and a path. `held` is the time from the beginning of the attempt that
        /// acquired the lock, or from when its lease was [attached](crate::Mutex::attach). `causes`
        /// are the nodes without a usable reply. No event contains an owner token, a password, a
        /// full URL or text from a server.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Event {$(
            $(#[$what])*
            #[non_exhaustive]
            $event { $($fields)* },
        )*}

        impl Event {
            /// A word that never changes, such as `acquired`, for labels and JSON: the name of the
            /// variant in snake case.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Event::$event { .. } => $code,)*
                }
            }

            /// The name of the lock; none for an event of nodes, and for
            /// [`EventsDropped`](Event::EventsDropped).
            pub fn name(&self) -> Option<&str> {
                match self {
                    $($(Event::$event { $name, .. } => Some($name),)?)*
                    _ => None,
                }
            }

            /// The address of the node; none for an event of locks, and for
            /// [`EventsDropped`](Event::EventsDropped).
            pub fn node(&self) -> Option<&str> {
                match self {
                    $($(Event::$event { $node, .. } => Some($node),)?)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// A lock was acquired; its guard is about to be returned.
    ///
    /// Not reported for a lease that is [attached](crate::Mutex::attach). Nothing is reported when
    /// a lock is [detached](crate::MutexGuard::detach).
    Acquired = "acquired" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Time from the beginning of the call to the reply that decided it.
        waited: Duration,
        /// Attempts of the call, with the successful one. 0 if the call has waited to
        /// [read](crate::Redlock::read_mutex) and shares the lease of another thread of its client:
        /// that lease is acquired, and released, once.
        attempts: u32,
        /// Whether [`Waiting`](Event::Waiting) was reported for the call.
        has_waited: bool,
        /// The position of the call in the queue of the lock when it began to wait there: 1 was the
        /// next. None for a lock that was free. If nodes differ, the least.
        position: Option<u32>,
        /// Round trips of the successful attempt: 0 without one, 1, or 2 if the nodes had different
        /// numbers for a [fenced](crate::Mutex::fenced) lock, and a second round set one number on
        /// all. For a [permit](crate::Permit) 1, or if the first slot was held, up to 3.
        round_trips: u32,
        /// Attempts that followed a message of the nodes that the lock may be free.
        told: u32,
        /// Attempts that followed no message, but a wait of
        /// [`Builder::place_lease`](crate::Builder::place_lease) or the end of the holder's time to
        /// live.
        unasked: u32,
        /// Attempts that challenged the first entry in the queue: it had let the call wait for
        /// [`Builder::place_lease`](crate::Builder::place_lease) while the lock was free or changed
        /// hands.
        challenges: u32,
    }
    /// An attempt to acquire a lock did not get a quorum, and was undone. A call that waits makes
    /// another attempt.
    AttemptLost = "attempt_lost" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Number of the attempt within its call, counted from 1.
        attempt: u32,
        /// Nodes that granted the lock. A quorum is lost only if its replies arrived after the end
        /// of the lease.
        granted: usize,
        /// Nodes that replied that another client holds the lock. That is not a fault.
        refused: usize,
        /// Nodes without a usable reply. An attempt ends as soon as it is lost, so it may not have
        /// waited for the other nodes.
        causes: Vec<NodeFault>,
    }
    /// The credentials of a node could not be replaced: the provider, the password file or a file
    /// of certificates fails, or the server refuses what it contains. Those before stay in use, and
    /// it is tried again each second. Reported once for each cause, until it succeeds. As every
    /// event of nodes, it is delivered by the next call of the client, or by its watchdog.
    CredentialsFailed = "credentials_failed" at node {
        /// The address of the node.
        node: Arc<str>,
        /// Why.
        fault: NodeFault,
    }
    /// Events were dropped, because they occur faster than the observers return. Events of nodes
    /// are never dropped while the client exists.
    ///
    /// Delivered before the events that still wait in the queue.
    EventsDropped = "events_dropped" {
        /// Events that were dropped since the last event of this kind.
        count: u64,
    }
    /// A lock was extended.
    Extended = "extended" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// The new time to live.
        ttl: Duration,
        /// Whether a [`Watchdog`](crate::Watchdog) extended the lock, and not
        /// [`MutexGuard::extend`](crate::MutexGuard::extend).
        is_automatic: bool,
    }
    /// Too few nodes replied to an extension in time. The lock is still held until its old lease
    /// ends, and a watchdog tries again.
    ExtensionFailed = "extension_failed" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Whether a [`Watchdog`](crate::Watchdog) sent the extension, and not
        /// [`MutexGuard::extend`](crate::MutexGuard::extend).
        is_automatic: bool,
        /// Time until the lease ends, measured when the extension had failed.
        remaining: Duration,
        /// Nodes without a usable reply.
        causes: Vec<NodeFault>,
    }
    /// A call for a lock ended without it. Reported once for each call that does not end in
    /// [`Acquired`](Event::Acquired), also for calls that never asked a node, and for those that
    /// return an error.
    ///
    /// Only a call that is refused as [`Forked`](crate::ErrorKind::Forked) reports nothing:
    /// observers belong to the parent. A [reentrant](crate::Mutex::reentrant) lock that its owner
    /// takes again is no call for the lock.
    GaveUp = "gave_up" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Why the call ended.
        reason: GaveUpReason,
        /// Time from the beginning of the call to its end.
        waited: Duration,
        /// Attempts of the call. 0 if it never became the first of the threads of its client that
        /// want the lock, or if it failed before an attempt.
        attempts: u32,
        /// Whether [`Waiting`](Event::Waiting) was reported for the call.
        has_waited: bool,
        /// Nodes without a usable reply to the last attempt; for an error, the nodes of
        /// [`Error::causes`](crate::Error::causes).
        causes: Vec<NodeFault>,
    }
    /// A key without expiry holds a lock, or a slot, on a majority of nodes. Reported once for each
    /// wait, which fails, and once for a slot.
    ///
    /// Such a lock never ends by itself: a program set the key without an expiry, or stopped before
    /// it set one. Delete the key if no program holds the lock.
    KeyWithoutExpiry = "key_without_expiry" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Its key: the client's prefix and the name.
        key: Arc<str>,
        /// The addresses of the nodes where the key has no expiry.
        nodes: Vec<Arc<str>>,
    }
    /// A lock was lost while its guard existed: another client may hold it. Reported once for each
    /// guard at most.
    ///
    /// If the guard has a [`Watchdog`](crate::Watchdog), or its [`lost`](crate::MutexGuard::lost)
    /// channel was requested, the event is reported in time, together with the message on that
    /// channel. Otherwise the loss is found by the next extension or by the release. In every case
    /// an event of the guard's release follows.
    Lost = "lost" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// Why the lock was lost.
        reason: LossReason,
        /// How long it was held until the loss was found.
        held: Duration,
    }
    /// A node stopped replying, or never replied: its connection was lost or could not be made, it
    /// was rejected, or it replies to attempts with an error.
    ///
    /// Reported once each time that the node goes down, however many attempts fail. The end of an
    /// idle connection is reported only if it cannot be made again.
    NodeDown = "node_down" at node {
        /// The address of the node.
        node: Arc<str>,
        /// What failed.
        fault: NodeFault,
    }
    /// A node may forget a lock while it is held: it has a limit of memory and evicts keys when it
    /// is full. Reported once for each connection: at [`connect`](crate::Redlock::connect), or with
    /// the first call more than a second after the connection was made.
    NodeMayEvict = "node_may_evict" at node {
        /// The address of the node.
        node: Arc<str>,
        /// Its `maxmemory-policy`: a known one, or `unrecognised`. Every policy but `noeviction`
        /// may evict a lock.
        policy: &'static str,
    }
    /// What a node remembers does not fit this client: another program has other settings, or the
    /// user has no right to the key. Locks work, and no call fails for it.
    ///
    /// Reported once for each node and difference, and again if it ends and begins anew. A client
    /// whose `max_ttl` is longer stores that at the node, which ends the difference for this
    /// client, and begins one for the others.
    NodeMismatched = "node_mismatched" at node {
        /// The address of the node.
        node: Arc<str>,
        /// The difference.
        mismatch: Mismatch,
    }
    /// Another server is the master of a node's shard: a server in cluster mode has replied with
    /// its address (`MOVED`), and connections to the node lead there from now on. Its votes count
    /// as after a restart, see [`RestartPolicy`](crate::RestartPolicy). Reported again where
    /// another one is named.
    NodeMoved = "node_moved" at node {
        /// The address of the node, as its URL has it.
        node: Arc<str>,
        /// The address of the master: `host:port`.
        master: Arc<str>,
    }
    /// A node is declared [`durable`](crate::Builder::durable), and its `INFO` contains
    /// `aof_enabled:0`: it appends no write to disk. The declaration is ignored, and the
    /// [`RestartPolicy`](crate::RestartPolicy) holds for this node. Reported once for each
    /// connection.
    NodeNotDurable = "node_not_durable" at node {
        /// The address of the node.
        node: Arc<str>,
    }
    /// A node was restarted, or was a replica, and may have forgotten locks: its votes do not count
    /// until the quarantine ends, see [`RestartPolicy`](crate::RestartPolicy).
    ///
    /// Reported with the node's first reply, and again if it was down meanwhile or restarted once
    /// more.
    NodeQuarantined = "node_quarantined" at node {
        /// The address of the node.
        node: Arc<str>,
        /// Time until the quarantine ends, unless the node is restarted again.
        remaining: Duration,
    }
    /// A node votes, for the first time or again: it has completed the handshake and replies to
    /// commands.
    NodeUp = "node_up" at node {
        /// The address of the node.
        node: Arc<str>,
    }
    /// The quarantine of a node has ended. Reported once, with the node's first reply after its
    /// end.
    QuarantineEnded = "quarantine_ended" at node {
        /// The address of the node.
        node: Arc<str>,
    }
    /// Too few nodes replied to a release in time. A node that hangs runs it later; at the latest,
    /// the lock ends with its time to live.
    ReleaseFailed = "release_failed" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// How long it was held.
        held: Duration,
        /// Whether the guard was dropped (in C: freed), and not released by
        /// [`unlock`](crate::MutexGuard::unlock). Then no call waits for the replies.
        is_dropped: bool,
        /// Nodes without a usable reply.
        causes: Vec<NodeFault>,
    }
    /// A node refuses `PUBLISH`, or denies `SUBSCRIBE` by its access control list. Locks work; a
    /// wait for a lock that another program releases may end later. Reported once for each node and
    /// command, see [`Builder::release_notifications`](crate::Builder::release_notifications).
    ReleaseNotificationsRefused = "release_notifications_refused" at node {
        /// The address of the node.
        node: Arc<str>,
        /// What the node replied.
        fault: NodeFault,
        /// Whether the node refuses `PUBLISH`, by which other clients are notified of releases by
        /// this client. Otherwise it refuses `SUBSCRIBE`, by which this client is notified of
        /// theirs.
        is_publishing: bool,
    }
    /// A lock was released, and a quorum of nodes has replied.
    Released = "released" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// How long it was held.
        held: Duration,
        /// Whether the guard was dropped (in C: freed), and not released by
        /// [`unlock`](crate::MutexGuard::unlock). Then no call waits for the replies.
        is_dropped: bool,
        /// Whether the lock was held until the release.
        outcome: ReleaseOutcome,
    }
    /// An extension set the key of a held lock again on nodes that had lost it, for example by a
    /// restart. Reported when the command is queued: its reply is not awaited.
    Repaired = "repaired" of name {
        /// The name of the lock.
        name: Arc<str>,
        /// The addresses of those nodes.
        nodes: Vec<Arc<str>>,
    }
    /// A call for a lock begins to wait: behind other threads of this client, or for a holder.
    /// Reported once for each call.
    Waiting = "waiting" of name {
        /// The name of the lock.
        name: Arc<str>,
    }
    /// A call begins to wait for a lock that its own thread holds: it waits for itself, until the
    /// lease ends; with a [`Watchdog`](crate::Watchdog), for ever. Reported once for each call,
    /// after its [`Waiting`](Event::Waiting).
    ///
    /// The thread has acquired or attached the lock by the same client, and has neither released
    /// nor detached it. A set is waited for if the thread holds one of its locks, and a permit if
    /// it holds all of them. Release the guard first, or let the lock be
    /// [`reentrant`](crate::Mutex::reentrant).
    ///
    /// A guard may have been sent to another thread, which is not known here. If that thread
    /// releases the lock, the wait ends, and the event means nothing. None is reported for a guard
    /// of an [`Owner`](crate::Owner), which is no thread, nor for one to
    /// [read](crate::RwReadGuard).
    WaitingForItself = "waiting_for_itself" of name {
        /// The name of the lock that the thread holds: for a set one of its names, for permits the
        /// semaphore's.
        name: Arc<str>,
        /// Time until the lease ends, unless it is extended.
        remaining: Duration,
    }
}

impl Event {
    /// How serious the event is.
    pub fn severity(&self) -> Severity {
        use Event::*;
        match self {
            Acquired { .. }
            | AttemptLost { .. }
            | Extended { .. }
            | GaveUp {
                reason: GaveUpReason::Cancelled | GaveUpReason::Held | GaveUpReason::ShutDown,
                ..
            }
            | Released {
                outcome: ReleaseOutcome::Released,
                ..
            }
            | Waiting { .. } => Severity::Debug,
            GaveUp {
                reason: GaveUpReason::TimedOut,
                ..
            }
            | NodeMoved { .. }
            | NodeUp { .. }
            | QuarantineEnded { .. }
            | Repaired { .. } => Severity::Info,
            GaveUp { .. } | KeyWithoutExpiry { .. } | Lost { .. } => Severity::Error,
            _ => Severity::Warning,
        }
    }
}
