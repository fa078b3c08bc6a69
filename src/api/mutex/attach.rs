//! Attaching to a lock that is held already: a guard is made of a lease, and no node is asked.
//!
//! A lock that another client has taken has its keys on nodes that this client may never have spoken to. So all nodes
//! count as reached, and each one gets the release, now or when it is back.

use super::Mutex;
use crate::algorithm::kind::Access;
use crate::api::guard::MutexGuard;
use crate::api::lease::Lease;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::HoldId;
use crate::events::error::{Error, ErrorKind, Result};
use std::time::SystemTime;

impl Mutex {
    /// Makes a guard of a lease, to extend and release a lock that is held already. Asks no node and does not
    /// wait. A [`watchdog`](Mutex::watchdog) extends it from now on, for the mutex's [`ttl`](Mutex::ttl); its limits
    /// count from now.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// # let text = redlock.mutex("reports/2024-02").lock()?.detach().into_text();
    /// # let line = text.expose();
    /// use quorumlock::{ErrorKind, Lease, Watchdog};
    ///
    /// let mutex = redlock.mutex("reports/2024-02").watchdog(Watchdog::new());
    /// let lease: Lease = line.parse()?;
    /// match mutex.attach(lease) {
    ///     Ok(guard) => println!("ours for {:?}, and longer", guard.remaining()),
    ///     Err(error) if error.kind() == ErrorKind::LeaseLost => println!("it came too late"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The validity is computed from the lease's end alone, see [`Lease`](crate::Lease). To be certain,
    /// [`extend`](MutexGuard::extend) it next.
    ///
    /// Missing connections to nodes are begun to be made, and the call does not wait for them. If the guard is
    /// *dropped* before a connection is made, the release for that node goes out when it is. In a program that only
    /// releases and then ends, use [`unlock`](MutexGuard::unlock) or
    /// [`Redlock::flush_releases`](crate::Redlock::flush_releases), which wait.
    ///
    /// # Errors
    /// [`LeaseLost`](ErrorKind::LeaseLost) when the lease has ended. [`Config`](ErrorKind::Config) when it is of
    /// another resource or prefix, or its time to live is not within the settings of this client, or those of the mutex
    /// cannot be used. [`Forked`](ErrorKind::Forked) in a child of the process that built the client. Nothing is sent,
    /// the lease is used up, and the lock, if it was still held, runs out.
    pub fn attach(&self, lease: Lease) -> Result<MutexGuard> {
        let (client, key) = (&self.client, self.key());
        client.check_process()?;
        let own = self.prepare()?;
        let is_of_this_kind = lease.kind().is_fenced() == self.is_fenced && lease.kind().access() == self.access;
        if lease.lock_key() != key || !is_of_this_kind {
            let message =
                format!("the lease of {:?} cannot be attached to {:?}", lease.lock_key().title(), key.title());
            return Err(Error::new(ErrorKind::Config, message));
        }
        let ttl = client.checked_ttl(lease.ttl())?;
        let now = client.engine().readings();
        let validity = lease.validity(ttl, now.lease, SystemTime::now());
        if !validity.is_valid(now.lease) {
            return Err(Error::new(ErrorKind::LeaseLost, format!("the lease of {:?} has ended", key.title())));
        }
        let claim = client.engine().adopt(lease.token(), lease.kind());
        let hold = HoldId::of(&claim.token);
        // A thread that waits to read shares the lease of one that reads.
        if self.access != Some(Access::Read) {
            self.local.hold(hold, validity, now);
        }
        let watch = |dog: &Watchdog| {
            let extension = dog.extension_of(own, claim.t0.lease, hold);
            client.watchdog_thread().watch(&self.local, &claim, validity, Some(extension), true)
        };
        let watched = self.watchdog.as_ref().map(watch);
        let longest = if watched.is_some() && own.millis() > ttl.millis() { own } else { ttl };
        let guard = MutexGuard::new(client.clone(), self.local.clone(), claim, validity, longest).watched(watched);
        client.report().attached(key.title());
        client.report().deliver_queued();
        Ok(guard)
    }
}
