//! What a conversation that ends leaves unanswered.

use super::*;

#[test]
fn an_abandoned_conversation_hands_out_what_is_unanswered() {
    let mut session = Session::open(&Handshake::default(), NOW);
    acquire(&mut session, ticket(4), "k", &token(1));
    extend(&mut session, ticket(5), &token(1), 1000);
    release(&mut session, ticket(6), &token(1));
    sent(&mut session);
    let kinds = [Abandoned::Acquire, Abandoned::Extend, Abandoned::Release];
    abandons(
        &mut session,
        [4, 5, 6].map(|slot| (ticket(slot), kinds[slot as usize - 4])),
    );
    assert_eq!(session.pipeline.backlog().requests, 0);
}

#[test]
fn a_question_is_a_check_when_it_is_abandoned() {
    let mut session = member(INFO);
    session.check(ticket(7), NOW);
    session.inspect(ticket(8), b"k", false, NOW);
    let questions = sent(&mut session);
    assert!(
        questions.ends_with("\r\nPTTL\r\n$1\r\nk\r\n"),
        "{questions}"
    );
    abandons(
        &mut session,
        [7, 8].map(|slot| (ticket(slot), Abandoned::Check)),
    );
}
