//! When a connection has to be looked after for its releases.

use super::*;

#[test]
fn a_key_may_be_on_a_node_that_was_written_to_since_it_was_set() {
    let mut played = Played::in_use(at(5));
    let may_hold = |played: &Played, set_since: Option<Timestamp>| {
        let key_ends = at(9);
        let conditions = ReleaseConditions {
            set_since,
            key_ends,
        };
        played.connection.may_hold(&conditions)
    };
    assert!(may_hold(&played, Some(at(5))) && may_hold(&played, None));
    assert!(!may_hold(&played, Some(at(6))));
    played.acquire(at(7));
    assert!(!may_hold(&played, Some(at(6))), "it is unsent");
    played.flush(at(8));
    assert!(may_hold(&played, Some(at(8))));
}

#[test]
fn a_release_is_waited_for_while_its_key_may_be_on_the_node() {
    let mut played = Played::connecting(at(1));
    played.queue(Verb::Release(None), at(1));
    assert!(!played.connection.awaits_release(&played.log));
    played.connection.pending.carry(at(500));
    assert!(played.connection.has_unsent_release(&played.log));
    played.made(at(2));
    played.introduced(MASTER, at(3));
    assert!(played.connection.awaits_release(&played.log));
    assert!(!played.connection.has_unsent_release(&played.log));
    let due = |played: &Played, now| played.connection.release_due(&played.log, now);
    assert_eq!(due(&played, at(3)), at(103));
    assert_eq!(due(&played, at(499)), at(103));
    assert_eq!(due(&played, at(500)), Timestamp::NEVER, "its key has ended");
    assert_eq!(played.connection.pending_due(), Timestamp::NEVER);
    played.queue(Verb::Release(None), at(4));
    assert_eq!(due(&played, at(500)), at(500), "it is unsent");
    played.close(CLOSED, at(5));
    assert!(!played.connection.awaits_release(&played.log));
}

#[test]
fn pending_releases_are_sent_when_the_node_has_replied_to_what_it_was_asked() {
    let mut played = Played::in_use(at(1));
    let due = |played: &Played, now| played.connection.release_due(&played.log, now);
    let refused = Fault::new(Phase::Reply, Cause::OutOfMemory);
    let kept = (refused, at(10));
    played
        .connection
        .pending
        .insert(ticket(1), at(900), Some(kept));
    let paused_until = played.connection.pending.paused_until();
    assert!(paused_until > at(10));
    assert_eq!(played.connection.pending_due(), paused_until);
    assert_eq!(
        due(&played, at(500)),
        Timestamp::NEVER,
        "nothing holds it up"
    );
    played.acquire(at(500));
    played.flush(at(500));
    assert_eq!(due(&played, at(500)), at(500));
    assert_eq!(due(&played, at(11)), Timestamp::NEVER, "it is paused");
    assert_eq!(played.connection.pending_due(), at(900));
    played.close(CLOSED, at(501));
    assert_eq!(due(&played, at(501)), Timestamp::NEVER);
    assert_eq!(played.connection.pending_due(), at(501));
    // Another connection may be to another process.
    played.connect(at(600));
    played.made(at(600));
    played.introduced(MASTER, at(600));
    assert_eq!(played.connection.pending_due(), Timestamp::ORIGIN);
}
