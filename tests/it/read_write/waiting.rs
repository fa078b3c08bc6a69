//! A writer that waits keeps new readers out, and waits for those alone that were there.

use super::*;

#[test]
fn a_writer_that_waits_keeps_new_readers_out_and_gets_its_turn() {
    let (servers, [reader, other, writer]) = programs(3);
    thread::scope(|scope| {
        let waits = || {
            let guard = wait_for(&long(&reader).read);
            assert!(!can_write(&long(&writer)));
            assert!(
                can_read(&long(&other)),
                "an attempt that does not wait keeps no reader out"
            );
            let writes = scope.spawn(|| long(&writer).write.lock().unwrap());
            assert_soon!(servers.all(is_marked));
            assert!(stays_for(AT_ONCE, || !can_read(&long(&other))));
            assert!(
                !can_read(&long(&reader)),
                "nor does a thread of a program that reads get in"
            );
            // It refuses new readers only.
            extend(&guard, LONG_TTL * 2);
            (guard, writes)
        };
        promptly_from(AT_ONCE, waits, |(reads, writes)| {
            drop(reads);
            drop(writes.join().unwrap());
        });
    });
    queues::no_entry_stays(&servers);
    assert_soon!(can_read(&long(&other)));
}

#[test]
fn a_writer_waits_no_longer_than_for_the_readers_that_were_there() {
    // A machine that pauses does so for a second, and for more than that seldom.
    let is_short = || longest_wait_of_a_writer() < TTL + AT_ONCE;
    assert!((0..3).any(|_| is_short()));
}

/// While there is always a reader, and some crash.
fn longest_wait_of_a_writer() -> Duration {
    let servers = Server::several(3).unwrap();
    let readers = [(); 3].map(|()| client(&servers));
    let writer = Sides::of(&client(&servers), "k").ttl(TTL);
    let until = Instant::now() + Duration::from_secs(2);
    let mut longest = Duration::ZERO;
    thread::scope(|scope| {
        for client in &readers {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mutex = Sides::of(client, "k").ttl(TTL);
                    for round in 0.. {
                        if Instant::now() >= until {
                            break;
                        }
                        let Some(guard) = mutex.read.lock_timeout(SOON).unwrap() else {
                            continue;
                        };
                        thread::sleep(Duration::from_millis(20));
                        if round % 20 == 7 {
                            // Unless the other thread reads as well.
                            drop(guard.detach());
                        }
                    }
                });
            }
        }
        while Instant::now() < until {
            let begun = Instant::now();
            let guard = writer.write.lock().unwrap();
            longest = longest.max(begun.elapsed());
            drop(guard);
            thread::sleep(Duration::from_millis(10));
        }
    });
    longest
}
