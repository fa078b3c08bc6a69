//! Waiting for a lock that another program holds: woken by its release, and in time when no
//! notification comes.

mod asking;
mod losses;
mod many;

use crate::prelude::*;
use crate::support::queues::{channels, subscribers};
use quorumlock::embedded::ServerKind;

/// A delay between attempts that would show.
const LONG: Duration = Duration::from_secs(30);
/// Long enough for a thread to have subscribed, and to be asleep.
const ARRIVAL: Duration = Duration::from_millis(100);
/// What is prompt on a busy machine, and far from any delay.
const PROMPT: Duration = Duration::from_secs(2);

/// A client that asks again after a long time only, unless it is told.
fn patient<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Builder {
    builder(servers).retry_delay(LONG, LONG).place_lease(LONG)
}

#[test]
fn a_release_wakes_a_waiter_in_another_program() {
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers).build().unwrap();
    let theirs = patient(&servers).build().unwrap();
    for is_dropped in [false, true] {
        let held = take(&long_lock(&theirs, "k"));
        let took = time_to_wake(&long_lock(&mine, "k"), || {
            if is_dropped {
                drop(held)
            } else {
                drop(held.unlock())
            }
        });
        assert!(took < PROMPT, "{took:?}");
    }
    gone_for_good(&servers, "k");
    no_entry_stays(&servers);
    // A connection for each wait would cost more than the wait.
    let is_kept = |server: &Server| subscribers(server) == 1 && calls(server, "subscribe") == 1;
    assert!(servers.all(is_kept), "each wait has subscribed");
}

#[test]
fn a_release_is_published_in_each_form() {
    for flavour in [ServerKind::Redis, ServerKind::Valkey9] {
        let nodes = [0; 3].map(|_| EmbeddedNode::builder().kind(flavour).start().unwrap());
        let client = || {
            let builder = builder_of(nodes.iter().map(EmbeddedNode::url));
            let builder = builder.retry_delay(LONG, LONG).place_lease(LONG);
            builder.build().unwrap()
        };
        let mine = client();
        let theirs = client();
        // The second time, a script is called by its hash.
        for _ in 0..2 {
            let held = take(&long_lock(&theirs, "k"));
            let took = time_to_wake(&long_lock(&mine, "k"), || drop(held));
            assert!(took < PROMPT, "{flavour:?}: {took:?}");
        }
    }
}

#[test]
fn a_client_that_is_not_told_asks_by_the_delay_and_tells_others() {
    let servers = Server::several(3).unwrap();
    let client = |release_notifications| {
        let delay = Duration::from_millis(700);
        client_with(&servers, |builder| {
            builder
                .retry_delay(delay, delay)
                .release_notifications(release_notifications)
        })
    };
    for (mine, theirs, is_woken) in [
        (true, true, true),
        (true, false, true),
        (false, true, false),
    ] {
        let mine = client(mine);
        let theirs = client(theirs);
        let held = take(&long_lock(&theirs, "k"));
        let took = time_to_wake(&long_lock(&mine, "k"), || {
            drop(held);
        });
        // What it has slept through before it was released is taken off.
        let slept = Duration::from_millis(700) - ARRIVAL * 2;
        assert_eq!(took < slept, is_woken, "{took:?}");
    }
}

#[test]
fn wake_ups_that_are_off_leave_no_trace_at_the_servers() {
    let server = Server::start().unwrap();
    let client = || client_with([&server], |builder| builder.release_notifications(false));
    let mine = client();
    let theirs = client();
    let held = take(&long_lock(&theirs, "k"));
    time_to_wake(&long_lock(&mine, "k"), || drop(held));
    assert_eq!(
        ["subscribe", "publish", "zadd"].map(|command| calls(&server, command)),
        [0; 3]
    );
}

#[test]
fn a_lock_without_waiters_costs_no_subscription_and_no_further_command() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    let held = take(&mutex);
    for _ in 0..10 {
        assert!(is_held(&mutex));
    }
    thread::scope(|scope| {
        // A guard of the same program needs no notification from the servers.
        let waiting = scope.spawn(|| drop(mutex.lock().unwrap()));
        thread::sleep(ARRIVAL);
        assert_eq!((subscribers(&server), calls(&server, "subscribe")), (0, 0));
        drop(held);
        waiting.join().unwrap();
    });
    assert_eq!(
        ["subscribe", "publish", "zadd"].map(|command| calls(&server, command)),
        [0; 3]
    );
}

#[test]
fn a_guard_of_the_same_program_that_did_not_queue_wakes_all_waiters() {
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers)
        .release_notifications(false)
        .build()
        .unwrap();
    let theirs = client(&servers);
    let held = take(&long_lock(&theirs, "k"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| drop(long_lock(&mine, "k").lock().unwrap()));
        thread::sleep(ARRIVAL);
        // No client publishes: the holder does so only for subscribers, and this client does not
        // subscribe.
        drop(held);
        let own = take(&long_lock(&mine, "k"));
        thread::sleep(ARRIVAL);
        assert!(!waiting.is_finished());
        let begun = Instant::now();
        drop(own);
        waiting.join().unwrap();
        assert!(begun.elapsed() < PROMPT);
    });
}

#[test]
fn a_lock_whose_holder_was_killed_is_had_when_its_time_is_up_and_no_sooner() {
    alone(|| {
        let servers = Server::several(5).unwrap();
        let ttl = Duration::from_millis(600);
        for is_fenced in [false, true] {
            at_row(format_args!("fenced: {is_fenced}"));
            let mutex = |client: Redlock, ttl| fenced_if(is_fenced, client.mutex("k").ttl(ttl));
            let holder = || {
                let mutex = mutex(client(&servers), ttl);
                move || mutex.lock().unwrap()
            };
            let next = || {
                mutex(patient(&servers).build().unwrap(), LONG_TTL)
                    .lock()
                    .unwrap()
            };
            is_free_in_time(ttl, holder, next);
        }
    });
}
