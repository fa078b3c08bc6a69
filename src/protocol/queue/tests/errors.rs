//! Error replies to the scripts, and the replies to a take by `SET`.

use super::*;

#[test]
fn without_scripts_a_plain_lock_is_asked_for_by_set_and_other_locks_cannot_be_had() {
    let errors = [
        (
            "ERR unknown command 'EVAL', with args beginning with: 'l' ",
            Cause::NoScripts,
        ),
        (
            "ERR Could not find scripting engine 'lua'",
            Cause::NoScripts,
        ),
        (
            "NOPERM this user has no permissions to run the 'eval' command",
            Cause::NoScripts,
        ),
        ("NOPERM No permissions to access a key", Cause::NoPermission),
        (
            "ERR The user executing the script can't run this command or subcommand",
            Cause::NoPermission,
        ),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            Cause::OutOfMemory,
        ),
        (
            "READONLY You can't write against a read only replica.",
            Cause::ReadOnly,
        ),
    ];
    let asks = took(take(TicketRequest::Fixed(6)));
    let stores = took(TakeRequest {
        stores_only: true,
        ..take(TicketRequest::Fixed(6))
    });
    for (text, cause) in errors {
        for kind in KINDS {
            for (verb, grants) in [
                (asks, true),
                (stores, false),
                (Verb::Leave(None), false),
                (Verb::Release(None), false),
            ] {
                let by_set = grants
                    && matches!(kind, Kind::Plain | Kind::Permit(_))
                    && cause == Cause::NoScripts;
                let expected = if by_set {
                    Ok(Answer::WrongForm)
                } else {
                    failed(cause)
                };
                assert_eq!(
                    meaning(verb, kind, Reply::Error(text.as_bytes())),
                    expected,
                    "{text} to {verb:?}, {kind:?}"
                );
            }
        }
    }
}

#[test]
fn a_hash_that_is_not_known_or_not_permitted_is_worth_the_text() {
    for text in [
        "NOSCRIPT No matching script.",
        "ERR unknown command 'EVALSHA'",
        "NOPERM this user has no permissions to run the 'evalsha' command",
    ] {
        for kind in KINDS {
            for verb in [
                Verb::Acquire { ttl_millis: 30_000 },
                Verb::Extend { ttl_millis: 30_000 },
                took(take(TicketRequest::Fixed(6))),
                Verb::Leave(None),
                Verb::Raise,
                Verb::Release(None),
            ] {
                let by_hash = reply::meaning(
                    Form::Hash,
                    Asked::of(&operation(verb, kind)),
                    Reply::Error(text.as_bytes()),
                );
                assert_eq!(
                    by_hash,
                    Ok(Answer::WrongForm),
                    "{text} to {verb:?}, {kind:?}"
                );
            }
        }
    }
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
