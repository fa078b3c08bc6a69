//! What becomes of locks when the machine sleeps, or its clock is set.
//!
//! The clock under test is the library's own, over readings of the system's clocks that a test puts
//! off by what it likes: [`Jump`]. The nodes' clocks know nothing of that, so that their keys stay:
//! what ends a lock here is its own lease.

use crate::algorithm::time::{Clock, LeaseTime, Timestamp};
use crate::embedded::EmbeddedNode;
use crate::embedded::tests::request;
use crate::os::clock::{LeaseClock, source};
use crate::os::sync::lock as take_mutex;
use crate::{ErrorKind, ExtendOutcome, Mutex, MutexGuard, Redlock, ReleaseOutcome, Watchdog};
use crossbeam_channel::{RecvTimeoutError, TryRecvError, bounded};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(60);
const LONGER: Duration = Duration::from_secs(600);
/// How late a thread may look up that sleeps for a second at most: much less than the locks last.
const NEXT_LOOK: Duration = Duration::from_secs(8);

/// What can happen to the clocks.
#[derive(Clone, Copy, Debug)]
enum Jump {
    /// The machine slept, and both clocks know.
    Suspend,
    /// The machine slept, and the wall clock was set back meanwhile.
    SuspendUnnoticed,
    /// The wall clock was set forward; or the machine slept, where no other clock counts that.
    WallForward,
}

const JUMPS: [Jump; 3] = [Jump::Suspend, Jump::SuspendUnnoticed, Jump::WallForward];

/// A clock of locks whose readings can be put off.
struct Simulated {
    clock: LeaseClock,
    /// By how much, in nanoseconds: the steady clock, the wall clock.
    offsets: std::sync::Mutex<(u64, i64)>,
}

impl Simulated {
    fn new() -> Arc<Simulated> {
        Arc::new(Simulated {
            clock: LeaseClock::new(),
            offsets: Default::default(),
        })
    }

    fn jump(&self, jump: Jump, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap();
        let mut offsets = take_mutex(&self.offsets);
        match jump {
            Jump::Suspend => *offsets = (offsets.0 + nanos, offsets.1 + nanos as i64),
            Jump::SuspendUnnoticed => offsets.0 += nanos,
            Jump::WallForward => offsets.1 += nanos as i64,
        }
    }

    fn set_back(&self, by: Duration) {
        take_mutex(&self.offsets).1 -= i64::try_from(by.as_nanos()).unwrap();
    }
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(source::steady() + take_mutex(&self.offsets).0)
    }

    fn lease_now(&self) -> LeaseTime {
        let now = self.clock.advance(|| {
            let offsets = take_mutex(&self.offsets);
            let (steady, wall) = source::read();
            (steady + offsets.0, wall + offsets.1)
        });
        now.lease
    }
}

/// Some nodes, and a client with a clock of its own.
struct Scene {
    nodes: Vec<EmbeddedNode>,
    clock: Arc<Simulated>,
    client: Redlock,
}

impl Scene {
    fn new() -> Scene {
        Scene::of(3)
    }

    fn of(nodes: usize) -> Scene {
        let nodes: Vec<_> = (0..nodes).map(|_| EmbeddedNode::start().unwrap()).collect();
        let clock = Simulated::new();
        let builder = Redlock::builder()
            .nodes(nodes.iter().map(EmbeddedNode::url))
            .node_timeout(TTL)
            .max_ttl(LONGER);
        let client = builder
            .build_on(Arc::clone(&clock) as Arc<dyn Clock>)
            .unwrap();
        Scene {
            nodes,
            clock,
            client,
        }
    }

    fn mutex(&self) -> Mutex {
        self.client.mutex("k").ttl(TTL)
    }

    fn take(&self) -> MutexGuard {
        taken(&self.mutex())
    }

    fn take_watched(&self) -> MutexGuard {
        taken(&self.mutex().watchdog(Watchdog::new()))
    }

    /// What each node answers to a command, in raw form.
    fn ask(&self, command: &str) -> Vec<String> {
        let ask = |node: &EmbeddedNode| {
            let mut stream = TcpStream::connect(node.shared.address).unwrap();
            stream.write_all(&request(command)).unwrap();
            let mut answer = [0; 64];
            let length = stream.read(&mut answer).unwrap();
            String::from_utf8_lossy(&answer[..length])
                .trim_end()
                .to_owned()
        };
        self.nodes.iter().map(ask).collect()
    }

    /// Sees that the guard's lease has ended for good, though every node has its key, and nothing
    /// is sent for it but its release.
    fn is_over(&self, guard: MutexGuard, case: Jump) {
        assert_eq!(guard.remaining(), Duration::ZERO, "{case:?}");
        assert_eq!(
            guard.extend(LONGER).unwrap(),
            ExtendOutcome::Lost,
            "{case:?}"
        );
        assert_eq!(guard.remaining(), Duration::ZERO, "{case:?}");
        // Another lock goes behind whatever was sent.
        let other = taken(&self.client.mutex("other"));
        for left in self.ask("PTTL k") {
            let millis = left.strip_prefix(':').unwrap().parse().unwrap();
            let is_extended = Duration::from_millis(millis) > TTL;
            assert!(!is_extended, "{case:?}: extended to {left}");
        }
        drop(other);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired, "{case:?}");
        assert!(eventually(|| self.ask("PTTL k") == [":-2"; 3]), "{case:?}");
    }
}

fn taken(mutex: &Mutex) -> MutexGuard {
    mutex.try_lock().unwrap().expect("it is free")
}

fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + NEXT_LOOK;
    while !condition() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    condition()
}

#[test]
fn a_lease_ends_with_a_jump_past_its_end() {
    for jump in JUMPS {
        let scene = Scene::new();
        let guard = scene.take();
        assert!(guard.remaining() > TTL / 2);
        scene.clock.jump(jump, TTL);
        scene.is_over(guard, jump);
    }
}

#[test]
fn a_lease_is_shorter_by_a_jump_within_it() {
    for jump in JUMPS {
        let scene = Scene::new();
        let guard = scene.take();
        scene.clock.jump(jump, TTL / 2);
        assert!(
            (TTL / 4..TTL / 2).contains(&guard.remaining()),
            "{jump:?}: {guard:?}"
        );
        assert_eq!(
            guard.extend(TTL).unwrap(),
            ExtendOutcome::Extended,
            "{jump:?}"
        );
        assert!(guard.remaining() > TTL / 2, "{jump:?}: {guard:?}");
        assert_eq!(
            guard.unlock().unwrap(),
            ReleaseOutcome::Released,
            "{jump:?}"
        );
    }
}

#[test]
fn a_wall_clock_set_back_neither_prolongs_a_lease_nor_stops_it() {
    let scene = Scene::new();
    let guard = scene.take();
    for back in [TTL, LONGER, Duration::from_secs(365 * 24 * 60 * 60)] {
        let before = guard.remaining();
        scene.clock.set_back(back);
        let after = guard.remaining();
        assert!(
            after <= before && after > TTL / 2,
            "{before:?}, {after:?} when set back by {back:?}"
        );
        let goes_on = || {
            let after = guard.remaining();
            let pause = Duration::from_millis(30);
            thread::sleep(pause);
            // A millisecond is the noise of reading two clocks, unless the thread is held up
            // between the two.
            guard.remaining() <= after - pause + Duration::from_millis(1)
        };
        assert!((0..10).any(|_| goes_on()), "it stands still at {after:?}");
    }
    assert!(guard.remaining() > TTL / 2);
    // Set right again, it is ahead: that counts, because nothing contradicts it.
    scene.clock.jump(Jump::WallForward, TTL);
    scene.is_over(guard, Jump::WallForward);
}

#[test]
fn a_watched_lock_is_lost_at_the_next_look_though_the_thread_slept() {
    for jump in JUMPS {
        let scene = Scene::new();
        let guard = scene.take_watched();
        let lost = guard.lost().unwrap();
        // Its thread has gone to sleep by now, until a third of the time has passed.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(lost.try_recv(), Err(TryRecvError::Empty));
        scene.clock.jump(jump, TTL);
        assert_eq!(guard.remaining(), Duration::ZERO, "{jump:?}");
        assert_eq!(lost.recv_timeout(NEXT_LOOK), Ok(()), "{jump:?}");
        scene.is_over(guard, jump);
        assert_eq!(
            lost.recv_timeout(NEXT_LOOK),
            Err(RecvTimeoutError::Disconnected),
            "{jump:?}"
        );
    }
}

#[test]
fn a_watched_lock_is_extended_at_the_next_look_when_it_is_due() {
    for jump in JUMPS {
        let scene = Scene::new();
        let guard = scene.take_watched();
        thread::sleep(Duration::from_millis(20));
        scene.clock.jump(jump, TTL / 2);
        assert!(
            eventually(|| guard.remaining() > TTL / 2),
            "{jump:?}: {guard:?}"
        );
        assert_eq!(
            guard.lost().unwrap().try_recv(),
            Err(TryRecvError::Empty),
            "{jump:?}"
        );
        assert_eq!(
            guard.unlock().unwrap(),
            ReleaseOutcome::Released,
            "{jump:?}"
        );
    }
}

/// The answers come after a sleep that was longer than the lock: it is no lock any more, and is
/// undone.
#[test]
fn a_lock_that_was_granted_before_a_jump_is_not_handed_out_after_it() {
    for (jump, nodes) in JUMPS.into_iter().flat_map(|jump| [(jump, 1), (jump, 3)]) {
        let scene = Scene::of(nodes);
        let _ = scene.take().unlock().unwrap();
        scene.nodes.iter().for_each(EmbeddedNode::hang);
        let ttl = TTL / 2;
        thread::scope(|scope| {
            let attempt = scope.spawn(|| scene.mutex().ttl(ttl).try_lock());
            // Sent by now. If it is not, the test shows less.
            thread::sleep(Duration::from_millis(50));
            scene.clock.jump(jump, ttl);
            scene.nodes.iter().for_each(EmbeddedNode::resume);
            let error = attempt
                .join()
                .unwrap()
                .expect_err("it had ended before it was granted");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{jump:?}");
            // One answer is a quorum of one node. Of three nodes, the first is read, and the others
            // may be late.
            let is_too_late = error.to_string().contains("only after the lease had ended");
            assert!(is_too_late || nodes > 1, "{jump:?}: {error}");
        });
        assert!(
            eventually(|| scene.ask("PTTL k").iter().all(|answer| answer == ":-2")),
            "{jump:?}"
        );
        let _ = scene.take().unlock().unwrap();
    }
}

#[test]
fn threads_that_wait_go_by_the_clock_when_it_has_jumped() {
    for jump in JUMPS {
        // A wall clock set forward ends the lease, and no wait.
        let is_out_of_time = !matches!(jump, Jump::WallForward);
        let expected = [Ok((TTL / 2, !is_out_of_time)), Ok((LONGER, true))];
        // On a busy machine a thread may not wait yet when the clock jumps. One scene in which both
        // do is enough.
        let mut seen = Vec::new();
        let is_expected = |_| {
            seen.push(jump_while_two_wait(jump));
            seen.last() == Some(&expected)
        };
        assert!((0..5).any(is_expected), "{jump:?}: {seen:?}");
    }
}

/// What becomes of two threads that wait for a lock when the clock jumps and the lock is gone: the
/// time that each was to wait, and whether it got the lock.
fn jump_while_two_wait(jump: Jump) -> [Result<(Duration, bool), RecvTimeoutError>; 2] {
    let scene = Scene::new();
    let guard = scene.take();
    let mutex = scene.mutex();
    let (sender, results) = bounded(2);
    thread::scope(|scope| {
        // One waits for less time than the clock jumps by, and one for more.
        for timeout in [TTL / 2, LONGER] {
            let mutex = &mutex;
            let sender = sender.clone();
            scope.spawn(move || {
                sender
                    .send((timeout, mutex.lock_timeout(timeout).unwrap().is_some()))
                    .unwrap()
            });
            thread::sleep(Duration::from_millis(20));
        }
        scene.clock.jump(jump, TTL);
        // The nodes have slept too, this once.
        assert_eq!(scene.ask("DEL k"), [":1"; 3]);
        let mut seen = [
            results.recv_timeout(NEXT_LOOK),
            results.recv_timeout(NEXT_LOOK),
        ];
        // Whatever came of it, no thread waits on.
        drop(guard);
        seen.sort_by_key(|result| result.map_or(Duration::MAX, |(timeout, _)| timeout));
        seen
    })
}

/// What a restarted node has forgotten does not end sooner because the clock of one client is set.
#[test]
fn a_quarantine_ends_by_the_clock_that_nobody_can_set() {
    for (jump, is_over) in [
        (Jump::WallForward, false),
        (Jump::SuspendUnnoticed, true),
        (Jump::Suspend, true),
    ] {
        let scene = Scene::of(1);
        let attempt = || scene.mutex().try_lock().map(|guard| guard.is_some());
        assert!(attempt().unwrap());
        scene.nodes[0].kill();
        scene.nodes[0].revive().unwrap();
        let quarantined =
            || attempt().is_err_and(|error| error.causes()[0].cause() == crate::Cause::Quarantined);
        assert!(eventually(quarantined), "{jump:?}");
        scene.clock.jump(jump, LONGER + TTL);
        if is_over {
            // What was under way when it jumped seems overdue.
            assert!(eventually(|| matches!(attempt(), Ok(true))), "{jump:?}");
        } else {
            assert!(
                eventually(quarantined) && !matches!(attempt(), Ok(true)),
                "{jump:?}"
            );
        }
    }
}

/// A lock of another client, whose clock nothing is done to, is waited for as long as was set: by
/// the first of this process's queue, which asks the nodes, and by those behind it. The nodes have
/// their time to answer too.
#[test]
fn a_wall_clock_set_forward_ends_no_wait() {
    const PATIENCE: Duration = Duration::from_millis(1500);
    let scene = Scene::new();
    let other = Redlock::builder()
        .nodes(scene.nodes.iter().map(EmbeddedNode::url))
        .node_timeout(TTL)
        .build()
        .unwrap();
    let _ = scene.take().unlock().unwrap();
    let held = taken(&other.mutex("k").ttl(TTL));
    thread::scope(|scope| {
        let wait = || {
            let begun = Instant::now();
            let outcome = scene.mutex().lock_timeout(PATIENCE);
            (
                outcome
                    .map(|guard| guard.is_some())
                    .map_err(|error| error.to_string()),
                begun.elapsed(),
            )
        };
        let waits = [scope.spawn(wait), scope.spawn(wait)];
        for _ in 0..3 {
            thread::sleep(PATIENCE / 10);
            scene.clock.jump(Jump::WallForward, LONGER);
        }
        for wait in waits {
            let (outcome, took) = wait.join().unwrap();
            // On a busy machine nodes may not have answered either.
            assert!(
                outcome != Ok(true) && took >= PATIENCE,
                "{outcome:?} after {took:?}"
            );
        }
    });
    drop(held);
}

/// A connection that is merely closed leaves the node with what was sent on it.
#[test]
fn a_connection_that_is_silent_for_too_long_is_reset() {
    let nodes: Vec<_> = (0..2).map(|_| EmbeddedNode::start().unwrap()).collect();
    // It accepts, and sends nothing.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let urls = nodes
        .iter()
        .map(EmbeddedNode::url)
        .chain([format!("redis://{}", hung.local_addr().unwrap())]);
    let clock = Simulated::new();
    let builder = Redlock::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(5));
    let client = builder
        .build_on(Arc::clone(&clock) as Arc<dyn Clock>)
        .unwrap();
    let pair = || {
        assert_eq!(
            client.mutex("k").lock().unwrap().unlock().unwrap(),
            ReleaseOutcome::Released
        )
    };
    pair();
    let (mut first, _) = hung.accept().unwrap();
    hung.set_nonblocking(true).unwrap();
    // Nodes that remember nothing are judged when the hung one has been waited for: that took 2.5
    // s.
    clock.jump(Jump::Suspend, Duration::from_secs(20));
    pair();
    first
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let read =
        |stream: &mut TcpStream| io::copy(stream, &mut io::sink()).map_err(|error| error.kind());
    assert_eq!(
        read(&mut first),
        Err(io::ErrorKind::WouldBlock),
        "given up after less than 30 s"
    );
    clock.jump(Jump::Suspend, Duration::from_secs(11));
    pair();
    first.set_read_timeout(Some(NEXT_LOOK)).unwrap();
    assert_eq!(read(&mut first), Err(io::ErrorKind::ConnectionReset));
}
