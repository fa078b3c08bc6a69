//! Errors raised inside scripts: the error of the command inside the script, without what the
//! server put around it.
//!
//! Since 7.0, Redis passes the error of a command inside a script on with its own code in front,
//! and Valkey does too. Older servers put a place in front of most of them, and one more around
//! what a script raises and does not catch:
//!
//! ```text
//!    returned   @user_script: 11: -READONLY You can't write against a read only replica.
//!    raised     ERR Error running script (call to f_…): @user_script:4: @user_script: 4: -READONLY You can't write …
//!               ERR Error running script (call to f_…): @user_script:1: WRONGTYPE Operation against a key holding …
//! ```
//!
//! The error's code is what follows the last place. Texts that do not open as these do are not
//! searched: other errors echo what they were sent, and a key may be named like a place.

const PLACE: &[u8] = b"@user_script:";

/// The error without what the server put around it; other texts as they are.
pub(super) fn raised(text: &[u8]) -> &[u8] {
    if !text.starts_with(PLACE) && !text.starts_with(b"ERR Error running script (") {
        return text;
    }
    let Some(last) = text
        .windows(PLACE.len())
        .rposition(|window| window == PLACE)
    else {
        return text;
    };
    let number = text[last + PLACE.len()..].trim_ascii_start();
    let digits = number
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let Some(error) = number[digits..].strip_prefix(b": ").filter(|_| digits > 0) else {
        return text;
    };
    error.strip_prefix(b"-").unwrap_or(error)
}

/// The same without the word that only marks it as an error.
pub(super) fn cause(text: &[u8]) -> &[u8] {
    let error = raised(text);
    error.strip_prefix(b"ERR ").unwrap_or(error)
}

/// Whether an error means that the user may not run a command inside the script, or touch its key.
pub(super) fn is_denied(text: &[u8]) -> bool {
    let error = cause(text);
    // Redis 6.2 and 7.0; Redis 7.2 and later, and Valkey.
    error.starts_with(b"The user executing the script can't ")
        || error.starts_with(b"ACL failure in script: ")
}

/// Whether an error reply means that the server does not have a command inside the script.
pub(super) fn is_unknown_inside(text: &[u8]) -> bool {
    let error = cause(text);
    error.starts_with(b"Unknown Redis command called from ")
        || error.starts_with(b"Unknown command called from script")
}

#[cfg(test)]
mod tests {
    use super::super::asked::Asked;
    use super::super::form::{Answer, Form};
    use super::super::kinds::plain;
    use super::super::operation::Verb;
    use super::super::reply;
    use super::super::resp::Reply;
    use super::*;
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::kind::Kind;
    use crate::algorithm::vote::Vote;
    use crate::fault::server_error::ServerError;
    use crate::fault::{Cause, Fault, Phase};
    use crate::protocol::reply_tests;

    const TEXTS: &str = include_str!("error_texts.txt");
    const VERSIONS: [&str; 8] = [
        "5.0.14",
        "6.2.16",
        "7.0.15",
        "7.2.6",
        "7.4.1",
        "8.0.6",
        "8.6.2",
        "valkey-9.1.2",
    ];

    /// What a reply is taken for.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Meaning {
        WrongForm,
        Fault(Cause),
        Refused,
    }

    fn of_vote(vote: Vote) -> Meaning {
        match vote {
            Vote::Fault(Fault {
                phase: Phase::Reply,
                cause,
                ..
            }) => Meaning::Fault(cause),
            Vote::Refused => Meaning::Refused,
            vote => panic!("{vote:?}"),
        }
    }

    fn of_answer(answer: Answer) -> Meaning {
        match answer {
            Answer::Vote(vote) => of_vote(vote),
            Answer::WrongForm => Meaning::WrongForm,
            answer => panic!("{answer:?}"),
        }
    }

    /// What the text is taken for as the reply to a request, of each kind that can have been meant.
    fn meanings(request: &str, text: &str) -> Vec<Meaning> {
        let error = Reply::Error(text.as_bytes());
        let asked = |verb, kind| Asked::of(&reply_tests::operation(verb, kind));
        let of_plain = |verb| asked(verb, Kind::Plain);
        let release =
            |form| of_answer(reply::meaning(form, of_plain(Verb::Release(None)), error).unwrap());
        let extend = || {
            of_answer(
                reply::meaning(Form::Text, of_plain(Verb::Extend { ttl_millis: 1 }), error)
                    .unwrap(),
            )
        };
        let fenced = |form, operation| of_answer(reply::meaning(form, operation, error).unwrap());
        let verbs = [
            Verb::Acquire { ttl_millis: 1 },
            Verb::Extend { ttl_millis: 1 },
            Verb::Raise,
            Verb::Release(None),
        ];
        let operations = verbs.map(|verb| asked(verb, Kind::Fenced(FencingToken::MAX)));
        match request {
            "acquire" => vec![of_vote(plain::acquire_vote(error).unwrap())],
            "release" => vec![release(Form::Text)],
            "extend" => vec![extend()],
            "fenced" => operations
                .into_iter()
                .map(|operation| fenced(Form::Text, operation))
                .collect(),
            "eval" => vec![
                release(Form::Text),
                extend(),
                fenced(Form::Text, operations[0]),
            ],
            "evalsha" => vec![release(Form::Hash), fenced(Form::Hash, operations[0])],
            other => panic!("{other}"),
        }
    }

    fn expected(condition: &str, request: &str) -> Vec<Meaning> {
        use Meaning::{Fault, Refused, WrongForm};
        let meaning = match (condition, request) {
            ("busy", _) => Fault(Cause::Server(ServerError::Busy)),
            ("denied" | "key", _) => Fault(Cause::NoPermission),
            ("loading", _) => Fault(Cause::Loading),
            ("masterdown", _) => Fault(Cause::Server(ServerError::MasterDown)),
            ("misconf", _) => Fault(Cause::Server(ServerError::Misconf)),
            ("noeval" | "norun", "eval") => Fault(Cause::NoScripts),
            ("noeval" | "noscript", "evalsha") => WrongForm,
            ("noreplicas", _) => Fault(Cause::Server(ServerError::NoReplicas)),
            ("oom", _) => Fault(Cause::OutOfMemory),
            ("readonly", _) => Fault(Cause::ReadOnly),
            ("renamed", _) => Fault(Cause::Server(ServerError::Err)),
            ("wrongtype", _) => Refused,
            other => panic!("{other:?}"),
        };
        let kinds = match request {
            "fenced" => 4,
            "eval" => 3,
            "evalsha" => 2,
            _ => 1,
        };
        vec![meaning; kinds]
    }

    /// The rows of the recorded table: condition, request, versions, text.
    fn rows() -> impl Iterator<Item = [&'static str; 4]> {
        let rows = TEXTS.lines().filter(|line| !line.starts_with('#'));
        rows.map(|row| row.splitn(4, " | ").collect::<Vec<_>>().try_into().unwrap())
    }

    #[test]
    fn every_error_of_every_version_means_what_it_says() {
        let wrong: Vec<String> = rows()
            .filter(|[condition, request, _, text]| {
                meanings(request, text) != expected(condition, request)
            })
            .map(|[condition, request, versions, text]| {
                let got = meanings(request, text);
                format!("{condition} {request} {versions}: {text}\n    is taken for {got:?}")
            })
            .collect();
        assert!(
            wrong.is_empty(),
            "{} rows:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }

    #[test]
    fn every_version_has_its_row_for_everything_that_can_befall_a_script() {
        // Redis 5.0 has no rights by user, and does not look for replicas when a script writes.
        let recorded = |version: &str, condition: &str, request: &str| {
            let is_of = |versions: &str| {
                versions == "all" || versions.split(' ').any(|other| other == version)
            };
            rows().any(|row| row[..2] == [condition, request] && is_of(row[2]))
        };
        for version in VERSIONS {
            for condition in [
                "busy",
                "loading",
                "masterdown",
                "misconf",
                "noreplicas",
                "readonly",
                "renamed",
            ] {
                let excused = version == "5.0.14" && condition == "noreplicas";
                for request in ["release", "extend", "fenced"] {
                    assert!(
                        excused || recorded(version, condition, request),
                        "{version} {condition} {request}"
                    );
                }
            }
            for (condition, request) in [
                ("oom", "fenced"),
                ("oom", "eval"),
                ("wrongtype", "release"),
                ("norun", "eval"),
            ] {
                assert!(
                    recorded(version, condition, request),
                    "{version} {condition} {request}"
                );
            }
            for request in ["release", "extend", "fenced"] {
                assert!(
                    version == "5.0.14" || recorded(version, "denied", request),
                    "{version} denied {request}"
                );
            }
        }
    }

    #[test]
    fn an_echo_that_looks_like_a_place_is_none() {
        for text in [
            "ERR unknown command 'X', with args beginning with: '@user_script: 1: -OOM x'",
            "ERR @user_script: 1: -OOM",
            "WRONGPASS @user_script: 1: -OOM",
            "@user_script: x: -OOM",
            "@user_script:: -OOM",
            "@user_script: 1:-OOM",
            "@user_script: 1",
            "@user_script:",
            "ERR Error running script (call to f_1): -OOM",
        ] {
            assert_eq!(raised(text.as_bytes()), text.as_bytes());
        }
        assert_eq!(raised(b"@user_script: 70: -OOM x"), b"OOM x");
        assert_eq!(
            raised(b"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE x"),
            b"WRONGTYPE x"
        );
    }
}
