//! How far a connection has come, and what the node may be asked.

use super::*;

#[test]
fn a_connection_goes_through_its_phases() {
    let mut played = Played::closed_with(NODE_TIMEOUT);
    assert!(played.connection.is_closed() && !played.connection.is_connecting());
    assert_eq!(played.connection.phase(), Phase::Connect);
    let nothing = played.connection.interest(&played.log);
    assert!(nothing.is_none());
    played.connect(at(1));
    assert!(!played.connection.is_closed() && played.connection.is_connecting());
    assert!(!played.connection.is_open());
    assert_eq!(played.connection.phase(), Phase::Connect);
    let writing = played.connection.interest(&played.log);
    assert!(writing.as_ref().unwrap().writable);
    played.made(at(2));
    let sent = played.connection.interest(&played.log);
    assert!(!sent.unwrap().writable, "all is sent");
    assert!(played.connection.is_connecting() && !played.connection.is_in_use());
    assert_eq!(played.connection.phase(), Phase::Handshake);
    assert!(!played.connection.may_follow(&played.log));
    assert_eq!(played.connection.run_id(at(2)), None);
    let accepted = played.introduced(MASTER, at(3));
    assert_eq!(accepted, [SessionEvent::Accepted]);
    assert!(played.connection.is_in_use() && !played.connection.is_connecting());
    assert_eq!(played.connection.phase(), Phase::Reply);
    let reading = played.connection.interest(&played.log);
    assert!(!reading.as_ref().unwrap().writable);
    assert!(played.connection.may_follow(&played.log));
    let stream = Arc::clone(played.connection.link.socket.stream().unwrap());
    assert!(played.connection.is_on(&stream));
    // What it has voted may be in a round in flight after its connection has ended.
    assert!(played.connection.run_id(at(5000)).is_some());
    played.close(CLOSED, at(4));
    assert!(played.connection.is_closed() && !played.connection.may_follow(&played.log));
    assert!(!played.connection.is_on(&stream));
    assert!(played.connection.run_id(at(203)).is_some());
    assert_eq!(played.connection.run_id(at(204)), None);
    played.connect(at(300));
    assert!(!played.connection.is_on(&stream), "it is another one");
}

#[test]
fn a_node_with_releases_to_run_or_something_unanswered_does_not_follow() {
    let mut played = Played::in_use(at(1));
    played.connection.pending.insert(ticket(1), at(9), None);
    assert!(!played.connection.may_follow(&played.log));
    played.connection.pending.take(at(1)).unwrap();
    assert!(played.connection.may_follow(&played.log));
    played.acquire(at(1));
    assert!(!played.connection.may_follow(&played.log));
}

#[test]
fn a_node_that_does_not_vote_is_asked_anew_after_its_delay_when_it_has_replied_to_all() {
    let mut played = Played::with_role(REPLICA, at(1));
    let fault = Fault::new(Phase::Handshake, Cause::NotMaster);
    let connection = &mut played.connection;
    assert_eq!(connection.health.fault(), fault);
    assert!(!connection.is_in_use() && !connection.runs_releases());
    assert_eq!(connection.admit(at(500)), Err(fault));
    connection.on_answer();
    assert_eq!(connection.retry_reason(at(1)), None, "it is left alone");
    assert_eq!(connection.pending_due(), connection.health.not_before());
    assert_eq!(connection.retry_reason(at(500)), Some(fault));
    connection.session.check(ticket(0), at(2));
    assert_eq!(connection.retry_reason(at(500)), None, "it may reply");
    connection.session.abandon().for_each(drop);
    let before = connection.health.not_before();
    connection.close(fault, at(600));
    assert_eq!(connection.health.not_before(), before, "it was counted");
    assert_eq!(connection.retry_reason(at(2000)), None, "it is closed");
}

#[test]
fn what_a_node_refuses_decides_whether_it_runs_releases() {
    let mut played = Played::in_use(at(1));
    assert!(played.connection.runs_releases());
    for (cause, runs) in [
        (Cause::OutOfMemory, true),
        (Cause::Duplicate(1), true),
        (Cause::Loading, false),
        (Cause::Auth, false),
    ] {
        let refused = Fault::new(Phase::Handshake, cause);
        played.connection.reject(refused, at(1));
        assert_eq!(played.connection.runs_releases(), runs, "{cause:?}");
    }
    played.close(CLOSED, at(2));
    assert!(!played.connection.runs_releases());
}

/// The same words of a server that a replica has named may be about an older time.
#[test]
fn a_replica_names_the_master_unless_it_was_named_itself() {
    let moved = "-MOVED 3999 10.0.0.2:6379\r\n";
    let cluster = "cluster_slots_assigned:16384\r\ncluster_size:1";
    for (is_redirected, is_followed) in [(false, true), (true, false)] {
        let mut played = Played::closed_with(NODE_TIMEOUT);
        if is_redirected {
            let named = played.server.as_master();
            played.connection.link.follow(named);
        }
        played.connect(at(1));
        played.acquire(at(1));
        played.made(at(1));
        let server = SERVER.replace("standalone", "cluster");
        let replies = bulk(&server) + &bulk(REPLICA) + moved;
        assert!(played.replied(&replies, at(2)).is_empty());
        let SessionEvent::Rejected(fault) = played.replied(&bulk(cluster), at(3)).remove(0) else {
            panic!("a replica votes");
        };
        let named = played.connection.named_master().map(ToString::to_string);
        let expected = is_followed.then_some("10.0.0.2:6379");
        assert_eq!(named.as_deref(), expected);
        played.close(fault, at(4));
        // Another server is asked at once.
        assert!(played.connection.health.may_ask(at(4)).is_ok());
        assert_eq!(played.connection.health.is_suspect(), is_followed);
    }
}

#[test]
fn a_late_node_gets_a_request_now_and_then_until_it_answers() {
    let mut played = Played::in_use(at(1));
    played.acquire(at(10));
    let connection = &mut played.connection;
    assert!(connection.admit(at(110)).is_ok() && connection.is_responsive(at(110)));
    assert!(!connection.is_responsive(at(111)) && connection.may_be_looked_at(at(111)));
    let late = Fault::new(Phase::Reply, Cause::TimedOut);
    let late = late.with(Detail::Limit(NODE_TIMEOUT, Some("node_timeout")));
    assert_eq!(connection.admit(at(111)), Err(late));
    assert!(!connection.may_be_looked_at(at(111)));
    let again = connection.health.not_before();
    assert_eq!(connection.admit(again), Ok(()));
    connection.on_request(again);
    assert_eq!(connection.admit(again), Err(late), "once");
    connection.on_answer();
    assert!(!connection.health.is_suspect());
    played.acquire(at(12));
    assert!(!played.connection.health.is_suspect(), "it is not late yet");
}

#[test]
fn a_connection_that_is_being_made_gets_no_second_request_when_it_is_late() {
    let mut played = Played::connecting(at(1));
    played.acquire(at(1));
    let limit = Detail::Limit(NODE_TIMEOUT, Some("node_timeout"));
    let late = Fault::new(Phase::Connect, Cause::TimedOut).with(limit);
    assert_eq!(played.connection.admit(at(102)), Err(late));
    assert_eq!(played.connection.admit(at(5000)), Err(late));
}

#[test]
fn a_node_with_too_many_requests_gets_releases_only() {
    let mut played = Played::in_use(at(1));
    let duplicate = Fault::new(Phase::Handshake, Cause::Duplicate(1));
    for number in 0..=SOFT_LIMIT {
        played
            .connection
            .session
            .check(ticket(number as u32), at(1));
        let requests = played.connection.backlog().requests;
        if requests + 1 >= SOFT_LIMIT {
            let is_admitted = requests <= SOFT_LIMIT;
            assert_eq!(played.connection.admit(at(1)).is_ok(), is_admitted);
        }
    }
    let backlog = Fault::new(Phase::Reply, Cause::Backlog);
    assert_eq!(played.connection.admit(at(1)), Err(backlog));
    played.connection.reject(duplicate, at(1));
    assert!(!played.connection.may_grant_for_another(at(1)));
}

#[test]
fn a_server_that_is_asked_by_two_urls_grants_for_the_other_while_it_replies() {
    let mut played = Played::in_use(at(1));
    assert!(!played.connection.may_grant_for_another(at(1)));
    played.acquire(at(1));
    let duplicate = Fault::new(Phase::Handshake, Cause::Duplicate(1));
    played.connection.reject(duplicate, at(1));
    assert!(played.connection.may_grant_for_another(at(101)));
    assert!(
        !played.connection.may_grant_for_another(at(102)),
        "it is late"
    );
    assert_eq!(played.connection.fault_at_deadline(at(102)), duplicate);
    played.close(duplicate, at(102));
    assert!(!played.connection.may_grant_for_another(at(103)));
}

#[test]
fn a_connection_is_read_first_when_it_was_idle_or_a_reply_is_late() {
    let mut played = Played::in_use(at(1));
    assert!(!played.connection.needs_read(at(1)) && played.connection.is_ready(at(1)));
    assert!(played.connection.needs_read(at(3)) && !played.connection.is_ready(at(3)));
    played.acquire(at(3));
    assert_eq!(played.connection.read(at(104)), Ok(Received::NOTHING));
    assert!(played.connection.needs_read(at(104)), "a reply is late");
    assert!(!played.connection.is_ready(at(104)));
    played.close(CLOSED, at(104));
    assert!(!played.connection.needs_read(at(500)));
}

#[test]
fn a_read_shows_whether_there_may_be_more() {
    let mut played = Played::in_use(at(1));
    assert_eq!(played.connection.read(at(1)), Ok(Received::NOTHING));
    played.server.send("+");
    let is_full = |read: Result<Received, Fault>| read.map(|received| received.is_full);
    assert_eq!(is_full(played.read(at(1))), Ok(false));
    let much = vec![b'x'; 1 << 18];
    played.server.send(much);
    assert_eq!(is_full(played.read(at(1))), Ok(true));
    played.server.end();
    let end = soon(|| played.connection.read(at(1)).err());
    assert_eq!(end, CLOSED);
}

#[test]
fn what_the_kernel_does_not_take_waits_and_a_broken_connection_is_a_fault() {
    let mut played = Played::in_use(at(1));
    assert!(!played.connection.has_unsent(&played.log));
    for number in 0..200_000 {
        played.connection.session.check(ticket(number), at(1));
    }
    assert!(played.flush(at(1)), "the stream must become writable");
    assert!(played.connection.has_unsent(&played.log));
    assert!(played.connection.interest(&played.log).unwrap().writable);
    // A reset, for what was not read.
    played.server.stream = None;
    let broken = soon(|| played.connection.flush(&played.log, at(1)).err());
    assert_eq!(broken, CLOSED);
}
