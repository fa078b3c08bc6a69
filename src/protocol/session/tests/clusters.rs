//! Servers in cluster mode: one question more, behind what was asked already, and the master that a
//! replica names.

use super::*;

const CLUSTER: &str = "redis_mode:cluster";
const ONE_SHARD: &str = "cluster_slots_assigned:16384\r\ncluster_size:1";
const MOVED: &str = "-MOVED 3999 10.0.0.2:6379\r\n";

/// A session that was asked a lock, and got the handshake's replies and that lock.
fn asked(role: &str, reply: &str) -> Session {
    let mut session = Session::open(&Handshake::default(), NOW);
    acquire(&mut session, ticket(0), "k", &token(1));
    assert!(!sent(&mut session).contains("CLUSTER"));
    let replies = introduction(CLUSTER, role) + reply;
    assert_eq!(events(&mut session, &replies), [], "it counts later");
    assert!(!session.has_event());
    assert_eq!(sent(&mut session), "*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n");
    session
}

#[test]
fn what_was_asked_counts_once_the_cluster_is_known() {
    let fault = |cause| Fault::new(Phase::Handshake, cause);
    let vote = |vote| voted(0, vote);
    let several = bulk(&ONE_SHARD.replace("size:1", "size:2"));
    let few = bulk(&ONE_SHARD.replace("16384", "16383"));
    for (reply, rejection) in [
        (bulk(ONE_SHARD), None),
        (several, Some(Cause::ClusterMode)),
        (few, Some(Cause::ClusterMode)),
        ("-NOPERM no\r\n".into(), Some(Cause::NoPermission)),
    ] {
        for (answer, counted) in [("+OK\r\n", Vote::Granted), ("$-1\r\n", Vote::Refused)] {
            let mut session = asked("role:master", answer);
            let expected = match rejection {
                None => [Event::Accepted, vote(counted)],
                Some(cause) => [
                    Event::Rejected(fault(cause)),
                    vote(Vote::Fault(fault(cause))),
                ],
            };
            assert_eq!(events(&mut session, &reply), expected, "{reply}");
            assert_eq!(session.pipeline.backlog().requests, 0);
        }
    }
}

/// A release does not wait: the calls that it has woken are reported with its reply.
#[test]
fn a_release_counts_at_once_and_a_lost_connection_leaves_the_rest_unanswered() {
    let mut session = asked("role:master", "+OK\r\n");
    release(&mut session, ticket(1), &token(1));
    session.check(ticket(2), NOW);
    let cluster_is_late = format!(":1\r\n{}", bulk("maxmemory:0"));
    let mut replies = cluster_is_late;
    replies += &bulk("role:master");
    let mut lost = asked("role:master", "+OK\r\n");
    abandons(&mut lost, [(ticket(0), Abandoned::Acquire)]);
    receives(
        &mut session,
        &(bulk(ONE_SHARD) + &replies),
        [
            Event::Accepted,
            granted(0),
            granted(1),
            Event::MemoryKnown,
            granted(2),
        ],
    );
}

#[test]
fn a_release_that_is_answered_before_the_cluster_is_known_counts() {
    let mut session = Session::open(&Handshake::default(), NOW);
    release(&mut session, ticket(0), &token(1));
    session.check(ticket(1), NOW);
    sent(&mut session);
    let released = granted(0);
    let replies = introduction(CLUSTER, "role:master") + ":1\r\n";
    receives(&mut session, &replies, [released]);
    // The check is answered, and waits: what it counts as is not known either.
    sent(&mut session);
    let checked = bulk("maxmemory:0") + &bulk("role:master");
    receives(&mut session, &checked, [Event::MemoryKnown]);
    assert!(!session.has_event());
    abandons(&mut session, [(ticket(1), Abandoned::Check)]);
}

#[test]
fn what_waits_for_the_cluster_is_an_event_once_it_is_known() {
    let mut session = asked("role:master", "+OK\r\n");
    feed(&mut session, bulk(ONE_SHARD).as_bytes());
    let next = |session: &mut Session| session.next_event(&Log::default()).unwrap();
    assert_eq!(next(&mut session), Some(Event::Accepted));
    assert!(session.has_event());
    next(&mut session).unwrap();
    assert!(!session.has_event());
    // A replica names its master in the reply to a question.
    session.inspect(ticket(1), b"k", false, NOW);
    assert!(
        sent(&mut session).starts_with("*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n*2\r\n$3\r\nGET")
    );
}

#[test]
fn a_replica_of_one_shard_names_the_master() {
    let replica = Fault::new(Phase::Handshake, Cause::NotMaster);
    let named = |session: &Session| session.named_master().map(ToString::to_string);
    for (cluster, cause, expected) in [
        (ONE_SHARD, Cause::NotMaster, Some("10.0.0.2:6379")),
        (
            &ONE_SHARD.replace("size:1", "size:2"),
            Cause::ClusterMode,
            None,
        ),
    ] {
        let mut session = asked("role:slave", MOVED);
        let fault = Fault { cause, ..replica };
        assert_eq!(
            events(&mut session, &bulk(cluster))[0],
            Event::Rejected(fault)
        );
        assert_eq!(named(&session).as_deref(), expected);
    }
}

/// The reply that names another master is no vote: the request is sent to that one.
#[test]
fn a_master_that_has_become_a_replica_leaves_the_request_unanswered() {
    let moved = Fault::new(Phase::Reply, Cause::NotMaster);
    for (asks, kind) in [
        (
            acquire as fn(&mut Session, Ticket, &str, &OwnerToken),
            Abandoned::Acquire,
        ),
        (
            |session, ticket, _, token| extend(session, ticket, token, 1),
            Abandoned::Extend,
        ),
        (
            |session, ticket, _, token| release(session, ticket, token),
            Abandoned::Release,
        ),
    ] {
        let mut session = asked("role:master", "+OK\r\n");
        assert_eq!(events(&mut session, &bulk(ONE_SHARD)).len(), 2);
        asks(&mut session, ticket(1), "k", &token(1));
        acquire(&mut session, ticket(2), "l", &token(2));
        sent(&mut session);
        feed(&mut session, MOVED.as_bytes());
        let event = session.next_event(&Log::default());
        assert_eq!(event, Ok(Some(Event::Rejected(moved))));
        assert!(session.named_master().is_some());
        abandons(
            &mut session,
            [(ticket(1), kind), (ticket(2), Abandoned::Acquire)],
        );
    }
    // Nothing shows that another server has the same keys: it is the vote of this one.
    let mut session = member(INFO);
    acquire(&mut session, ticket(0), "k", &token(1));
    let vote = voted(0, Vote::Fault(moved));
    receives(&mut session, MOVED, [vote]);
    assert!(session.named_master().is_none());
}

/// What the node remembers was read before the cluster was asked about: it is as old as that.
#[test]
fn the_look_of_a_handshake_is_as_old_as_its_question() {
    let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
    let handshake = Handshake {
        node_key: Some("quorumlock-node:".into()),
        ..Handshake::default()
    };
    let mut session = Session::open(&handshake, at(0));
    sent(&mut session);
    session.incoming.read_at = at(300);
    let looked = introduction(CLUSTER, "role:master") + "$-1\r\n*2\r\n$1\r\n9\r\n$1\r\n5\r\n";
    receives(&mut session, &looked, []);
    session.incoming.read_at = at(700);
    receives(&mut session, &bulk(ONE_SHARD), [Event::Accepted]);
    assert_eq!(session.look_took(), Duration::from_millis(700));
}
