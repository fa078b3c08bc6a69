//! The events of an observer: all that are documented, each once, and without secrets.
//!
//! A [`Recorder`] keeps each event and can act on it. [`calls`] is about the ends of calls and
//! of locks, [`nodes`] about nodes, [`callbacks`] about what callbacks may do, [`itself`] about
//! threads that wait for their own locks. That each event is reported once, whatever happens, is a
//! rule of the simulator.

mod callbacks;
mod calls;
mod itself;
mod nodes;

use crate::prelude::*;
use std::sync::Mutex;

const KEY: &str = "k";
const TTL: Duration = Duration::from_secs(1);

/// An event in a few words: its kind and its subject, and of some what matters most.
fn words(event: &Event) -> String {
    let by = |automatic| {
        if automatic {
            "automatically"
        } else {
            "by hand"
        }
    };
    let end = |dropped| if dropped { "dropped" } else { "unlocked" };
    let what = event.code().trim_start_matches("node_").replace('_', " ");
    let subject = event.name().or(event.node()).unwrap_or_default();
    let rest = match event {
        Event::EventsDropped { count, .. } => format!(" {count}"),
        Event::Extended { is_automatic, .. } | Event::ExtensionFailed { is_automatic, .. } => {
            format!(" {}", by(*is_automatic))
        }
        Event::GaveUp { reason, .. } => format!(" {reason:?}"),
        Event::Lost { reason, .. } => format!(" {reason:?}"),
        Event::NodeMayEvict { policy, .. } => format!(" by {policy}"),
        Event::ReleaseFailed { is_dropped, .. } => format!(" {}", end(*is_dropped)),
        Event::Released {
            outcome,
            is_dropped,
            ..
        } => format!(" {outcome:?} {}", end(*is_dropped)),
        _ => String::new(),
    };
    format!("{what} {subject}{rest}")
}

fn is_about_a_node(event: &Event) -> bool {
    event.node().is_some()
}

type Act = Box<dyn Fn(&Event) + Send + Sync>;

/// Keeps each event, and then does what the test wants.
struct Recorder {
    events: Mutex<Vec<Event>>,
    act: Act,
}

impl Recorder {
    fn new() -> Arc<Recorder> {
        Recorder::acting(|_| {})
    }

    fn acting(act: impl Fn(&Event) + Send + Sync + 'static) -> Arc<Recorder> {
        Arc::new(Recorder {
            events: Mutex::default(),
            act: Box::new(act),
        })
    }

    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// The events about locks, in words.
    fn words(&self) -> Vec<String> {
        let mut events = self.events();
        events.retain(|event| !is_about_a_node(event));
        events.iter().map(words).collect()
    }

    /// The events about nodes, in words.
    fn node_words(&self) -> Vec<String> {
        let mut events = self.events();
        events.retain(is_about_a_node);
        events.iter().map(words).collect()
    }

    fn count(&self, words: &str) -> usize {
        let all = self.events();
        let all = all.iter().map(self::words);
        all.filter(|event| event.starts_with(words)).count()
    }

    fn forget(&self) {
        self.events.lock().unwrap().clear();
    }

    fn event(&self, event: &Event) {
        self.events.lock().unwrap().push(event.clone());
        (self.act)(event);
    }
}

/// Three servers, and a client of them with what records its events.
fn recorded() -> (Vec<Server>, Arc<Recorder>, Redlock) {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = observed(&servers, &recorder);
    (servers, recorder, client)
}

fn observed(servers: &[Server], recorder: &Arc<Recorder>) -> Redlock {
    observed_by(builder(servers), recorder)
}

fn observed_by(builder: Builder, recorder: &Arc<Recorder>) -> Redlock {
    builder
        .observer(calling(recorder, Recorder::event))
        .build()
        .unwrap()
}

#[test]
fn an_attempt_that_too_few_nodes_answered_is_reported_with_the_cause_at_each() {
    let (mut servers, recorder, client) = recorded();
    servers[1].kill();
    servers[2].kill();
    let error = client.mutex(KEY).try_lock().unwrap_err();
    let reported: Vec<Event> = recorder
        .events()
        .into_iter()
        .filter(|event| !is_about_a_node(event))
        .collect();
    let [
        Event::AttemptLost {
            causes, refused: 0, ..
        },
        end,
    ] = &reported[..]
    else {
        panic!("{reported:?}")
    };
    let Event::GaveUp {
        reason,
        attempts: 1,
        has_waited: false,
        causes: last,
        ..
    } = end
    else {
        panic!("{end:?}")
    };
    assert_eq!((&causes[..], &last[..]), (error.causes(), error.causes()));
    assert_eq!(*reason, GaveUpReason::Unavailable);
    assert!(causes.len() == 2 && causes.iter().all(|cause| cause.phase() == Phase::Connect));
}

#[test]
fn automatic_extensions_and_repairs_are_reported() {
    let mut servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let nodes = Redlock::builder().nodes(servers.each(Server::url));
    let client = observed_by(nodes, &recorder);
    let guard = take(&client.mutex(KEY).ttl(TTL * 4).watchdog(Watchdog::new()));
    assert_soon!(recorder.count("extended k automatically") >= 2);
    servers[0].restart().unwrap();
    assert_soon!(recorder.count("repaired k") == 1, "{:?}", recorder.events());
    everywhere(&servers, KEY);
    unlock(guard);
    let words = recorder.words();
    assert_eq!(words.last().unwrap(), "released k Released unlocked");
    for event in recorder.events() {
        match event {
            Event::Repaired { nodes, .. } => assert_eq!(nodes, [servers[0].address().into()]),
            Event::Extended { ttl, .. } => assert_eq!(ttl, TTL * 4),
            Event::Lost { .. } | Event::ReleaseFailed { .. } => panic!("{event:?}"),
            _ => {}
        }
    }
    let extensions = servers
        .iter()
        .map(|server| calls(server, "pexpire"))
        .max()
        .unwrap() as usize;
    assert!(
        recorder.count("extended") <= extensions,
        "more extensions were reported than made"
    );
}

#[test]
fn a_watched_lock_whose_nodes_hang_is_reported_with_every_failed_extension_and_its_loss() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let nodes = Redlock::builder().nodes(servers.each(Server::url));
    let client = observed_by(nodes, &recorder);
    let guard = take(&client.mutex(KEY).ttl(TTL).watchdog(Watchdog::new()));
    pause(&servers);
    guard.lost().unwrap().recv_timeout(SOON).unwrap();
    // In time for a program that relies on the observer alone: while the lease lasts. The channel
    // is notified first.
    assert_soon!(recorder.count("lost k LeaseEnded") == 1);
    resume(&servers);
    assert!(
        recorder.count("extension failed k automatically") >= 2,
        "{:?}",
        recorder.words()
    );
    for event in recorder.events() {
        if let Event::ExtensionFailed {
            remaining, causes, ..
        } = event
        {
            assert!(
                causes.len() >= 2 && remaining < TTL,
                "{causes:?} {remaining:?}"
            );
        }
    }
    drop(guard);
    thread::sleep(TTL);
    assert_eq!(recorder.count("lost"), 1);
}

#[test]
fn a_loss_by_deleted_keys_is_reported_once_with_its_reason() {
    for is_watched in [false, true] {
        let (servers, recorder, client) = recorded();
        let mutex = long_lock(&client, KEY);
        let guard = take(&match is_watched {
            true => mutex.watchdog(Watchdog::new().period(TTL)),
            false => mutex,
        });
        everywhere(&servers, KEY);
        ask_each(&servers, &["DEL", KEY]);
        match is_watched {
            true => guard.lost().unwrap().recv_timeout(SOON).unwrap(),
            false => assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost),
        }
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
        let expected = ["lost k", "lost k KeyGone", "released k Expired unlocked"];
        let is_told = || expected.map(|words| recorder.count(words)) == [1; 3];
        // The watchdog's thread reports the loss after it has signalled it.
        assert_soon!(is_told(), "{is_watched}: {:?}", recorder.words());
        thread::sleep(TTL / 5);
        assert!(is_told(), "{is_watched}: {:?}", recorder.words());
    }
}

#[test]
fn no_event_shows_a_password_or_a_token() {
    let password = "hunter2-of-the-observer";
    let servers = [0; 3].map(|_| Server::with(&["--requirepass", password]).unwrap());
    let recorder = Recorder::new();
    let urls = servers
        .iter()
        .map(|server| format!("redis://:{password}@{}", server.address()));
    let nodes = Redlock::builder()
        .nodes(urls)
        .node("redis://:hunter2@127.0.0.1:1")
        .node_timeout(TTL);
    let client = observed_by(nodes, &recorder);
    let guard = take(&long_lock(&client, KEY));
    everywhere(&servers, KEY);
    let token = value(&servers[0], KEY).unwrap();
    extend(&guard, LONG_TTL);
    pause(&servers[1..]);
    let _ = guard.extend(LONG_TTL).unwrap();
    assert!(guard.unlock().is_err());
    assert!(client.mutex(KEY).try_lock().is_err());
    resume(&servers[1..]);
    let shown = format!("{:?}", recorder.events());
    for kind in [
        "Acquired",
        "Extended",
        "ExtensionFailed",
        "NodeDown",
        "NodeUp",
        "ReleaseFailed",
        "AttemptLost",
    ] {
        assert!(shown.contains(kind), "{kind} is missing in {shown}");
    }
    for secret in ["hunter2", &token, "redis://"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
