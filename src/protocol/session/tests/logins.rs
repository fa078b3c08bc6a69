//! Credentials that are known when the handshake is queued already, or that replace others.

use super::*;

#[test]
fn credentials_that_are_known_late_go_out_first() {
    let mut session = Session::open(&Handshake::default(), NOW);
    acquire(&mut session, ticket(0), "k", &token(1));
    session.log_in_first(&Credentials::new("pw").user("me"), NOW);
    let flight = sent(&mut session);
    assert!(
        flight.starts_with("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n*2\r\n$4\r\nINFO\r\n"),
        "{flight}"
    );
    let replies = format!("+OK\r\n{}+OK\r\n", introduction(INFO, "role:master"));
    receives(&mut session, &replies, [Event::Accepted, granted(0)]);
    assert_eq!(session.pipeline.backlog().requests, 0);

    // What was asked before is unwritten as long as no byte of it was sent.
    let mut session = Session::open(&Handshake::default(), NOW);
    acquire(&mut session, ticket(0), "k", &token(1));
    session.log_in_first(&Credentials::new("pw"), NOW);
    session.pipeline.sent(20);
    let left: Vec<_> = session.abandon().collect();
    assert!(matches!(left[..], [(_, Abandoned::Unwritten)]), "{left:?}");
}

#[test]
fn an_accepted_session_logs_in_anew_by_one_more_reply() {
    let wrong = Fault::new(Phase::Handshake, Cause::Auth);
    for (reply, expected) in [
        ("+OK\r\n", vec![Event::LoggedInAnew]),
        ("-WRONGPASS no\r\n", vec![Event::LogInRefused(wrong)]),
    ] {
        let mut session = member(INFO);
        session.log_in_again(&Credentials::new("pw"), NOW);
        acquire(&mut session, ticket(0), "k", &token(1));
        let flight = sent(&mut session);
        assert!(
            flight.starts_with("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"),
            "{flight}"
        );
        receives(&mut session, reply, expected);
        // Votes count as before.
        receives(&mut session, "+OK\r\n", [granted(0)]);
    }
}
