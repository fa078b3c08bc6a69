//! A thread that waits for a lock that it has itself: reported once for each call, and of no other
//! wait.

use super::*;
use quorumlock::Result;

/// A lease that a test waits for to end.
const SHORT: Duration = Duration::from_millis(300);

/// A client whose waits end when they have begun.
struct Setting {
    servers: Vec<Server>,
    client: Redlock,
    recorder: Arc<Recorder>,
    /// What ends the wait.
    cancel: Arc<Guarded<CancelHandle>>,
}

impl Setting {
    fn new() -> Setting {
        let servers = Server::several(3).unwrap();
        let cancel = Arc::<Guarded<CancelHandle>>::default();
        let (client, recorder) = observer(&servers, &cancel);
        Setting {
            servers,
            client,
            recorder,
            cancel,
        }
    }

    /// The call waits, and is cancelled. Of what it reports: the names of the locks that its own
    /// thread has.
    #[track_caller]
    fn own<G>(&self, call: impl FnOnce(&Wait) -> Result<Option<G>>) -> Vec<String> {
        self.recorder.forget();
        let cancel = CancelHandle::new();
        *self.cancel.lock().unwrap() = cancel.clone();
        let error = call(&Wait::timeout(SOON).cancelled_by(&cancel))
            .map(|guard| guard.is_some())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        own(&self.recorder)
    }
}

fn observer(servers: &[Server], cancel: &Arc<Guarded<CancelHandle>>) -> (Redlock, Arc<Recorder>) {
    let cancel = Arc::clone(cancel);
    let recorder = Recorder::acting(move |event| {
        if let Event::Waiting { .. } = event {
            cancel.lock().unwrap().cancel();
        }
    });
    (observed(servers, &recorder), recorder)
}

/// The names that were reported, each right behind the event of its wait.
#[track_caller]
fn own(recorder: &Recorder) -> Vec<String> {
    let events = recorder.events();
    let mut names = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let Event::WaitingForItself {
            name, remaining, ..
        } = event
        else {
            continue;
        };
        assert!(
            matches!(events[index - 1], Event::Waiting { .. }),
            "{}",
            words(&events[index - 1])
        );
        assert!(
            *remaining > LONG_TTL / 2 && *remaining < LONG_TTL,
            "{event:?}"
        );
        names.push(name.to_string());
    }
    names
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_wait_for_a_lock_of_the_same_thread_is_reported_once() {
    let setting = Setting::new();
    let client = &setting.client;
    let recorder = &setting.recorder;
    let plain = long_lock(client, "plain");
    let guard = take(&plain);
    assert_eq!(setting.own(|wait| plain.lock_with(wait)), ["plain"]);
    // Another `Mutex` of the same name.
    assert_eq!(
        setting.own(|wait| client.mutex("plain").lock_with(wait)),
        ["plain"]
    );
    // Behind a thread of the same client, which does not wait for itself.
    let shutdown = CancelHandle::new();
    thread::scope(|threads| {
        recorder.forget();
        threads.spawn(|| {
            plain
                .lock_with(&Wait::unlimited().cancelled_by(&shutdown))
                .unwrap_err()
        });
        assert_soon!(recorder.count("waiting plain") == 1);
        assert!(own(recorder).is_empty());
        assert_eq!(setting.own(|wait| plain.lock_with(wait)), ["plain"]);
        shutdown.cancel();
    });
    drop(guard);

    let watched = long_lock(client, "watched").watchdog(Watchdog::new());
    let fair = long_lock(client, "fair").fair();
    for (mutex, name) in [(&watched, "watched"), (&fair, "fair")] {
        let _guard = take(mutex);
        assert_eq!(setting.own(|wait| mutex.lock_with(wait)), [name]);
    }
    let fenced = long_lock(client, "fenced").fenced();
    let _fenced = fenced.lock().unwrap();
    assert_eq!(setting.own(|wait| fenced.lock_with(wait)), ["fenced"]);

    let shared = Sides::of(client, "shared").ttl(LONG_TTL);
    let _written = shared.write.lock().unwrap();
    assert_eq!(setting.own(|wait| shared.write.lock_with(wait)), ["shared"]);
    assert_eq!(setting.own(|wait| shared.read.lock_with(wait)), ["shared"]);

    let reentrant = long_lock(client, "reentrant").reentrant();
    let _levels = [reentrant.lock().unwrap(), reentrant.lock().unwrap()];
    assert_eq!(
        setting.own(|wait| client.mutex("reentrant").lock_with(wait)),
        ["reentrant"]
    );

    let attached = long_lock(client, "attached");
    let lease = elsewhere(|| take(&attached).detach().unwrap());
    let _attached = attached.attach(lease).unwrap();
    assert_eq!(setting.own(|wait| attached.lock_with(wait)), ["attached"]);
}

#[test]
fn a_set_waits_for_its_own_thread_that_has_one_of_its_locks_and_a_permit_for_one_that_has_all() {
    let setting = Setting::new();
    let client = &setting.client;
    let set = client.mutex_set(["a", "b", "c"]).ttl(LONG_TTL);
    let b = long_lock(client, "b");
    let guard = take(&b);
    assert_eq!(setting.own(|wait| set.lock_with(wait)), ["b"]);
    drop(guard);
    let guard = set.lock().unwrap();
    assert_eq!(setting.own(|wait| b.lock_with(wait)), ["b"]);
    assert_eq!(
        setting.own(|wait| client.mutex_set(["c", "d"]).lock_with(wait)),
        ["c"]
    );
    drop(guard);
    // Another thread has the one that is waited for first.
    let a = elsewhere(|| take(&long_lock(client, "a")));
    let guards = [a, take(&b)];
    assert_eq!(setting.own(|wait| set.lock_with(wait)), ["b"]);
    drop(guards);

    let permits = client.semaphore("permits", 2).ttl(LONG_TTL);
    let mine = permits.lock().unwrap();
    let theirs = elsewhere(|| permits.lock().unwrap());
    assert_eq!(
        setting.own(|wait| permits.lock_with(wait)),
        NOTHING,
        "another thread may release one"
    );
    drop(theirs);
    let _both = [mine, permits.lock().unwrap()];
    assert_eq!(setting.own(|wait| permits.lock_with(wait)), ["permits"]);
}

#[test]
fn a_wait_for_another_holder_is_not_reported_as_one_for_the_same_thread() {
    let setting = Setting::new();
    let client = &setting.client;
    let another = self::client(&setting.servers);
    let mutex = long_lock(client, "k");
    let guard = take(&mutex);
    // What does not wait, what another thread waits for, what another client has.
    assert!(is_held(&mutex) && is_held_for(&mutex, Duration::ZERO));
    let theirs = elsewhere(|| setting.own(|wait| mutex.lock_with(wait)));
    assert_eq!(theirs, NOTHING);
    drop(guard);
    let guard = long_lock(&another, "k").lock().unwrap();
    assert_eq!(setting.own(|wait| mutex.lock_with(wait)), NOTHING);
    let _ = guard.unlock().unwrap();

    // What the thread has let go of: it was dropped elsewhere, detached, has ended.
    let guard = mutex.lock().unwrap();
    let theirs = elsewhere(|| {
        drop(guard);
        mutex.lock().unwrap()
    });
    assert_eq!(setting.own(|wait| mutex.lock_with(wait)), NOTHING);
    drop(theirs);
    let lease = mutex.lock().unwrap().detach().unwrap();
    assert_eq!(setting.own(|wait| mutex.lock_with(wait)), NOTHING);
    let _ = mutex.attach(lease).unwrap().unlock().unwrap();
    let ended = client.mutex("k").ttl(SHORT).lock().unwrap();
    thread::sleep(SHORT);
    let guard = long_lock(&another, "k").lock().unwrap();
    assert_eq!(setting.own(|wait| mutex.lock_with(wait)), NOTHING);
    let _ = guard.unlock().unwrap();
    drop(ended);

    // Owners that one thread serves in turn, and a re-entry, which does not wait.
    let reentrant = mutex.clone().reentrant();
    let owners = [Owner::new(), Owner::new()];
    let level = reentrant.lock_as(&owners[0], &Wait::unlimited()).unwrap();
    assert_eq!(
        setting.own(|wait| reentrant.lock_as(&owners[1], wait)),
        NOTHING
    );
    assert_eq!(setting.own(|wait| mutex.lock_with(wait)), NOTHING);
    drop(level);
    setting.recorder.forget();
    let _levels = [reentrant.lock().unwrap(), reentrant.lock().unwrap()];
    assert_eq!(own(&setting.recorder), NOTHING);
}

/// The thread that took a lock is known, and not where its guard is: the documentation states that.
#[test]
fn a_guard_that_was_sent_to_another_thread_is_reported_and_ends_the_wait() {
    let setting = Setting::new();
    let mutex = long_lock(&setting.client, "k");
    let guard = take(&mutex);
    let (release, released) = mpsc::channel();
    thread::scope(|threads| {
        threads.spawn(move || {
            released.recv().unwrap();
            drop(guard);
        });
        assert_eq!(setting.own(|wait| mutex.lock_with(wait)), ["k"]);
        release.send(()).unwrap();
        assert!(mutex.lock_timeout(SOON).unwrap().is_some());
    });
}

#[test]
fn a_child_that_waits_for_its_parent_does_not_wait_for_itself() {
    alone(|| {
        let mut setting = Setting::new();
        let _guard = take(&long_lock(&setting.client, "k"));
        let child = Child::fork(End::Vanish, |parent| {
            let theirs;
            (theirs, setting.recorder) = observer(&setting.servers, &setting.cancel);
            let found = setting.own(|wait| long_lock(&theirs, "k").lock_with(wait));
            let _own = take(&long_lock(&theirs, "own"));
            let own = setting.own(|wait| long_lock(&theirs, "own").lock_with(wait));
            parent.send(&format!("{found:?} {own:?}"));
        });
        assert_eq!(child.end(SOON), r#"[] ["own"]"#);
    });
}
