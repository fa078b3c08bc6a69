//! Error replies to the scripts, and the replies to a take by `SET`.

use super::super::super::reply_tests::{ACQUIRE, EXTEND, SCRIPT_ERRORS};
use super::*;

#[test]
fn without_scripts_a_plain_lock_is_asked_for_by_set_and_other_locks_cannot_be_had() {
    let asks = took(take(TicketRequest::Fixed(6)));
    let stores = took(TakeRequest {
        stores_only: true,
        ..take(TicketRequest::Fixed(6))
    });
    let verbs = [asks, stores, Verb::Leave(None), Verb::Release(None)];
    let all = KINDS.map(|kind| verbs.map(|verb| operation(verb, kind)));
    let may_go_by_set = |asked: &Operation| {
        asked.verb == asks && matches!(asked.kind, Kind::Plain | Kind::Permit(_))
    };
    let (by_set, by_script): (Vec<_>, Vec<_>) = all.into_iter().flatten().partition(may_go_by_set);
    check(Form::Text, &by_script, SCRIPT_ERRORS);
    let errors = SCRIPT_ERRORS.replace("NoScripts", "in another form");
    check(Form::Text, &by_set, &errors);
}

#[test]
fn a_hash_that_is_not_known_or_not_permitted_is_worth_the_text() {
    let verbs = [
        ACQUIRE,
        EXTEND,
        took(take(TicketRequest::Fixed(6))),
        Verb::Leave(None),
        Verb::Raise,
        Verb::Release(None),
    ];
    let all = KINDS.map(|kind| verbs.map(|verb| operation(verb, kind)));
    check(
        Form::Hash,
        all.as_flattened(),
        "
        -NOSCRIPT No matching script. | in another form
        -ERR unknown command 'EVALSHA' | in another form
        -NOPERM this user has no permissions to run the 'evalsha' command | in another form
    ",
    );
}

#[test]
fn a_take_by_set_is_granted_or_refused() {
    check(
        Form::Set,
        &[operation(took(take(TicketRequest::Fixed(6))), Kind::Plain)],
        "
        +OK | granted
        $-1 | refused
        :1 | -
        $y 5 0 0 - -  | -
        -ERR unknown command 'SET' | Server(Err)
        -NOPERM this user has no permissions to run the 'set' command | NoPermission
        -NOPERM this user has no permissions to run the 'eval' command | NoPermission
    ",
    );
}
