//! The header and the code agree: numbers, versions, and that the header omits nothing.

use super::code::Code;
use super::error_object::{CauseNumber, CertificateNumber, PhaseNumber};
use super::mutex::LockKind;
use super::nodes::{NodeStateNumber, RoleNumber};
use crate::event::{GaveUpReason, Severity};
use std::collections::BTreeMap;

const HEADER: &str = include_str!("quorumlock.h");

/// Every number that was ever published: its name, what it is here, and what it has always been.
/// Lines may be added, and never changed or taken out.
const PUBLISHED: &[(&str, i32, i32)] = &[
    ("QUORUMLOCK_OK", Code::Ok as i32, 0),
    ("QUORUMLOCK_HELD", Code::Held as i32, 1),
    ("QUORUMLOCK_EXPIRED", Code::Expired as i32, 2),
    ("QUORUMLOCK_LOST", Code::Lost as i32, 3),
    ("QUORUMLOCK_NOT_HELD", Code::NotHeld as i32, 4),
    ("QUORUMLOCK_CONFIG", Code::Config as i32, 100),
    ("QUORUMLOCK_UNAVAILABLE", Code::Unavailable as i32, 101),
    ("QUORUMLOCK_LEASE_LOST", Code::LeaseLost as i32, 102),
    ("QUORUMLOCK_CANCELLED", Code::Cancelled as i32, 103),
    ("QUORUMLOCK_ENTROPY", Code::Entropy as i32, 104),
    ("QUORUMLOCK_FORKED", Code::Forked as i32, 105),
    (
        "QUORUMLOCK_EXTENSION_FAILED",
        Code::ExtensionFailed as i32,
        106,
    ),
    (
        "QUORUMLOCK_LEASE_TOO_SHORT",
        Code::LeaseTooShort as i32,
        107,
    ),
    ("QUORUMLOCK_SHUT_DOWN", Code::ShutDown as i32, 108),
    (
        "QUORUMLOCK_SHUTDOWN_INCOMPLETE",
        Code::ShutdownIncomplete as i32,
        109,
    ),
    ("QUORUMLOCK_NULL_POINTER", Code::NullPointer as i32, 200),
    ("QUORUMLOCK_NOT_UTF8", Code::NotUtf8 as i32, 201),
    ("QUORUMLOCK_TOO_LONG", Code::TooLong as i32, 202),
    ("QUORUMLOCK_BUSY", Code::Busy as i32, 203),
    ("QUORUMLOCK_CONSUMED", Code::Consumed as i32, 204),
    ("QUORUMLOCK_UNSUPPORTED", Code::Unsupported as i32, 205),
    ("QUORUMLOCK_PANIC", Code::Panic as i32, 300),
    ("QUORUMLOCK_PHASE_NONE", PhaseNumber::None as i32, 0),
    ("QUORUMLOCK_PHASE_RESOLVE", PhaseNumber::Resolve as i32, 1),
    ("QUORUMLOCK_PHASE_CONNECT", PhaseNumber::Connect as i32, 2),
    (
        "QUORUMLOCK_PHASE_HANDSHAKE",
        PhaseNumber::Handshake as i32,
        3,
    ),
    ("QUORUMLOCK_PHASE_REPLY", PhaseNumber::Reply as i32, 4),
    ("QUORUMLOCK_CAUSE_NONE", CauseNumber::None as i32, 0),
    ("QUORUMLOCK_CAUSE_AUTH", CauseNumber::Auth as i32, 1),
    ("QUORUMLOCK_CAUSE_BACKLOG", CauseNumber::Backlog as i32, 2),
    ("QUORUMLOCK_CAUSE_CLOSED", CauseNumber::Closed as i32, 3),
    (
        "QUORUMLOCK_CAUSE_CLUSTER_MODE",
        CauseNumber::ClusterMode as i32,
        4,
    ),
    ("QUORUMLOCK_CAUSE_DATABASE", CauseNumber::Database as i32, 5),
    (
        "QUORUMLOCK_CAUSE_DUPLICATE",
        CauseNumber::Duplicate as i32,
        6,
    ),
    ("QUORUMLOCK_CAUSE_LOADING", CauseNumber::Loading as i32, 7),
    (
        "QUORUMLOCK_CAUSE_NO_PERMISSION",
        CauseNumber::NoPermission as i32,
        8,
    ),
    (
        "QUORUMLOCK_CAUSE_NOT_MASTER",
        CauseNumber::NotMaster as i32,
        9,
    ),
    (
        "QUORUMLOCK_CAUSE_OUT_OF_MEMORY",
        CauseNumber::OutOfMemory as i32,
        10,
    ),
    (
        "QUORUMLOCK_CAUSE_PROTOCOL",
        CauseNumber::Protocol as i32,
        11,
    ),
    (
        "QUORUMLOCK_CAUSE_QUARANTINED",
        CauseNumber::Quarantined as i32,
        12,
    ),
    (
        "QUORUMLOCK_CAUSE_READ_ONLY",
        CauseNumber::ReadOnly as i32,
        13,
    ),
    ("QUORUMLOCK_CAUSE_REFUSED", CauseNumber::Refused as i32, 14),
    ("QUORUMLOCK_CAUSE_SERVER", CauseNumber::Server as i32, 15),
    ("QUORUMLOCK_CAUSE_SYSTEM", CauseNumber::System as i32, 16),
    (
        "QUORUMLOCK_CAUSE_TIMED_OUT",
        CauseNumber::TimedOut as i32,
        17,
    ),
    (
        "QUORUMLOCK_CAUSE_TOO_MANY_CLIENTS",
        CauseNumber::TooManyClients as i32,
        18,
    ),
    (
        "QUORUMLOCK_CAUSE_UNKNOWN_HOST",
        CauseNumber::UnknownHost as i32,
        19,
    ),
    (
        "QUORUMLOCK_CAUSE_UNREACHABLE",
        CauseNumber::Unreachable as i32,
        20,
    ),
    (
        "QUORUMLOCK_INVALID_ARGUMENT",
        Code::InvalidArgument as i32,
        206,
    ),
    ("QUORUMLOCK_NODE_NONE", NodeStateNumber::None as i32, 0),
    (
        "QUORUMLOCK_NODE_UNKNOWN",
        NodeStateNumber::Unknown as i32,
        1,
    ),
    ("QUORUMLOCK_NODE_VOTING", NodeStateNumber::Voting as i32, 2),
    ("QUORUMLOCK_NODE_DOWN", NodeStateNumber::Down as i32, 3),
    (
        "QUORUMLOCK_NODE_REJECTED",
        NodeStateNumber::Rejected as i32,
        4,
    ),
    (
        "QUORUMLOCK_NODE_QUARANTINED",
        NodeStateNumber::Quarantined as i32,
        5,
    ),
    ("QUORUMLOCK_ROLE_UNKNOWN", RoleNumber::Unknown as i32, 0),
    ("QUORUMLOCK_ROLE_MASTER", RoleNumber::Master as i32, 1),
    ("QUORUMLOCK_ROLE_REPLICA", RoleNumber::Replica as i32, 2),
    (
        "QUORUMLOCK_CAUSE_UNEXPECTED_VALUE",
        CauseNumber::UnexpectedValue as i32,
        21,
    ),
    (
        "QUORUMLOCK_CAUSE_NO_SCRIPTS",
        CauseNumber::NoScripts as i32,
        22,
    ),
    (
        "QUORUMLOCK_CAUSE_FENCE_AHEAD",
        CauseNumber::FenceAhead as i32,
        23,
    ),
    (
        "QUORUMLOCK_CAUSE_NO_EXPIRY",
        CauseNumber::NoExpiry as i32,
        24,
    ),
    ("QUORUMLOCK_STILL_HELD", Code::StillHeld as i32, 5),
    ("QUORUMLOCK_REASON_NONE", 0, 0),
    (
        "QUORUMLOCK_REASON_CANCELLED",
        GaveUpReason::Cancelled as i32,
        1,
    ),
    ("QUORUMLOCK_REASON_FAILED", GaveUpReason::Failed as i32, 2),
    ("QUORUMLOCK_REASON_HELD", GaveUpReason::Held as i32, 3),
    (
        "QUORUMLOCK_REASON_TIMED_OUT",
        GaveUpReason::TimedOut as i32,
        4,
    ),
    (
        "QUORUMLOCK_REASON_TOO_LATE",
        GaveUpReason::TooLate as i32,
        5,
    ),
    (
        "QUORUMLOCK_REASON_UNAVAILABLE",
        GaveUpReason::Unavailable as i32,
        6,
    ),
    (
        "QUORUMLOCK_REASON_SHUT_DOWN",
        GaveUpReason::ShutDown as i32,
        7,
    ),
    ("QUORUMLOCK_SEVERITY_NONE", 0, 0),
    ("QUORUMLOCK_SEVERITY_DEBUG", Severity::Debug as i32, 1),
    ("QUORUMLOCK_SEVERITY_INFO", Severity::Info as i32, 2),
    ("QUORUMLOCK_SEVERITY_WARNING", Severity::Warning as i32, 3),
    ("QUORUMLOCK_SEVERITY_ERROR", Severity::Error as i32, 4),
    (
        "QUORUMLOCK_CAUSE_CERTIFICATE",
        CauseNumber::Certificate as i32,
        25,
    ),
    ("QUORUMLOCK_CAUSE_NOT_TLS", CauseNumber::NotTls as i32, 26),
    ("QUORUMLOCK_CAUSE_TLS", CauseNumber::Tls as i32, 27),
    (
        "QUORUMLOCK_CAUSE_CREDENTIALS",
        CauseNumber::Credentials as i32,
        28,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_OTHER",
        CertificateNumber::Other as i32,
        1,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_UNKNOWN_ISSUER",
        CertificateNumber::UnknownIssuer as i32,
        2,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_EXPIRED",
        CertificateNumber::Expired as i32,
        3,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_NOT_YET_VALID",
        CertificateNumber::NotYetValid as i32,
        4,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_WRONG_NAME",
        CertificateNumber::WrongName as i32,
        5,
    ),
    (
        "QUORUMLOCK_CERTIFICATE_VERSION_1",
        CertificateNumber::Version1 as i32,
        6,
    ),
    ("QUORUMLOCK_LOCK_PLAIN", LockKind::Plain as i32, 0),
    ("QUORUMLOCK_LOCK_FENCED", LockKind::Fenced as i32, 1),
    ("QUORUMLOCK_LOCK_READ", LockKind::Read as i32, 2),
    ("QUORUMLOCK_LOCK_WRITE", LockKind::Write as i32, 3),
    (
        "QUORUMLOCK_LOCK_FENCED_WRITE",
        LockKind::FencedWrite as i32,
        4,
    ),
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

#[test]
fn numbers_are_what_they_always_were_and_the_same_in_the_header() {
    let mut header = numbers();
    for &(name, here, always) in PUBLISHED {
        assert_eq!(
            (here, header.remove(name)),
            (always, Some(always)),
            "{name}"
        );
    }
    for (name, number) in EVENTS.iter().zip(0..) {
        assert_eq!(
            header.remove(&*format!("QUORUMLOCK_EVENT_{name}")),
            Some(number),
            "{name}"
        );
    }
    assert!(header.is_empty(), "to be added to these lists: {header:?}");
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
