//! The header and the code agree: numbers, versions, and that the header omits nothing.

use super::code::Code;
use super::fault::{CauseNumber, CertificateNumber, PhaseNumber};
use super::mutex::LockKind;
use super::nodes::{NodeStateNumber, RoleNumber};
use crate::event::{GaveUpReason, Severity};
use std::collections::BTreeMap;
use std::fmt::Debug;

const HEADER: &str = include_str!("quorumlock.h");

/// Every number that was ever published. Lines may be added, and never changed or taken out.
const PUBLISHED: [&str; 9] = [
    "OK=0 HELD=1 EXPIRED=2 LOST=3 NOT_HELD=4 STILL_HELD=5 CONFIG=100 UNAVAILABLE=101 \
     LEASE_LOST=102 CANCELLED=103 ENTROPY=104 FORKED=105 EXTENSION_FAILED=106 \
     LEASE_TOO_SHORT=107 SHUT_DOWN=108 SHUTDOWN_INCOMPLETE=109 NULL_POINTER=200 \
     NOT_UTF8=201 TOO_LONG=202 BUSY=203 CONSUMED=204 UNSUPPORTED=205 INVALID_ARGUMENT=206 \
     PANIC=300",
    "PHASE_NONE=0 PHASE_RESOLVE=1 PHASE_CONNECT=2 PHASE_HANDSHAKE=3 PHASE_REPLY=4",
    "CAUSE_NONE=0 CAUSE_AUTH=1 CAUSE_BACKLOG=2 CAUSE_CLOSED=3 CAUSE_CLUSTER_MODE=4 \
     CAUSE_DATABASE=5 CAUSE_DUPLICATE=6 CAUSE_LOADING=7 CAUSE_NO_PERMISSION=8 \
     CAUSE_NOT_MASTER=9 CAUSE_OUT_OF_MEMORY=10 CAUSE_PROTOCOL=11 CAUSE_QUARANTINED=12 \
     CAUSE_READ_ONLY=13 CAUSE_REFUSED=14 CAUSE_SERVER=15 CAUSE_SYSTEM=16 CAUSE_TIMED_OUT=17 \
     CAUSE_TOO_MANY_CLIENTS=18 CAUSE_UNKNOWN_HOST=19 CAUSE_UNREACHABLE=20 \
     CAUSE_UNEXPECTED_VALUE=21 CAUSE_NO_SCRIPTS=22 CAUSE_FENCE_AHEAD=23 CAUSE_NO_EXPIRY=24 \
     CAUSE_CERTIFICATE=25 CAUSE_NOT_TLS=26 CAUSE_TLS=27 CAUSE_CREDENTIALS=28",
    "CERTIFICATE_OTHER=1 CERTIFICATE_UNKNOWN_ISSUER=2 CERTIFICATE_EXPIRED=3 \
     CERTIFICATE_NOT_YET_VALID=4 CERTIFICATE_WRONG_NAME=5 CERTIFICATE_VERSION_1=6",
    "NODE_NONE=0 NODE_UNKNOWN=1 NODE_VOTING=2 NODE_DOWN=3 NODE_REJECTED=4 \
     NODE_QUARANTINED=5",
    "ROLE_UNKNOWN=0 ROLE_MASTER=1 ROLE_REPLICA=2",
    "LOCK_PLAIN=0 LOCK_FENCED=1 LOCK_READ=2 LOCK_WRITE=3 LOCK_FENCED_WRITE=4",
    "REASON_NONE=0 REASON_CANCELLED=1 REASON_FAILED=2 REASON_HELD=3 REASON_TIMED_OUT=4 \
     REASON_TOO_LATE=5 REASON_UNAVAILABLE=6 REASON_SHUT_DOWN=7",
    "SEVERITY_NONE=0 SEVERITY_DEBUG=1 SEVERITY_INFO=2 SEVERITY_WARNING=3 SEVERITY_ERROR=4",
];

/// The kinds of events, by their numbers.
const EVENTS: &[&str] = &[
    "NONE",
    "ACQUIRED",
    "ATTEMPT_LOST",
    "EXTENDED",
    "EXTENSION_FAILED",
    "LOST_KEY",
    "LOST_TIME",
    "NODE_DOWN",
    "NODE_UP",
    "RELEASE_FAILED",
    "RELEASED",
    "EXPIRED",
    "REPAIRED",
    "NODE_MAY_EVICT",
    "NODE_QUARANTINED",
    "QUARANTINE_ENDED",
    "PUBLISH_REFUSED",
    "SUBSCRIBE_REFUSED",
    "KEY_WITHOUT_EXPIRY",
    "EVENTS_DROPPED",
    "NODE_NOT_DURABLE",
    "WAITING",
    "GAVE_UP",
    "WAITING_FOR_ITSELF",
    "MAX_TTL_DIFFERS",
    "NODE_COUNT_DIFFERS",
    "NODE_KEY_DENIED",
    "CREDENTIALS_FAILED",
    "NODE_MOVED",
];

/// Every `NAME = number,` of the header.
pub(super) fn numbers() -> BTreeMap<&'static str, i32> {
    let number = |line: &'static str| {
        let (name, number) = line
            .trim()
            .strip_suffix(',')
            .unwrap_or(line.trim())
            .split_once(" = ")?;
        Some((name, number.parse().ok()?))
    };
    HEADER.lines().filter_map(number).collect()
}

/// Every function of the header, with the comment above it.
fn functions() -> Vec<(&'static str, &'static str)> {
    let code = HEADER.split("extern \"C\" {").nth(1).unwrap_or_default();
    let mut functions = Vec::new();
    for paragraph in code
        .split("\n\n")
        .filter(|paragraph| paragraph.trim_end().ends_with(");"))
    {
        let Some((comment, declaration)) = paragraph.rsplit_once("*/\n") else {
            functions.push(("", paragraph));
            continue;
        };
        if !declaration.starts_with("typedef") {
            functions.push((comment, declaration));
        }
    }
    functions
}

/// The numbers of one enum as they are here, without the underscores of their names.
fn here<N: Debug + Copy>(
    prefix: &str,
    numbers: &[N],
    number: impl Fn(N) -> i32,
) -> Vec<(String, i32)> {
    let named = |&name: &N| {
        (
            format!("{prefix}{name:?}").to_ascii_uppercase(),
            number(name),
        )
    };
    numbers.iter().map(named).collect()
}

#[test]
fn numbers_are_what_they_always_were_and_the_same_in_the_header() {
    let mut header = numbers();
    for (name, number) in EVENTS.iter().zip(0..) {
        let number_here = header.remove(&*format!("QUORUMLOCK_EVENT_{name}"));
        assert_eq!(number_here, Some(number), "{name}");
    }
    let published: BTreeMap<String, i32> = PUBLISHED
        .iter()
        .flat_map(|numbers| numbers.split_whitespace())
        .filter_map(|number| number.split_once('='))
        .map(|(name, number)| (format!("QUORUMLOCK_{name}"), number.parse().unwrap()))
        .collect();
    let header: BTreeMap<String, i32> = header
        .into_iter()
        .map(|(name, number)| (name.to_owned(), number))
        .collect();
    assert_eq!(header, published);

    use GaveUpReason::*;
    use Severity::*;
    let reasons = [
        Cancelled,
        Failed,
        Held,
        TimedOut,
        TooLate,
        Unavailable,
        ShutDown,
    ];
    let of_code = [
        here("", Code::ALL, |number| number as i32),
        here("PHASE", PhaseNumber::ALL, |number| number as i32),
        here("CAUSE", CauseNumber::ALL, |number| number as i32),
        here("CERTIFICATE", CertificateNumber::ALL, |number| {
            number as i32
        }),
        here("NODE", NodeStateNumber::ALL, |number| number as i32),
        here("ROLE", RoleNumber::ALL, |number| number as i32),
        here("LOCK", LockKind::ALL, |number| number as i32),
        here("REASON", &reasons, |number| number as i32),
        here("SEVERITY", &[Debug, Info, Warning, Error], |number| {
            number as i32
        }),
    ];
    // What C is told where there is no reason and no severity.
    let none = ["REASON", "SEVERITY"].map(|of| (format!("{of}NONE"), 0));
    let of_code: BTreeMap<String, i32> = of_code.into_iter().flatten().chain(none).collect();
    let without = |name: &String| name["QUORUMLOCK_".len()..].replace('_', "");
    let published = published
        .iter()
        .map(|(name, &number)| (without(name), number));
    assert_eq!(of_code, published.collect());
}

/// What holds for every function is stated once. Each function has a comment, which states only
/// what differs.
#[test]
fn conventions_are_stated_once() {
    let conventions = HEADER.split("#ifndef").next().unwrap_or_default();
    let subjects = [
        "owns",
        "NULL",
        "Threads: any thread",
        "Signals: ",
        "After fork()",
        "Callbacks",
        "dlclose()",
    ];
    for words in subjects {
        assert!(
            conventions.contains(words),
            "the conventions do not say {words:?}"
        );
    }
    let functions = functions();
    assert!(functions.len() > 70, "{}", functions.len());
    for (comment, declaration) in functions {
        let comment = comment.replace("\n * ", " ");
        assert!(
            comment.trim_start_matches("/* ").len() > 10,
            "{declaration}: has no comment"
        );
        for words in [
            "ny thread. ",
            "signal handler",
            "NULL is allowed",
            " for NULL, and",
        ] {
            assert!(
                !comment.contains(words),
                "{declaration}: repeats a convention, {words:?}"
            );
        }
        // Each result that it can give, by whatever name, is one.
        for word in comment
            .split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_' || letter == '8'))
        {
            let known = |name: &str| numbers().keys().any(|known| known.ends_with(name));
            assert!(
                !(word.starts_with('_') && word.len() > 1) || known(word),
                "{declaration}: {word} is no result"
            );
            assert!(
                !word.starts_with("QUORUMLOCK_") || known(word),
                "{declaration}: {word} is no result"
            );
        }
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let part = |name: &str| {
        let line = HEADER
            .lines()
            .find_map(|line| line.strip_prefix(&format!("#define QUORUMLOCK_VERSION_{name} ")));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(
        ["MAJOR", "MINOR", "PATCH"].map(part).join("."),
        env!("CARGO_PKG_VERSION")
    );
}
