//! Automatic extension against release, model-checked: the library's own watchdog thread and guard,
//! on locks and threads that a scheduler controls, in a time that it controls too.
//!
//! The files are compiled here a second time, with shuttle's locks in place of the standard
//! library's, [`time`] in place of the clock and [`engine`](net::engine) in place of the network.
//! What must hold, whatever the scheduler does:
//! 1. Nothing is queued for a lock behind its release, and no key is there when all has been
//!    answered.
//! 2. While a guard relies on its lock, a majority of the nodes has its key, and for at least as
//!    long.
//! 3. A loss is reported at the margin before the end, once, and not after the owner has left.
//! 4. Locks that the nodes extend are never lost, and the thread ends with the client.
//!
//! Faults that were planted in the library to see this test fail, and belong to it: a repair
//! without a look whether the owner has left, or without the lock's state held, or that is not
//! noted; leaving without the schedule, without saying so, or after the release; a loss reported
//! without being taken out of the schedule, or after that is unlocked; a batch sent when the
//! schedule is free, a lease renewed then, an extension by hand announced without it; no margin, no
//! second try, a wait past the end of a lease; each of the three notifications left out; a renewal
//! in the middle of an extension by hand.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "a test, and it uses a part of what it includes"
)]

use quorumlock::{algorithm, fault, protocol};

mod api {
    #[path = "../../../../src/api/client.rs"]
    pub(crate) mod client;
    #[path = "../../../../src/api/forked.rs"]
    pub(crate) mod forked;
    #[path = "../../../../src/api/held_lock/mod.rs"]
    pub(crate) mod held_lock;
    pub(crate) mod lease;
    #[path = "../../../../src/api/settings.rs"]
    pub(crate) mod settings;
    pub(crate) mod shutdown;
    #[path = "../../../../src/api/watchdog.rs"]
    pub(crate) mod watchdog;
}

mod engine {
    pub(crate) mod calls;
    #[path = "../../../../src/engine/driver/mod.rs"]
    pub(crate) mod driver;
    pub(crate) mod local_queue;
    pub(crate) mod nodes;
    #[path = "../../../../src/engine/rounds/mod.rs"]
    pub(crate) mod rounds;
    #[path = "../../../../src/engine/swept_table.rs"]
    pub(crate) mod swept_table;
    #[path = "../../../../src/engine/watchdog_thread/mod.rs"]
    pub(crate) mod watchdog_thread;
}

#[path = "../../../src/events/mod.rs"]
mod events;

mod os {
    #[path = "../../../../src/os/caught.rs"]
    pub(crate) mod caught;
    #[path = "../../../../src/os/fork.rs"]
    pub(crate) mod fork;
    #[path = "../../../../src/os/occupancy.rs"]
    pub(crate) mod occupancy;
    pub(crate) mod sync;
    #[path = "../../../../src/os/thread_number.rs"]
    pub(crate) mod thread_number;
}

mod time;

use algorithm::backoff::Backoff;
use algorithm::lease::{MAX_TTL, OwnerToken, Ttl};
use algorithm::node::NodeSet;
use algorithm::time::Timestamp;
use api::client::Client;
use api::held_lock::HeldLock;
use api::settings::Settings;
use api::watchdog::Watchdog;
use engine::calls::{Engine, NODE_TIMEOUT, NODES, Network};
use engine::local_queue::{HoldId, LocalLock};
use engine::watchdog_thread::WatchedLock;
use events::names::Names;
use events::report::Reporter;
use events::spans::HoldSpan;
use os::fork::ForkEpoch;
use protocol::lock_key::LockKey;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::JoinHandle;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ALL: NodeSet = NodeSet::first(NODES);
const TTL: Duration = Duration::from_millis(300);
const PERIOD: Duration = Duration::from_millis(100);
const MARGIN: Duration = Duration::from_millis(40);
/// More than the time that passes by reading the clock.
const NOISE: Duration = Duration::from_micros(1);

/// A client and its nodes, and a thread that checks the rules and lets time pass.
struct Scene {
    pace_of_owners: Pace,
    stage: Arc<Stage>,
    client: Client,
    nodes: Vec<JoinHandle<()>>,
    observer: JoinHandle<()>,
    owners: Vec<JoinHandle<()>>,
}

struct Stage {
    network: Arc<Network>,
    /// Never held where threads change places.
    locks: Mutex<Vec<Arc<Lock>>>,
    /// At most one node of three forgets a key.
    keys_stay: bool,
    is_over: AtomicBool,
}

/// A lock as the observer sees it.
struct Lock {
    name: String,
    token: OwnerToken,
    margin: Duration,
    watched: Arc<WatchedLock>,
}

/// How fast nodes and owners are.
#[derive(Clone, Copy)]
enum Pace {
    /// As slow as the scheduler wants.
    Any,
    /// They answer, and take and release, before time goes on.
    Punctual,
}

impl Pace {
    fn spawn(self, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        match self {
            Pace::Any => shuttle::thread::spawn(body),
            Pace::Punctual => time::spawn("punctual", body).unwrap(),
        }
    }
}

impl Scene {
    fn new(pace_of_nodes: Pace, pace_of_owners: Pace, keys_stay: bool) -> Scene {
        time::begin();
        let network = Network::new();
        let names = [0; NODES].map(|node| node.to_string());
        let settings = Settings {
            node_timeout: NODE_TIMEOUT,
            retry_min: Duration::from_millis(1),
            retry_max: Duration::from_millis(2),
            unavailable_after: TTL,
            max_ttl: MAX_TTL,
            ttl: Some(TTL),
            place_lease: TTL,
            ..Settings::default()
        };
        let client = Client::new(
            Engine::new(&network),
            settings,
            Arc::new(Names::new(&names, "")),
            Vec::new(),
            Reporter::new(Vec::new(), None, &Arc::default()),
            ForkEpoch::current().unwrap(),
        );
        let is_over = AtomicBool::new(false);
        let stage = Arc::new(Stage {
            network,
            locks: Mutex::default(),
            keys_stay,
            is_over,
        });
        let serve = |node| {
            let network = Arc::clone(&stage.network);
            pace_of_nodes.spawn(move || network.serve(node))
        };
        let nodes = (0..NODES).map(serve).collect();
        let observer = {
            let stage = Arc::clone(&stage);
            shuttle::thread::spawn(move || stage.observe())
        };
        Scene {
            pace_of_owners,
            stage,
            client,
            nodes,
            observer,
            owners: Vec::new(),
        }
    }

    /// A thread that takes a lock on these nodes and does something with it.
    fn owner(
        &mut self,
        nodes: NodeSet,
        watchdog: Option<Watchdog>,
        act: impl FnOnce(&Stage, &Lock, HeldLock) + Send + 'static,
    ) {
        let stage = Arc::clone(&self.stage);
        let client = self.client.clone();
        let number = self.owners.len() as u8;
        self.owners.push(self.pace_of_owners.spawn(move || {
            let name = format!("lock {number}");
            let ttl = Ttl::new(TTL, 0.01, MAX_TTL).unwrap();
            client.start_watchdog_thread().unwrap();
            // An attempt takes less time than a lock lasts.
            let still = time::stand_still();
            let token = OwnerToken::from_entropy([number; 20]);
            let claim = stage.network.take(&name, token.clone(), ttl, nodes);
            let local = LocalLock::alone(&LockKey::One(name.as_str().into()));
            let lease = ttl.lease_from(claim.t0.lease);
            let extension = watchdog
                .as_ref()
                .map(|watchdog| watchdog.extension_of(ttl, claim.t0.lease, HoldId));
            let watched = client
                .watchdog_thread
                .watch(&local, &claim, lease, extension, true);
            stage.network.listen(&name, watched.lost());
            let margin = watchdog.map_or(Duration::ZERO, |watchdog| watchdog.margin_for(ttl));
            let lock = Arc::new(Lock {
                name,
                token,
                margin,
                watched: Arc::clone(&watched),
            });
            stage.locks.lock().unwrap().push(Arc::clone(&lock));
            let guard = HeldLock::new(client.clone(), local, claim, lease, ttl, HoldSpan::NONE)
                .watched(Some(watched));
            drop((still, client));
            act(&stage, &lock, guard);
        }));
    }

    /// Waits for the owners, and checks what remains. Time stops from then on: all due
    /// notifications were made.
    fn end(self) {
        let Scene {
            stage,
            client,
            nodes,
            observer,
            owners,
            ..
        } = self;
        owners.into_iter().for_each(|owner| owner.join().unwrap());
        stage.is_over.store(true, Ordering::Relaxed);
        observer.join().unwrap();
        (0..NODES).for_each(|node| stage.network.hang(node, false));
        drop(client);
        stage.network.close();
        nodes.into_iter().for_each(|node| node.join().unwrap());
        stage
            .locks
            .lock()
            .unwrap()
            .iter()
            .for_each(|lock| _ = stage.network.is_lost(&lock.name));
        assert_eq!(stage.network.come_back(), 0, "a key came back");
        REPAIRS.fetch_add(stage.network.repairs(), Ordering::Relaxed);
    }
}

impl Stage {
    fn observe(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let locks = self.locks.lock().unwrap().clone();
            for lock in &locks {
                self.network.is_lost(&lock.name);
                self.check_reported_in_time(lock);
                if self.keys_stay {
                    self.check_held(lock);
                }
            }
            time::tick();
        }
    }

    fn check_reported_in_time(&self, lock: &Lock) {
        let was_quiet = time::is_quiet();
        let end = lock.watched.lease().end().before(lock.margin).after(NOISE);
        let is_late = time::lease_now() >= end && !lock.watched.is_over();
        // No thread has been woken meanwhile that might be about to report it.
        assert!(
            !(was_quiet && is_late && time::is_quiet()),
            "{}: {end:?} is over, and no loss was reported",
            lock.name
        );
    }

    fn check_held(&self, lock: &Lock) {
        let is_relied_on =
            || !lock.watched.is_over() && lock.watched.lease().is_valid(time::lease_now());
        let lease = lock.watched.lease();
        let lasting = self
            .network
            .count_lasting(&lock.name, &lock.token, lease.end());
        let still = is_relied_on() && lock.watched.lease() == lease;
        assert!(
            lasting > NODES / 2 || !still,
            "{}: {lease:?} counts, and {lasting} keys last so long",
            lock.name
        );
    }

    fn wait_for_loss(&self, lock: &Lock) {
        for _ in 0..100 {
            if self.network.is_lost(&lock.name) {
                return;
            }
            time::sleep_until(time::now().after(Duration::from_millis(10)));
        }
        panic!("{}: never reported", lock.name);
    }
}

/// How many repairs there were in all runs: a test without any shows nothing.
static REPAIRS: AtomicUsize = AtomicUsize::new(0);

fn watchdog() -> Option<Watchdog> {
    Some(Watchdog::new().period(PERIOD).notify_before(MARGIN))
}

/// A moment at which much happens: the start, a renewal, or the end of a lease.
fn any_moment() -> Timestamp {
    let moments = [0, 100, 100, 200, 255];
    Timestamp::ORIGIN.after(Duration::from_millis(
        moments[thread_rng().gen_range(0..moments.len())],
    ))
}

fn any_node() -> usize {
    thread_rng().gen_range(0..NODES)
}

/// Releases a lock in one of three ways, whatever the outcome.
fn release(stage: &Stage, lock: &Lock, guard: HeldLock) {
    match thread_rng().gen_range(0..3) {
        0 => drop(guard),
        1 => drop(guard.detach().unwrap()),
        _ => drop(guard.unlock(|| ())),
    }
    stage.network.has_left(&lock.name);
}

/// Runs a scene `QUORUMLOCK_TEST_SCHEDULES` times, in orders that are drawn in two ways.
fn check(scene: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("QUORUMLOCK_TEST_SCHEDULES")
        .map_or(SCHEDULES, |number| number.parse().unwrap());
    let scene = Arc::new(scene);
    let again = Arc::clone(&scene);
    shuttle::check_random(move || scene(), schedules);
    shuttle::check_pct(move || again(), schedules, 3);
}

const SCHEDULES: usize = if cfg!(debug_assertions) { 500 } else { 5000 };

#[test]
fn nothing_follows_a_release_that_races_extensions_and_repairs() {
    check(|| {
        let mut scene = Scene::new(Pace::Any, Pace::Any, true);
        // One was never taken on the third node, the other is forgotten by one.
        scene.owner(NodeSet::first(2), watchdog(), |stage, lock, guard| {
            time::sleep_until(any_moment());
            release(stage, lock, guard);
        });
        scene.owner(ALL, watchdog(), |stage, lock, guard| {
            stage.network.forget([any_node()], &lock.name);
            time::sleep_until(any_moment());
            release(stage, lock, guard);
        });
        scene.end();
    });
    assert!(REPAIRS.load(Ordering::Relaxed) > 0, "nothing was shown");
}

#[test]
fn extensions_by_hand_and_by_the_thread_agree_with_the_nodes() {
    check(|| {
        let mut scene = Scene::new(Pace::Any, Pace::Punctual, true);
        let watchdog = if thread_rng().gen_bool(0.8) {
            watchdog()
        } else {
            None
        };
        scene.owner(ALL, watchdog, |stage, lock, guard| {
            stage.network.forget([any_node()], &lock.name);
            for moment in [any_moment(), any_moment()] {
                time::sleep_until(moment);
                let ttl = [200, 300, 500][thread_rng().gen_range(0..3)];
                let _ = guard.extend(Duration::from_millis(ttl)).unwrap();
            }
            time::sleep_until(any_moment());
            release(stage, lock, guard);
        });
        scene.end();
    });
}

#[test]
fn a_loss_is_reported_once_and_in_time_when_nodes_hang() {
    check(|| {
        let mut scene = Scene::new(Pace::Any, Pace::Any, true);
        let hung = thread_rng().gen_range(2..=NODES);
        for waits in [true, false] {
            scene.owner(ALL, watchdog(), move |stage, lock, guard| {
                time::sleep_until(any_moment());
                (0..hung).for_each(|node| stage.network.hang(node, true));
                if waits {
                    stage.wait_for_loss(lock);
                } else {
                    time::sleep_until(any_moment());
                }
                release(stage, lock, guard);
            });
        }
        scene.end();
    });
}

#[test]
fn a_loss_is_reported_once_when_nodes_have_lost_the_key() {
    check(|| {
        let mut scene = Scene::new(Pace::Any, Pace::Any, false);
        for waits in [true, false] {
            scene.owner(ALL, watchdog(), move |stage, lock, guard| {
                // All of them: of two, one could be repaired because the other has answered
                // before.
                stage.network.forget(0..NODES, &lock.name);
                time::sleep_until(any_moment());
                if thread_rng().gen_bool(0.3) {
                    let _ = guard.extend(TTL).unwrap();
                }
                if waits {
                    stage.wait_for_loss(lock);
                }
                release(stage, lock, guard);
            });
        }
        scene.end();
    });
}

#[test]
fn locks_that_nodes_extend_are_never_lost() {
    check(|| {
        let mut scene = Scene::new(Pace::Punctual, Pace::Punctual, true);
        let hangs = thread_rng().gen_bool(0.5);
        for number in 0..2 {
            scene.owner(ALL, watchdog(), move |stage, lock, guard| {
                stage.network.forget([number], &lock.name);
                time::sleep_until(Timestamp::ORIGIN.after(PERIOD - MARGIN));
                // Too few answer the first try. There is time for others.
                (0..2).for_each(|node| stage.network.hang(node, hangs));
                time::sleep_until(Timestamp::ORIGIN.after(PERIOD * 2));
                (0..2).for_each(|node| stage.network.hang(node, false));
                time::sleep_until(Timestamp::ORIGIN.after(TTL * 3));
                assert!(!stage.network.is_lost(&lock.name), "{} was lost", lock.name);
                release(stage, lock, guard);
            });
        }
        scene.end();
    });
}
