//! Values of keys that are longer than any reply: any program may store one.

use super::*;
use crate::fault::server_error::ServerError;
use crate::protocol::resp::MAX_BULK;

/// What the session amounts to while bytes arrive in pieces of this size, and the most bytes that
/// it had to keep.
fn events_by(session: &mut Session, bytes: &[u8], size: usize) -> (Vec<Event>, usize) {
    let mut seen = Vec::new();
    let mut most = 0;
    for piece in bytes.chunks(size) {
        seen.extend(events(session, str::from_utf8(piece).unwrap()));
        most = most.max(session.incoming.unparsed().len());
    }
    (seen, most)
}

#[test]
fn a_value_that_is_too_long_costs_its_question_and_not_the_connection() {
    let long = bulk(&":1\r\n+OK\r\n".repeat(MAX_BULK / 8));
    let unexpected = Vote::Fault(Fault::new(Phase::Reply, Cause::UnexpectedValue));
    for size in [7, 1000, long.len() - 1, long.len() + 3] {
        let mut session = member("");
        for is_fenced in [false, true] {
            session.inspect(ticket(1), b"k", is_fenced, NOW);
            acquire(&mut session, ticket(2), "k", &token(1));
            sent(&mut session);
            let time = if is_fenced {
                "*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
            } else {
                ":9\r\n"
            };
            let replies = format!("{long}:0\r\n{time}+OK\r\n");
            let (seen, most) = events_by(&mut session, replies.as_bytes(), size);
            let [Event::Inspected(_, inspected), answered] = seen.as_slice() else {
                panic!("{seen:?}");
            };
            assert_eq!((inspected.vote, answered), (unexpected, &granted(2)));
            assert!(most < 40, "{most} bytes are kept of pieces of {size}");
        }
    }
}

#[test]
fn a_value_that_is_longer_than_servers_store_is_an_error_before_it_has_arrived() {
    for (header, is_stored) in [("$536870912\r\n", true), ("$536870913\r\n", false)] {
        let mut session = member("");
        session.inspect(ticket(1), b"k", false, NOW);
        feed(&mut session, header.as_bytes());
        let seen = session.next_event(&Log::default());
        let expected = if is_stored {
            Ok(None)
        } else {
            Err(ProtocolError::BulkTooLong)
        };
        assert_eq!(seen, expected, "{header:?}");
    }
}

#[test]
fn a_note_that_is_too_long_is_none_and_any_other_string_is_an_error() {
    let long = bulk(&"x".repeat(MAX_BULK + 1));
    let handshake = Handshake {
        node_key: Some("note".to_owned()),
        ..Handshake::default()
    };
    let mut session = Session::open(&handshake, NOW);
    let introduction = introduction("", "role:master");
    let replies = format!("{introduction}{long}*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
    receives(&mut session, &replies, [Event::Accepted]);
    let wrong_type = Cause::Server(ServerError::WrongType);
    assert_eq!(session.identity().look.refusal, Some(wrong_type));
    let error = |session: &mut Session, bytes: &str| {
        feed(session, bytes.as_bytes());
        session.next_event(&Log::default()).unwrap_err()
    };
    let mut other = Session::open(&handshake, NOW);
    assert_eq!(error(&mut other, &long), ProtocolError::BulkTooLong);
    for (end, expected) in [
        ("x", ProtocolError::MissingCrlf),
        ("\rx", ProtocolError::MissingCrlf),
    ] {
        session.inspect(ticket(1), b"k", false, NOW);
        let text = long.trim_end().to_owned() + end;
        assert_eq!(error(&mut session, &text), expected);
        session = member("");
    }
    session.inspect(ticket(1), b"k", false, NOW);
    let array = format!("*1\r\n{long}");
    assert_eq!(error(&mut session, &array), ProtocolError::BulkTooLong);
}
