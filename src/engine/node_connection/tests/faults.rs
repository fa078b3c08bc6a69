//! Why a connection ends, and whether the port speaks TLS.

use super::*;
#[cfg(feature = "embedded-tls")]
use crate::engine::tests::by_tls;
use crate::fault::tls_error::TlsError;
use std::io::Read;
#[cfg(feature = "tls")]
use std::io::Write;

/// Two faults are equal when phase and cause are.
fn described(fault: Fault) -> (Fault, Detail) {
    (fault, fault.detail)
}

#[test]
fn the_end_of_an_idle_connection_is_one_that_owes_nothing() {
    let mut played = Played::open(at(1));
    assert!(!played.connection.is_idle_end(CLOSED));
    played.introduced(MASTER, at(1));
    assert!(played.connection.is_idle_end(CLOSED));
    let reset = Fault::new(Phase::Reply, Cause::TimedOut);
    assert!(!played.connection.is_idle_end(reset));
    played.acquire(at(1));
    assert!(!played.connection.is_idle_end(CLOSED));
}

#[test]
fn a_connection_that_worked_may_be_made_again_at_once_and_another_one_may_not() {
    let mut played = Played::in_use(at(1));
    played.close(CLOSED, at(5));
    assert_eq!(played.connection.health.may_ask(at(5)), Ok(()));
    assert_eq!(played.connection.fault_at_deadline(at(5)), CLOSED);
    let mut played = Played::open(at(1));
    played.close(CLOSED_EARLY, at(5));
    assert_eq!(played.connection.health.may_ask(at(5)), Err(CLOSED_EARLY));
    let mut played = Played::in_use(at(1));
    let silent = Fault::new(Phase::Reply, Cause::TimedOut);
    played.close(silent, at(5));
    assert_eq!(played.connection.health.may_ask(at(5)), Err(silent));
}

#[test]
fn a_node_that_is_late_had_its_time_or_what_was_left_of_the_call() {
    let mut played = Played::connecting(at(1));
    let late = |phase, limit| described(Fault::new(phase, Cause::TimedOut).with(limit));
    let left = |millis| Detail::Limit(Duration::from_millis(millis), None);
    let whole = Detail::Limit(NODE_TIMEOUT, Some("node_timeout"));
    played.acquire(at(20));
    let timed_out = |played: &Played, now| described(played.connection.timed_out(now));
    assert_eq!(timed_out(&played, at(31)), late(Phase::Connect, left(30)));
    assert_eq!(timed_out(&played, at(101)), late(Phase::Connect, whole));
    played.made(at(40));
    played.introduced(MASTER, at(50));
    let oldest = played.connection.backlog().oldest.unwrap();
    let in_time = oldest.after(Duration::from_millis(99));
    assert_eq!(timed_out(&played, in_time), late(Phase::Reply, left(99)));
    let in_vain = oldest.after(NODE_TIMEOUT);
    assert_eq!(timed_out(&played, in_vain), late(Phase::Reply, whole));
    let at_deadline = played.connection.fault_at_deadline(in_vain);
    assert_eq!(described(at_deadline), late(Phase::Reply, whole));
}

#[test]
fn a_connection_ends_when_it_is_not_made_or_silent_for_too_long() {
    let limit = |seconds| Detail::Limit(Duration::from_secs(seconds), None);
    for (node_timeout, seconds) in [(NODE_TIMEOUT, 30), (Duration::from_secs(20), 40)] {
        let mut played = Played::closed_with(node_timeout);
        assert_eq!(played.connection.exceeded_limit(at(90_000)), None);
        played.connect(at(0));
        assert_eq!(played.connection.exceeded_limit(at(2999)), None);
        let unmade = Fault::new(Phase::Connect, Cause::TimedOut).with(limit(3));
        let exceeded = |played: &Played, now| played.connection.exceeded_limit(now).map(described);
        assert_eq!(exceeded(&played, at(3000)), Some(described(unmade)));
        played.made(at(1));
        played.introduced(MASTER, at(1));
        assert_eq!(played.connection.exceeded_limit(at(90_000)), None);
        played.acquire(at(1));
        assert_eq!(played.connection.exceeded_limit(at(1000 * seconds)), None);
        let silent = Fault::new(Phase::Reply, Cause::TimedOut).with(limit(seconds));
        let late = at(1000 * seconds + 2);
        assert_eq!(exceeded(&played, late), Some(described(silent)));
    }
}

#[test]
fn an_alert_of_tls_shows_what_the_port_speaks() {
    let mut played = Played::open(at(1));
    let early = |cause| Fault::new(Phase::Handshake, cause);
    assert_eq!(played.connection.most_specific(CLOSED_EARLY), CLOSED_EARLY);
    played.server.send(b"\x15\x03\x01");
    played.read(at(1)).unwrap();
    let required = early(Cause::Tls(TlsError::Required));
    assert_eq!(played.connection.most_specific(CLOSED_EARLY), required);
    let silent = early(Cause::TimedOut);
    assert_eq!(played.connection.most_specific(silent), silent);
    assert_eq!(played.connection.most_specific(CLOSED), CLOSED);
}

/// One that ends in the handshake is asked on a second connection.
#[test]
#[cfg(feature = "tls")]
fn a_port_that_ends_the_handshake_is_asked_whether_it_speaks_tls() {
    let required = Fault::new(Phase::Handshake, Cause::Tls(TlsError::Required));
    for (answer, expected) in [
        (Some(&b"\x15\x03"[..]), required),
        (Some(b"-ERR no\r\n"), CLOSED_EARLY),
        (None, CLOSED_EARLY),
    ] {
        let mut played = Played::open(at(1));
        let reset = Fault::new(Phase::Handshake, Cause::TimedOut);
        assert!(!played.connection.asks_for_tls(reset, at(10)));
        assert!(played.connection.asks_for_tls(CLOSED_EARLY, at(10)));
        let mut asked = played.server.listener.accept().unwrap().0;
        // The first connection is left as it is meanwhile.
        assert!(played.connection.interest(&played.log).is_none());
        assert_eq!(played.connection.timed_out(at(11)), CLOSED_EARLY);
        assert_eq!(played.connection.read(at(11)), Ok(Received::NOTHING));
        assert_eq!(played.connection.due(at(11)), at(16));
        assert_eq!(played.connection.due(at(58)), at(60));
        assert!(played.connection.asks_for_tls(CLOSED_EARLY, at(59)));
        assert!(!played.connection.asks_for_tls(CLOSED_EARLY, at(60)));
        let mut hello = [0; 3];
        soon(|| {
            played.connection.advance(at(12)).unwrap();
            asked.set_nonblocking(true).unwrap();
            asked.read(&mut hello).ok()
        });
        assert_eq!(&hello, b"\x16\x03\x01");
        match answer {
            Some(answer) => asked.write_all(answer).unwrap(),
            // A reset, for what was not read.
            None => drop(asked),
        }
        let ended = soon(|| played.connection.advance(at(13)).err());
        assert_eq!(played.connection.most_specific(ended), expected);
        assert!(!played.connection.asks_for_tls(CLOSED_EARLY, at(13)));
        // It is known for the next time, and is not asked again.
        played.close(CLOSED_EARLY, at(14));
        assert_eq!(played.connection.most_specific(CLOSED_EARLY), expected);
        played.connect(at(2000));
        played.made(at(2000));
        assert!(!played.connection.asks_for_tls(CLOSED_EARLY, at(2001)));
        // Until the node has answered.
        played.introduced(MASTER, at(2001));
        played.close(CLOSED, at(2002));
        played.connect(at(2003));
        played.made(at(2003));
        assert!(played.connection.asks_for_tls(CLOSED_EARLY, at(2004)));
    }
}

#[test]
#[cfg(feature = "tls")]
fn a_port_that_does_not_answer_that_is_waited_for_no_longer_than_half_of_the_timeout() {
    let mut played = Played::open(at(1));
    assert!(played.connection.asks_for_tls(CLOSED_EARLY, at(10)));
    assert_eq!(played.connection.advance(at(59)), Ok(()));
    assert_eq!(played.connection.advance(at(60)), Err(CLOSED_EARLY));
    // After the handshake an end is an end.
    let mut played = Played::in_use(at(1));
    assert!(!played.connection.asks_for_tls(CLOSED, at(10)));
}

/// One that is silent is asked on a second connection.
#[test]
#[cfg(feature = "embedded-tls")]
fn a_port_that_should_speak_tls_and_is_silent_is_asked_without() {
    let not_tls = Fault::new(Phase::Handshake, Cause::NotTls);
    for (answer, expected) in [(&b"+PONG\r\n"[..], Some(not_tls)), (b"\x15\x03", None)] {
        let mut played = Played::closed_with(NODE_TIMEOUT);
        played.connection.link.transport = by_tls();
        played.connect(at(1));
        played.made(at(1));
        played.server.listener.set_nonblocking(true).unwrap();
        assert_eq!(played.connection.due(at(2)), at(51));
        assert_eq!(played.connection.advance(at(50)), Ok(()));
        assert!(
            played.server.listener.accept().is_err(),
            "it is asked after half of its time"
        );
        assert_eq!(played.connection.advance(at(51)), Ok(()));
        let mut asked = soon(|| played.server.listener.accept().ok()).0;
        assert_eq!(played.connection.due(at(52)), at(57));
        soon(|| {
            played.connection.advance(at(52)).unwrap();
            asked.set_nonblocking(true).unwrap();
            asked.read(&mut [0; 14]).ok()
        });
        asked.write_all(answer).unwrap();
        let found = soon(|| match played.connection.advance(at(53)) {
            Ok(()) if played.connection.due(at(53)) == Timestamp::NEVER => Some(None),
            Ok(()) => None,
            Err(fault) => Some(Some(fault)),
        });
        assert_eq!(found, expected);
    }
}

/// A root that no server has a certificate of.
#[test]
fn a_connection_that_ends_for_another_reason_than_its_end_is_reset() {
    for (fault, is_reset) in [
        (CLOSED, false),
        (Fault::new(Phase::Reply, Cause::TimedOut), true),
    ] {
        let mut played = Played::in_use(at(1));
        played.server.received();
        played.close(fault, at(2));
        assert_eq!(
            played
                .server
                .stream
                .as_ref()
                .unwrap()
                .read(&mut [0])
                .is_err(),
            is_reset
        );
    }
}

#[test]
fn the_address_of_the_url_is_next_where_a_master_that_was_named_does_not_work() {
    let mut played = Played::closed_with(NODE_TIMEOUT);
    let named = played.server.as_master();
    for (works, stays) in [(true, true), (false, false)] {
        played.connection.link.follow(named.clone());
        played.connect(at(1));
        played.made(at(1));
        if works {
            played.introduced(MASTER, at(1));
        }
        played.close(CLOSED, at(2));
        assert_eq!(played.connection.link.is_redirected(), stays);
    }
}

/// They are the parent's.
#[test]
fn a_connection_of_another_process_is_dropped_and_no_fault() {
    let mut played = Played::in_use(at(1));
    played.connection.close_inherited();
    assert!(played.connection.is_closed() && !played.connection.health.is_suspect());
}
