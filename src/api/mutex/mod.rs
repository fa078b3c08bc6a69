//! The lock of one resource, and the ways to take it.

mod attach;
mod cancellable;
mod fenced;
pub(crate) mod fenced_mutex;
mod queueing;
mod waiter;

use crate::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitLimit};
use crate::algorithm::lease::{OwnerToken, Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::client::Client;
use crate::api::guard::MutexGuard;
use crate::api::wait::{Limit, Wait};
use crate::api::watchdog::Watchdog;
use crate::engine::calls::{AttemptRecord, RoundResult, WakeReason};
use crate::engine::local_queue::{HoldId, QueueTicket, Unavailability};
use crate::events::error::{Error, ErrorKind, Result};
use crate::os::entropy;
use getrandom::SysRng;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use waiter::{Ended, ReleaseWaiter};

/// Time to live of a lock that names none.
const DEFAULT_TTL: Duration = Duration::from_secs(10);
/// Longest resource name, in bytes: longer ones are mistakes, and would be sent to every node with every command.
const MAX_RESOURCE: usize = 4096;

/// The lock of one resource.
///
/// Taking it gives a [`MutexGuard`], and while that is held and its lease lasts, nobody else who plays by the rules gets
/// one. It is not reentrant: a thread that locks what it holds waits for itself, until the lease ends.
///
/// Threads that share a client and wait for the same resource do so in a queue, first come, first served, and only the
/// first of them asks the servers. [`try_lock`](Mutex::try_lock) does not queue up.
///
/// Making one costs nothing but memory: make them where they are needed, or keep and clone one.
#[derive(Clone)]
pub struct Mutex {
    client: Client,
    key: Arc<str>,
    ttl: Duration,
    watchdog: Option<Watchdog>,
    is_fenced: bool,
}

impl Mutex {
    pub(crate) fn new(client: Client, resource: &str) -> Mutex {
        let key = format!("{}{resource}", client.settings().prefix).into();
        Mutex { client, key, ttl: DEFAULT_TTL, watchdog: None, is_fenced: false }
    }

    /// How long the lock lasts unless it is released: the servers free it then, whatever became of its holder. Default:
    /// 10 s.
    ///
    /// Choose it longer than the work takes, with room for a slow day, or let a [`watchdog`](Mutex::watchdog) extend it. At
    /// least 1 ms and more than the allowance for clock drift, at most [`Builder::max_ttl`](crate::Builder::max_ttl), 60 s by default; fractions of a
    /// millisecond are dropped. A value that cannot be used is reported when the mutex is locked.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Mutex {
        self.ttl = ttl;
        self
    }

    /// Extends the lock automatically for as long as its guard lives, and tells the guard when it is
    /// [`lost`](MutexGuard::lost) all the same. Default: no watchdog; the lock ends with its time to live.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::Watchdog;
    /// use std::{thread, time::Duration};
    ///
    /// let mutex = redlock.mutex("reports/2024-02").ttl(Duration::from_millis(200)).watchdog(Watchdog::new());
    /// let guard = mutex.lock()?;
    /// thread::sleep(Duration::from_millis(500));
    /// assert!(!guard.remaining().is_zero(), "the work took longer than the time to live, and is still alone");
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Settings that cannot be used are reported when the mutex is locked.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Mutex {
        self.watchdog = Some(watchdog);
        self
    }

    /// The name of the resource, without the prefix.
    pub fn resource(&self) -> &str {
        self.client.resource(&self.key)
    }

    /// Takes the lock, waiting for as long as somebody else holds it, but not for ever on nodes that are not there.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when no quorum of nodes has answered for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after), 3 s by default, or the lock is
    /// held by a key that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry)); [`Config`](ErrorKind::Config) for
    /// an unusable name or time to live; [`Entropy`](ErrorKind::Entropy) when the system has no random bytes;
    /// [`Forked`](ErrorKind::Forked) in a child of the process that built the client.
    pub fn lock(&self) -> Result<MutexGuard> {
        self.lock_without_limit(&Wait::forever())
    }

    /// Makes exactly one attempt, and never waits for a holder or in a queue: at most the node timeout passes, one more if
    /// connections have to be made first, and one more for a [fenced](Mutex::fenced) lock. `None` when another client holds
    /// the lock, or so many tried at once that none got a quorum.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when too few nodes could answer to tell; [`Config`](ErrorKind::Config);
    /// [`Entropy`](ErrorKind::Entropy); [`Forked`](ErrorKind::Forked).
    pub fn try_lock(&self) -> Result<Option<MutexGuard>> {
        self.client.check_process()?;
        let mut acquisition = Acquisition::new(self, WaitLimit::Once, self.client.engine().readings())?;
        acquisition.drive(None, &Wait::forever())
    }

    /// Takes the lock, waiting for at most this long; zero is one attempt, as by [`try_lock`](Mutex::try_lock). `None` when
    /// the time was up and the lock still held.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// let report = redlock.mutex("reports/2024-02").ttl(Duration::from_secs(30));
    /// let guard = report.lock_timeout(Duration::from_millis(100))?.expect("nobody else is here");
    ///
    /// // For everybody else it is held. That is an answer, not an error.
    /// assert!(report.lock_timeout(Duration::from_millis(20))?.is_none());
    ///
    /// drop(guard);
    /// assert!(report.lock_timeout(Duration::from_millis(100))?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when the time was up and too few nodes could answer the last attempt; and before
    /// that when so many nodes have [permanent](crate::Cause::is_permanent) faults for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) that no quorum is possible, or when the lock is held
    /// by a key that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry)); [`Config`](ErrorKind::Config); [`Entropy`](ErrorKind::Entropy); [`Forked`](ErrorKind::Forked).
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<MutexGuard>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Takes the lock, waiting until then at the latest; a time in the past is one attempt. Otherwise like
    /// [`lock_timeout`](Mutex::lock_timeout).
    ///
    /// # Errors
    /// As [`lock_timeout`](Mutex::lock_timeout).
    pub fn lock_deadline(&self, deadline: Instant) -> Result<Option<MutexGuard>> {
        self.lock_with(&Wait::deadline(deadline))
    }

    /// Takes the lock, waiting as `wait` says: with a limit, with a [`CancelHandle`](crate::CancelHandle), or both. `None`
    /// when the limit came first. Without a limit there is [`lock_cancellable`](Mutex::lock_cancellable).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::{CancelHandle, ErrorKind, Wait};
    /// use std::{thread, time::Duration};
    ///
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.lock()?;
    ///
    /// // Another thread waits for the lock, until the program wants to end.
    /// let shutdown = CancelHandle::new();
    /// let wait = Wait::timeout(Duration::from_secs(60)).cancelled_by(&shutdown);
    /// let waiting = thread::spawn(move || mutex.lock_with(&wait));
    ///
    /// shutdown.cancel();
    /// let error = waiting.join().unwrap().expect_err("the wait was cancelled");
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Cancelled`](ErrorKind::Cancelled) when the wait was cancelled; then nothing is held, and no key is left behind.
    /// Otherwise as [`lock`](Mutex::lock) and [`lock_timeout`](Mutex::lock_timeout).
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<MutexGuard>> {
        self.client.check_process()?;
        wait.check_process()?;
        let called_at = self.client.engine().readings();
        let now = called_at.steady;
        let patience = match wait.limit {
            Limit::Never => WaitLimit::WhileAvailable(self.client.settings().unavailable_after),
            Limit::Timeout(timeout) => WaitLimit::Until(now.after(timeout)),
            Limit::Deadline(deadline) => {
                WaitLimit::Until(now.after(deadline.saturating_duration_since(Instant::now())))
            }
        };
        let mut acquisition = Acquisition::new(self, patience, called_at)?;
        let (place, turn) = self.client.queues().join(&self.key, called_at);
        match acquisition.queue(&place, turn, wait)? {
            Queued::FirstInLine => acquisition.drive(Some(place), wait),
            Queued::OutOfTime(None) => Ok(None),
            Queued::OutOfTime(Some(trouble)) => Err(self.client.unavailable("lock", self.resource(), trouble)),
        }
    }

    /// Checks the name and the times, and sees to it that there is a thread for the watchdog.
    fn prepare(&self) -> Result<Ttl> {
        let resource = self.resource();
        if resource.is_empty() || resource.len() > MAX_RESOURCE {
            let message = format!("a resource name of {} bytes; it must have 1 to {MAX_RESOURCE}", resource.len());
            return Err(Error::new(ErrorKind::Config, message));
        }
        self.check_key_space()?;
        let ttl = self.client.checked_ttl(self.ttl)?;
        if let Some(watchdog) = &self.watchdog {
            watchdog.check(ttl)?;
            self.client.start_watchdog_thread()?;
        }
        Ok(ttl)
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("resource", &self.resource()).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// One call that wants the lock: drives the [`Acquire`] machine by the steps in its module.
struct Acquisition<'m> {
    mutex: &'m Mutex,
    ttl: Ttl,
    patience: WaitLimit,
    called_at: Readings,
    started: Timestamp,
    /// Whether another thread of this client had it before.
    is_handed_on: bool,
}

/// How the wait in the queue ended.
enum Queued {
    FirstInLine,
    /// And why it is not known that the lock is held, if it is not.
    OutOfTime(Option<Unavailability>),
}

impl<'m> Acquisition<'m> {
    fn new(mutex: &'m Mutex, patience: WaitLimit, called_at: Readings) -> Result<Acquisition<'m>> {
        let (ttl, started) = (mutex.prepare()?, called_at.steady);
        Ok(Acquisition { mutex, ttl, patience, called_at, started, is_handed_on: false })
    }

    /// Attempts, undoes, waits, and attempts again, until the machine is done.
    fn drive(&mut self, mut place: Option<QueueTicket<'_>>, wait: &Wait) -> Result<Option<MutexGuard>> {
        let Mutex { client, key, .. } = self.mutex;
        let engine = client.engine();
        let settings = client.settings();
        let terms = AcquireConfig {
            ttl: self.ttl,
            node_timeout: settings.node_timeout,
            patience: self.patience,
            backoff: settings.backoff,
            hopeless_after: settings.unavailable_after,
        };
        let mut machine = Acquire::new(terms, self.started);
        let trouble = place.as_ref().and_then(QueueTicket::trouble);
        if let Some(since) = trouble.and_then(|trouble| trouble.hopeless_since) {
            machine.early_end().was_hopeless(since.max(self.called_at.steady));
        }
        let mut last: Option<(AttemptRecord, RoundResult)> = None;
        let mut vigil: Option<ReleaseWaiter<'_>> = None;
        let mut now = self.called_at;
        let mut is_lost = false;
        let mut round_trips = 1;
        if place.is_some() && machine.may_yield(self.started) && engine.must_yield(key, self.is_handed_on) {
            machine.yields(self.started, entropy::draw_jitter(&mut SysRng).unwrap_or_default());
        }
        loop {
            let output = machine.poll();
            // Told when what it left behind has been undone.
            if is_lost && !matches!(output, Output::Undo(_)) {
                is_lost = false;
                if let Some((_, count)) = &last {
                    client.report().attempt_lost(key, machine.attempts(), &count.tally, &count.faults);
                }
            }
            match output {
                Output::Attempt if wait.is_cancelled() => machine.cancelled(),
                Output::Attempt | Output::Raise(_) => {
                    round_trips = if output == Output::Attempt { 1 } else { 2 };
                    let attempt = match (&output, last.take()) {
                        (Output::Raise(agreement), Some((claim, _))) => {
                            self.raise(&mut machine, claim, agreement, &mut now)
                        }
                        _ if self.mutex.is_fenced => self.attempt_fenced(&mut machine, vigil.as_ref(), &mut now)?,
                        _ => self.attempt(&mut machine, vigil.as_ref(), &mut now)?,
                    };
                    if let Some(place) = &place {
                        if machine.is_held() {
                            place.answered(now.steady);
                        } else if !attempt.1.is_won() {
                            let hopeless_since = machine.early_end().hopeless_since();
                            place.troubled(Unavailability { hopeless_since, ..client.trouble(&attempt.1) });
                        }
                    }
                    is_lost = machine.is_lost();
                    last = Some(attempt);
                }
                Output::Undo(nodes) => {
                    if let Some((claim, _)) = &last {
                        engine.undo(key.as_bytes(), &AttemptRecord { reached: nodes, ..*claim }, self.ttl.duration());
                    }
                }
                Output::Wait(until) => {
                    let Some(place) = &place else { break };
                    let vigil = vigil.get_or_insert_with(|| ReleaseWaiter::begin(engine, place, wait, key));
                    let ended = vigil.wait(until);
                    let now = engine.now();
                    match ended {
                        Ended::Cancelled => machine.cancelled(),
                        Ended::With(Some(WakeReason::Released(turn))) => {
                            machine.released(turn, now, entropy::draw_jitter(&mut SysRng).unwrap_or_default());
                        }
                        // Nothing was missed before.
                        Ended::With(Some(WakeReason::Subscribed)) if machine.attempts() == 0 => {}
                        Ended::With(Some(WakeReason::Subscribed) | None) => machine.woken(now),
                        Ended::With(Some(WakeReason::Rung)) => machine.prompted(now),
                    }
                }
                Output::Done(Verdict::Acquired(lease)) => {
                    vigil.take().into_iter().for_each(ReleaseWaiter::won);
                    let guard = last.map(|(claim, _)| self.guard(claim, lease, place.take(), now));
                    client.report().acquired(
                        key,
                        now.steady.since(self.called_at.steady),
                        (machine.attempts(), round_trips),
                    );
                    return Ok(guard);
                }
                Output::Done(Verdict::Held) => break,
                Output::Done(Verdict::Cancelled) => return Err(self.cancelled()),
                Output::Done(Verdict::NoExpiry) => {
                    return Err(self.no_expiry(last.map_or(NodeSet::EMPTY, |(_, count)| count.endless)));
                }
                Output::Done(Verdict::TooLate) => {
                    return Err(Error::too_late(self.mutex.resource(), self.ttl.duration()));
                }
                Output::Done(Verdict::Unavailable) => {
                    let trouble = last.map(|(_, count)| client.trouble(&count)).unwrap_or_default();
                    return Err(client.unavailable("lock", self.mutex.resource(), trouble));
                }
            }
        }
        Ok(None)
    }

    /// Makes one attempt, and hands the machine what came of it.
    fn attempt(
        &self,
        machine: &mut Acquire,
        vigil: Option<&ReleaseWaiter<'_>>,
        now: &mut Readings,
    ) -> Result<(AttemptRecord, RoundResult)> {
        let (engine, key, token) = (self.mutex.client.engine(), self.mutex.key.as_bytes(), draw()?);
        let (ttl_millis, listener) = (self.ttl.millis(), vigil.map(ReleaseWaiter::listener));
        let deadline = |t0, connects| machine.attempt_deadline(t0, connects);
        let (claim, count) = engine.acquire(key, token, ttl_millis, listener, deadline);
        let jitter = jitter(&count);
        *now = engine.readings();
        if let Some(vigil) = vigil {
            machine.expects(vigil.outlook(&count));
        }
        machine.attempted(claim.t0, &count.tally, claim.reached, *now, jitter);
        Ok((claim, count))
    }

    fn guard(
        &self,
        claim: AttemptRecord,
        lease: Validity,
        place: Option<QueueTicket<'_>>,
        now: Readings,
    ) -> MutexGuard {
        let Mutex { client, key, watchdog, .. } = self.mutex;
        let hold = HoldId::of(&claim.token);
        match place {
            Some(place) => place.hold(hold, lease, now),
            None => client.queues().hold(key, hold, lease, now),
        }
        let watched = watchdog.as_ref().map(|dog| {
            client.watchdog_thread().watch(key, &claim, lease, Some(dog.extension_of(self.ttl, claim.t0.lease, hold)))
        });
        MutexGuard::new(client.clone(), Arc::clone(key), claim, (lease, self.ttl), watched)
    }

    fn cancelled(&self) -> Error {
        Error::new(ErrorKind::Cancelled, format!("the wait for {:?} was cancelled", self.mutex.resource()))
    }

    /// The lock's key has no expiry on these nodes: tells the observer, and gives the error.
    fn no_expiry(&self, nodes: NodeSet) -> Error {
        let Mutex { client, key, .. } = self.mutex;
        client.report().key_without_expiry(key, nodes);
        client.no_expiry(key, nodes)
    }
}

fn draw() -> Result<OwnerToken> {
    entropy::draw(&mut SysRng).map_err(|_| Error::entropy())
}

/// What the machine needs by chance when an attempt is lost.
fn jitter(count: &RoundResult) -> u64 {
    if count.is_won() { 0 } else { entropy::draw_jitter(&mut SysRng).unwrap_or_default() }
}
