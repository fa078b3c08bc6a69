//! Spans of waits and holds, by the crate `tracing`: which there are, whose children they are, what
//! their fields are, and when they close.

mod subscriber;

use crate::prelude::*;
use subscriber::{Shown, Spans};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, info_span};

const WAIT: &str = "quorumlock.wait";
const HOLD: &str = "quorumlock.hold";
/// A time to live that a test lets pass.
const SHORT_TTL: Duration = Duration::from_millis(100);

/// Fields and their values, in order.
fn fields(span: &Shown) -> Vec<(&str, &str)> {
    let fields = span.fields.iter();
    fields
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// The outcome of the last hold, which has closed.
#[track_caller]
fn ended(spans: &Spans) -> String {
    let hold = spans.last(HOLD);
    assert!(hold.is_closed(), "{hold:?}");
    hold.field("outcome").to_owned()
}

/// Takes a lock and releases it within a span of the caller's. Both spans are that one's children,
/// and the second follows from the first.
#[track_caller]
fn is_shown<K: Kind>(
    mutex: &Mutex<K>,
    kind: &str,
    held_name: &str,
    fence: impl FnOnce(&MutexGuard<K>) -> Option<i64>,
) {
    let (spans, _subscribed) = Spans::subscribed();
    let caller = info_span!("caller");
    let fence = caller.in_scope(|| {
        let guard = take(mutex);
        let fence = fence(&guard).map(|fence| fence.to_string());
        let [wait] = spans.all(WAIT);
        let [hold] = spans.all(HOLD);
        assert!(wait.is_closed() && !hold.is_closed(), "{wait:?} {hold:?}");
        unlock(guard);
        fence
    });
    let [wait, hold] = [spans.last(WAIT), spans.last(HOLD)];
    assert_eq!(
        fields(&wait),
        [
            ("attempts", "1"),
            ("lock.kind", kind),
            ("lock.name", mutex.name()),
            ("outcome", "acquired")
        ]
    );
    let mut expected = vec![
        ("lock.kind", kind),
        ("lock.name", held_name),
        ("outcome", "released"),
    ];
    if let Some(fence) = &fence {
        expected.insert(0, ("fence", fence.as_str()));
    }
    assert_eq!(fields(&hold), expected);
    let caller = caller.id().map(|id| id.into_u64());
    assert!(wait.parent == caller && hold.parent == caller);
    assert_eq!(hold.follows, [wait.number]);
    assert!(hold.is_closed() && wait.follows.is_empty());
    assert_eq!([wait.target, hold.target], ["quorumlock::lock"; 2]);
}

#[test]
fn each_kind_has_a_span_of_its_wait_and_one_of_its_hold() {
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).prefix("p:").build().unwrap();
    is_shown(&client.mutex("k"), "plain", "k", |_| None);
    is_shown(&client.mutex("k").fair(), "plain", "k", |_| None);
    is_shown(&client.mutex("k").reentrant(), "plain", "k", |_| None);
    is_shown(&client.mutex("k").fenced(), "fenced", "k", |guard| {
        Some(i64::from(guard.fence()))
    });
    is_shown(&client.read_mutex("rw"), "read", "rw", |_| None);
    is_shown(&client.write_mutex("rw"), "write", "rw", |_| None);
    is_shown(&client.write_mutex("f").fenced(), "write", "f", |guard| {
        Some(i64::from(guard.fence()))
    });
    is_shown(&client.mutex_set(["b", "a"]), "set", "a, b", |_| None);
    is_shown(&client.semaphore("s", 1), "permit", "s#0", |_| None);
}

/// A call that must end without the lock, and leave no span of a hold.
#[track_caller]
fn is_without<T>(outcome: &str, attempts: Option<&str>, call: impl FnOnce() -> T) {
    let (spans, _subscribed) = Spans::subscribed();
    call();
    let [wait] = spans.all(WAIT);
    assert_eq!(wait.field("outcome"), outcome, "{wait:?}");
    assert!(wait.is_closed() && spans.named(HOLD).is_empty());
    assert!(attempts.is_none_or(|attempts| wait.field("attempts") == attempts));
}

#[test]
fn a_call_without_the_lock_shows_why() {
    let (mut servers, client) = deployment(3);
    let mutex = long_lock(&client, "k");
    let _held = take(&mutex);
    is_without("held", Some("1"), || is_held(&mutex));
    is_without("timed_out", None, || {
        assert!(is_held_for(&mutex, Duration::from_millis(20)));
    });
    let handle = CancelHandle::new();
    handle.cancel();
    let wait = Wait::unlimited().cancelled_by(&handle);
    is_without("cancelled", None, || mutex.lock_with(&wait).unwrap_err());
    let unusable = LONG_TTL * 9;
    is_without("failed", Some("0"), || {
        mutex.clone().ttl(unusable).lock().unwrap_err()
    });
    is_without("failed", Some("0"), || {
        client.read_mutex("rw").ttl(unusable).lock().unwrap_err()
    });
    servers[1].kill();
    servers[2].kill();
    is_without("unavailable", Some("1"), || {
        client.mutex("free").try_lock().unwrap_err()
    });
}

#[test]
fn a_call_that_waits_shows_how_often_it_asked() {
    let servers = Server::several(3).unwrap();
    let held = take(&long_lock(&client(&servers), "k"));
    let (spans, _subscribed) = Spans::subscribed();
    let waiting = thread::spawn({
        let (client, spans) = (client(&servers), spans.clone());
        move || {
            let _subscribed = spans.subscribe();
            long_lock(&client, "k").lock().unwrap().unlock().unwrap()
        }
    });
    assert_soon!(!spans.named(WAIT).is_empty());
    thread::sleep(Duration::from_millis(50));
    let wait = spans.last(WAIT);
    assert!(!wait.is_closed() && wait.field("outcome").is_empty());
    drop(held);
    assert_eq!(waiting.join().unwrap(), ReleaseOutcome::Released);
    let [wait, hold] = [spans.last(WAIT), spans.last(HOLD)];
    assert_eq!(wait.field("outcome"), "acquired");
    assert!(wait.field("attempts").parse::<u32>().unwrap() > 1);
    assert_eq!((hold.follows, hold.parent), (vec![wait.number], None));
}

#[test]
fn the_outcome_of_a_hold_is_shown() {
    let (mut servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let mutex = long_lock(&client, "k");
    drop(take(&mutex));
    assert_eq!(ended(&spans), "dropped");

    let short = client.mutex("k").ttl(SHORT_TTL);
    let guard = wait_for(&short);
    thread::sleep(SHORT_TTL);
    assert!(!spans.last(HOLD).is_closed(), "nothing watches the lock");
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    assert_eq!(ended(&spans), "expired");
    let guard = wait_for(&short);
    thread::sleep(SHORT_TTL);
    drop(guard);
    assert_eq!(ended(&spans), "expired");

    let guard = take(&mutex);
    ask_each(&servers, &["DEL", "k"]);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    assert_eq!(ended(&spans), "expired");

    let guard = take(&mutex);
    servers[0].kill();
    servers[1].kill();
    assert_eq!(guard.unlock().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ended(&spans), "unconfirmed");
}

#[test]
fn a_hold_ends_where_its_loss_is_found() {
    let (servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let is_lost = || {
        let is_closed = || spans.last(HOLD).is_closed();
        eventually(SOON, is_closed) && ended(&spans) == "lost"
    };

    // By an extension.
    let guard = take(&long_lock(&client, "k"));
    ask_each(&servers, &["DEL", "k"]);
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
    assert!(is_lost());
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    assert!(is_lost(), "as before");

    // By a watchdog.
    let watched = client
        .mutex("k")
        .ttl(SHORT_TTL * 3)
        .watchdog(Watchdog::new());
    let goes_on = (0..TRIES).find_map(|_| {
        let guard = wait_for(&watched);
        thread::sleep(SHORT_TTL * 5);
        (!spans.last(HOLD).is_closed()).then_some(guard)
    });
    let guard = goes_on.expect("it is extended");
    ask_each(&servers, &["DEL", "k"]);
    assert!(is_lost());
    drop(guard);

    // By the watch of a lock that nothing extends, also if its guard is leaked.
    let guard = wait_for(&client.mutex("k").ttl(SHORT_TTL));
    guard.lost().unwrap();
    assert!(is_lost() && guard.remaining().is_zero());
    drop(guard);
    let guard = wait_for(&client.mutex("leaked").ttl(SHORT_TTL));
    guard.lost().unwrap();
    std::mem::forget(guard);
    assert!(is_lost());
    let unwatched = wait_for(&client.mutex("unwatched").ttl(SHORT_TTL));
    std::mem::forget(unwatched);
    thread::sleep(SHORT_TTL * 2);
    assert!(!spans.last(HOLD).is_closed(), "nothing has found out");
}

#[test]
fn a_lease_on_its_way_has_no_span() {
    let (_servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let guard = take(&long_lock(&client, "k").fenced());
    let fence = i64::from(guard.fence()).to_string();
    let lease = guard.detach().unwrap();
    assert_eq!(ended(&spans), "detached");
    let caller = info_span!("caller");
    let guard = caller.in_scope(|| client.attach(lease).unwrap());
    let hold = spans.last(HOLD);
    assert!(!hold.is_closed() && hold.follows.is_empty());
    assert_eq!(hold.parent, caller.id().map(|id| id.into_u64()));
    assert_eq!(
        (hold.field("fence"), hold.field("lock.kind")),
        (&*fence, "fenced")
    );
    drop(guard);
    assert_eq!(
        (ended(&spans), spans.named(HOLD).len()),
        ("dropped".into(), 2)
    );
    let lease = take(&long_lock(&client, "k").reentrant()).detach().unwrap();
    assert_eq!(ended(&spans), "detached");
    let guard = client.attach(lease).unwrap();
    unlock(guard);
    assert_eq!(ended(&spans), "released");
    assert_eq!((spans.named(WAIT).len(), spans.named(HOLD).len()), (2, 4));
}

/// Both guards of threads that read, in the order in which they were made.
fn readers(mutex: &Mutex<quorumlock::kind::Read>) -> [quorumlock::RwReadGuard; 2] {
    [wait_for(mutex), wait_for(mutex)]
}

#[test]
fn each_guard_that_shares_a_lease_to_read_has_a_span() {
    let (servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let mutex = client.read_mutex("rw").ttl(LONG_TTL);
    let outcomes = || {
        let holds = spans.named(HOLD);
        let [.., first, second] = &holds[..] else {
            panic!()
        };
        [first, second].map(|hold| match hold.is_closed() {
            true => hold.field("outcome").to_owned(),
            false => "open".to_owned(),
        })
    };

    let [first, second] = readers(&mutex);
    let [asked, joined] = spans.all(WAIT);
    assert_eq!(
        [&asked, &joined].map(|wait| wait.field("attempts")),
        ["1", "0"]
    );
    assert_eq!(joined.field("outcome"), "acquired");
    let links = spans.named(HOLD).into_iter().map(|hold| hold.follows);
    assert_eq!(links.collect::<Vec<_>>(), [[asked.number], [joined.number]]);
    assert_eq!(first.unlock().unwrap(), ReleaseOutcome::StillHeld(1));
    assert_eq!(outcomes(), ["still_held", "open"]);
    unlock(second);
    assert_eq!(outcomes(), ["still_held", "released"]);

    let [first, second] = readers(&mutex);
    assert!(first.detach().is_err());
    assert_eq!(outcomes(), ["dropped", "open"]);
    let lease = second.detach().unwrap();
    assert_eq!(outcomes(), ["dropped", "detached"]);
    drop(client.attach(lease).unwrap());
    assert_eq!(outcomes(), ["detached", "dropped"]);

    let guards = readers(&mutex.clone().ttl(SHORT_TTL * 3));
    thread::sleep(SHORT_TTL * 3);
    assert_eq!(outcomes(), ["open"; 2]);
    drop(guards);
    assert_eq!(outcomes(), ["expired"; 2]);

    let watched = mutex.clone().ttl(SHORT_TTL * 3).watchdog(Watchdog::new());
    let guards = readers(&watched);
    ask_each(&servers, &["FLUSHALL"]);
    assert_soon!(outcomes() == ["lost"; 2], "{:?}", outcomes());
    drop(guards);
}

#[test]
fn a_writer_that_reads_on_has_another_span() {
    let (_servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let writer = take(&client.write_mutex("rw").fenced());
    let reader = writer.downgrade().unwrap();
    let [writing, reading] = spans.all(HOLD);
    assert!(writing.is_closed() && !reading.is_closed());
    assert_eq!(writing.field("outcome"), "downgraded");
    assert_eq!(reading.follows, [writing.number]);
    assert_eq!(
        fields(&reading),
        [("lock.kind", "read"), ("lock.name", "rw")]
    );
    unlock(reader);
    assert_eq!(ended(&spans), "released");
}

#[test]
fn all_levels_of_an_owner_share_a_span() {
    let (_servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let mutex = long_lock(&client, "k").reentrant();
    let outer = take(&mutex);
    let inner = take(&mutex);
    drop(outer);
    assert!(!spans.last(HOLD).is_closed());
    unlock(inner);
    assert_eq!(ended(&spans), "released");
    let owner = Owner::new();
    let levels = [(); 2].map(|()| mutex.lock_as(&owner, &Wait::unlimited()).unwrap());
    drop(levels);
    assert_eq!(ended(&spans), "dropped");
    assert_eq!((spans.named(WAIT).len(), spans.named(HOLD).len()), (2, 2));
}

/// Panics while it holds a lock, and catches the panic.
fn panic_with_guard(client: &Redlock) {
    let work = AssertUnwindSafe(|| {
        let _guard = take(&long_lock(client, "k"));
        panic!("planned");
    });
    assert!(catch_unwind(work).is_err());
}

#[test]
fn a_guard_on_another_thread_or_in_a_panic_ends_its_span() {
    let (_servers, client) = deployment(3);
    let (spans, _subscribed) = Spans::subscribed();
    let guard = take(&long_lock(&client, "k"));
    elsewhere(|| drop(guard));
    assert_eq!(ended(&spans), "dropped");
    client.flush_releases(SOON).unwrap();
    panic_with_guard(&client);
    assert_eq!(ended(&spans), "dropped");
}

/// A subscriber that takes a lock wherever it is called, and then panics.
struct Hostile {
    client: Redlock,
    calls: mpsc::Sender<&'static str>,
    /// What it takes where a span of this name begins.
    takes: fn(&Redlock, &str) -> bool,
}

impl Hostile {
    fn called(&self, as_what: &'static str) {
        self.calls.send(as_what).unwrap();
        let guard = self.client.mutex(as_what).lock().unwrap();
        unlock(guard);
        panic!("planned");
    }
}

impl Subscriber for Hostile {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quorumlock::lock"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let name = attributes.metadata().name();
        self.calls.send(name).unwrap();
        if !(self.takes)(&self.client, name) {
            self.calls.send("none is free").unwrap();
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        self.called("record");
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {
        self.calls.send("follows").unwrap();
    }

    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn try_close(&self, _: Id) -> bool {
        self.called("close");
        true
    }
}

#[test]
fn a_subscriber_that_panics_or_locks_changes_no_result() {
    alone(|| {
        let (_servers, client) = deployment(3);
        let (calls, seen) = mpsc::channel();
        let hostile = Hostile {
            client: client.clone(),
            calls,
            takes: |client, _| {
                unlock(client.mutex("new").lock().unwrap());
                true
            },
        };
        // For the whole process: tracing calls one of a thread for nothing that it calls.
        tracing::subscriber::set_global_default(hostile).unwrap();
        let guard = take(&long_lock(&client, "k"));
        unlock(guard);
        let expected = [WAIT, HOLD, "follows", "record", "close", "record", "close"];
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
        panic_with_guard(&client);
        assert_eq!(seen.try_iter().count(), expected.len());
    });
}

/// The call that has waited for one leaves the queue before its span begins.
#[test]
fn a_subscriber_is_granted_a_permit_beside_the_one_whose_span_begins() {
    alone(|| {
        let (_servers, [waiting, other]) = programs(3);
        let permits = || other.semaphore("s", 3).lock().unwrap();
        let held = [(); 3].map(|()| permits());
        let (calls, seen) = mpsc::channel();
        let hostile = Hostile {
            client: waiting.clone(),
            calls,
            takes: |client, name| {
                name != HOLD
                    || client
                        .semaphore("s", 3)
                        .lock_timeout(SOON)
                        .unwrap()
                        .is_some()
            },
        };
        tracing::subscriber::set_global_default(hostile).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| drop(waiting.semaphore("s", 3).lock().unwrap()));
            assert_eq!(seen.recv(), Ok(WAIT));
            thread::sleep(SHORT_TTL);
            drop(held);
        });
        assert!(seen.try_iter().all(|call| call != "none is free"));
    });
}

#[test]
fn calls_of_an_observer_have_no_spans() {
    let servers = Server::several(3).unwrap();
    let inner = client(&servers);
    let (spans, _subscribed) = Spans::subscribed();
    let outside = Guarded::new(Some(take(&long_lock(&inner, "outside"))));
    let lock_inside = move |_: &quorumlock::event::Event| {
        // The span of a guard from outside ends.
        drop(outside.lock().unwrap().take());
        drop(take(&inner.mutex("inside").ttl(LONG_TTL)));
        inner.flush_releases(SOON).unwrap();
    };
    let client = builder(&servers).observer(lock_inside).build().unwrap();
    drop(take(&long_lock(&client, "k")));
    let holds = spans.named(HOLD);
    let names = holds.iter().map(|hold| hold.field("lock.name"));
    assert_eq!(names.collect::<Vec<_>>(), ["outside", "k"]);
    assert_eq!(spans.named(WAIT).len(), 2);
    assert!(holds.iter().all(|hold| hold.field("outcome") == "dropped"));
}

#[test]
fn a_child_closes_no_span_of_its_parent() {
    alone(|| {
        let (servers, client) = deployment(3);
        let (spans, _subscribed) = Spans::subscribed();
        let watched = long_lock(&client, "watched").watchdog(Watchdog::new());
        let reading = client.read_mutex("rw").ttl(LONG_TTL);
        let wait = Wait::unlimited().cancelled_by(&CancelHandle::new());
        let mut guards = Some((
            take(&long_lock(&client, "k")),
            take(&watched),
            take(&reading),
        ));
        let child = Child::fork(End::Vanish, |_| {
            drop(guards.take());
            fails(long_lock(&client, "k").try_lock(), ErrorKind::Forked);
            assert_eq!(reading.try_lock().unwrap_err().kind(), ErrorKind::Forked);
            assert_eq!(spans.named(WAIT).len(), 3);
            assert!(spans.named(HOLD).iter().all(|hold| !hold.is_closed()));
            // Its own calls have spans, also one with a handle of the parent.
            let own = crate::clients::client(&servers);
            let refused = long_lock(&own, "own").lock_with(&wait).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Forked);
            assert_eq!(spans.last(WAIT).field("outcome"), "failed");
        });
        child.end(SOON);
        drop(guards.take());
        assert!(spans.named(HOLD).iter().all(Shown::is_closed));
    });
}

/// Its span does not keep a share that has ended.
#[test]
fn of_two_guards_that_share_a_lease_and_end_at_once_one_releases_it() {
    let (_servers, client) = deployment(1);
    let (_spans, _subscribed) = Spans::subscribed();
    let mutex = client.read_mutex("rw").ttl(LONG_TTL);
    let both = Barrier::new(2);
    for _ in 0..8000 {
        let guards = [take(&mutex), take(&mutex)];
        let outcomes = thread::scope(|scope| {
            let unlocked = guards.map(|guard| {
                scope.spawn(|| {
                    both.wait();
                    guard.unlock().unwrap()
                })
            });
            unlocked.map(|thread| thread.join().unwrap())
        });
        assert!(outcomes.contains(&ReleaseOutcome::Released), "{outcomes:?}");
    }
}
