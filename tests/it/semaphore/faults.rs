//! Permits of programs that are killed, and on nodes that are gone.

use super::*;

#[test]
fn a_permit_whose_holder_was_killed_is_back_when_its_time_is_up_and_no_sooner() {
    alone(
        "semaphore::faults::a_permit_whose_holder_was_killed_is_back_when_its_time_is_up_and_no_sooner",
        || {
            let servers = Server::several(5).unwrap();
            // On a busy machine one of three.
            let ttl = Duration::from_millis(600);
            let holder = || {
                let semaphore = client(&servers).semaphore(NAME, 2).ttl(ttl);
                move || [semaphore.lock().unwrap(), semaphore.lock().unwrap()]
            };
            let next = || semaphore(&client(&servers), 2).lock().unwrap();
            let late: Vec<_> = (0..3).map(|_| lateness(ttl, holder, next)).collect();
            assert!(
                late.iter().any(|late| *late < Duration::from_millis(50)),
                "late by {late:?}"
            );
        },
    );
}

#[test]
fn a_hung_and_a_dead_node_keep_no_permit_back() {
    let mut servers = Server::several(5).unwrap();
    servers[0].pause().unwrap();
    servers[4].kill();
    let mine = client(&servers);
    let theirs = client(&servers);
    let here = semaphore(&mine, 3);
    let there = semaphore(&theirs, 3);
    let held = [take(&here), take(&there), take(&here)];
    assert!(here.try_lock().unwrap().is_none() && there.try_lock().unwrap().is_none());
    let [first, second, _third] = held;
    drop((first, second));
    drop([take(&there), take(&there)]);
    servers[1].pause().unwrap();
    let error = there.try_lock().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    servers[1].resume().unwrap();
    servers[0].resume().unwrap();
}
