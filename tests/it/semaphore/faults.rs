//! Permits of programs that are killed, and on nodes that are gone.

use super::*;

#[test]
fn a_permit_whose_holder_was_killed_is_back_when_its_time_is_up_and_no_sooner() {
    alone("semaphore::faults::a_permit_whose_holder_was_killed_is_back_when_its_time_is_up_and_no_sooner", || {
        let servers = Server::several(5).unwrap();
        // On a busy machine one of three.
        let late: Vec<_> = (0..3).map(|_| lateness(&servers)).collect();
        assert!(late.iter().any(|late| *late < Duration::from_millis(50)), "late by {late:?}");
    });
}

/// How long after the end of its time a permit was had whose holder was killed. Not before.
fn lateness(servers: &[Server]) -> Duration {
    let ttl = Duration::from_millis(600);
    let mut holder = Child::fork(End::Vanish, |parent| {
        let semaphore = client(servers).semaphore(NAME, 2).ttl(ttl);
        parent.send("r");
        parent.wait();
        let _permits = [semaphore.lock().unwrap(), semaphore.lock().unwrap()];
        parent.send("h");
        parent.wait();
    });
    assert_eq!(holder.receive(), 'r');
    let begun = Instant::now();
    holder.let_continue();
    assert_eq!(holder.receive(), 'h');
    let taken = Instant::now();
    holder.kill();
    let permit = semaphore(&client(servers), 2).lock().unwrap();
    let had = Instant::now();
    assert!(had >= begun + ttl, "{:?} too early", begun + ttl - had);
    drop(permit);
    had.saturating_duration_since(taken + ttl)
}

#[test]
fn a_hung_and_a_dead_node_keep_no_permit_back() {
    let mut servers = Server::several(5).unwrap();
    servers[0].pause().unwrap();
    servers[4].kill();
    let (mine, theirs) = (client(&servers), client(&servers));
    let (here, there) = (semaphore(&mine, 3), semaphore(&theirs, 3));
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
