//! A writer becomes a reader, also while nodes hang.

use super::*;

#[test]
fn a_writer_becomes_a_reader_without_another_writer_in_between() {
    let (servers, [one, other]) = two_programs();
    let guard = write(&one);
    let lost = guard.lost().unwrap();
    let guard = guard.downgrade().unwrap();
    assert!(
        lost.recv().is_err(),
        "the channel of the lock to write is disconnected"
    );
    assert_soon!(servers.all(|server| entries(server) == ('r', 1)));
    assert!(!can_write(&other));
    let second = read(&other);
    extend(&guard, LONG_TTL * 2);
    assert!(guard.remaining() > LONG_TTL);
    drop(guard);
    assert!(!can_write(&one));
    unlock(second);
    assert_soon!(can_write(&one));
}

#[test]
fn a_downgrade_holds_while_a_node_hangs_and_reaches_it_with_the_next_extension() {
    let servers = Server::several(3).unwrap();
    let [one, other] =
        [(); 2].map(|()| long(&client_within(servers.each(Server::url), NODE_TIMEOUT * 6)));
    let guard = wait_for(&one.write);
    assert_soon!(servers.all(|server| entries(server) == ('w', 1)));
    servers[0].pause().unwrap();
    servers[1].pause().unwrap();
    let guard = guard.downgrade().expect("its lease lasts");
    assert!(guard.remaining() > LONG_TTL / 2);
    resume(&servers[..2]);
    assert_soon!(
        servers.all(|server| entries(server) == ('r', 1)),
        "they run it now"
    );
    assert_soon!(can_take(&other.read));
    drop(guard);
    // A lock that has ended is none.
    let mutex = Sides::of(&client(&servers), "other").ttl(Duration::from_millis(500));
    let guard = mutex.write.lock().unwrap();
    thread::sleep(guard.remaining() + Duration::from_millis(1));
    assert_eq!(guard.downgrade().unwrap_err().kind(), ErrorKind::LeaseLost);
}
