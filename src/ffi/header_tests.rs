//! The header and the code agree: numbers, versions, and that the header omits nothing.

use super::code::Code;
use super::fault::FaultObject;
use super::handle::new_handle;
use super::nodes::{role_number, state_number};
use crate::event::{GaveUpReason, Severity};
use crate::fault::Fault;
use crate::{Cause, CredentialsError, NodeFault, NodeState, Phase, Redlock, ServerError, TlsError};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, c_void};
use std::fmt::Debug;
use std::ptr::{null, null_mut};
use std::time::Duration;

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
const EVENTS: &str = "NONE ACQUIRED ATTEMPT_LOST EXTENDED EXTENSION_FAILED LOST_KEY LOST_TIME NODE_DOWN \
    NODE_UP RELEASE_FAILED RELEASED EXPIRED REPAIRED NODE_MAY_EVICT NODE_QUARANTINED \
    QUARANTINE_ENDED PUBLISH_REFUSED SUBSCRIBE_REFUSED KEY_WITHOUT_EXPIRY EVENTS_DROPPED \
    NODE_NOT_DURABLE WAITING GAVE_UP WAITING_FOR_ITSELF MAX_TTL_DIFFERS NODE_COUNT_DIFFERS \
    NODE_KEY_DENIED CREDENTIALS_FAILED NODE_MOVED";

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

/// Every variant of an enum. A new one does not compile until it stands here.
macro_rules! all {
    ($type:ident: $($variant:ident $(($content:expr))? $({ $field:ident })?),*) => {{
        let _complete = |value: $type| match value { $($type::$variant { .. } => ()),* };
        [$($type::$variant $(($content))? $({ $field })?),*]
    }};
}

/// The numbers of one enum as they are here, without the underscores of their names.
fn here<N: Debug + Copy>(
    prefix: &str,
    numbers: &[N],
    number: impl Fn(N) -> i32,
) -> Vec<(String, i32)> {
    let named = |&value: &N| {
        let name = format!("{prefix}{value:?}").to_ascii_uppercase();
        let end = name.find(['(', ' ']).unwrap_or(name.len());
        (name[..end].to_owned(), number(value))
    };
    numbers.iter().map(named).collect()
}

/// A fault of this cause, as C reads it.
fn fault(cause: Cause) -> FaultObject {
    FaultObject::from(&NodeFault::new("a:1", Fault::new(Phase::Connect, cause)))
}

/// The causes of TLS, and what is wrong with a certificate.
fn tls_errors() -> Vec<(String, i32)> {
    let errors = all!(
        TlsError: Alert(40), BadCertificate, CertificateExpired, CertificateNotYetValid,
        CertificateVersion1, ClientCertificateRequired, Incompatible, Misbehaved, Required,
        UnknownIssuer, WrongName
    );
    let named = |error| {
        let fault = fault(Cause::Tls(error));
        let certificate = match error {
            TlsError::BadCertificate => "OTHER",
            TlsError::CertificateExpired => "EXPIRED",
            TlsError::CertificateNotYetValid => "NOTYETVALID",
            TlsError::CertificateVersion1 => "VERSION1",
            TlsError::UnknownIssuer => "UNKNOWNISSUER",
            TlsError::WrongName => "WRONGNAME",
            _ => return vec![("CAUSETLS".to_owned(), fault.cause())],
        };
        vec![
            ("CAUSECERTIFICATE".to_owned(), fault.cause()),
            (
                format!("CERTIFICATE{certificate}"),
                fault.number().try_into().unwrap(),
            ),
        ]
    };
    errors.into_iter().flat_map(named).collect()
}

unsafe extern "C" {
    safe fn quorumlock_client_mutex(
        client: *const c_void,
        name: *const c_char,
        name_length: usize,
        kind: c_int,
        mutex: *mut *const c_void,
    ) -> c_int;
    safe fn quorumlock_mutex_try_lock(
        mutex: *const c_void,
        guard: *mut *const c_void,
        error: *mut *const c_void,
    ) -> c_int;
    safe fn quorumlock_guard_fencing_token(guard: *const c_void) -> u64;
    safe fn quorumlock_guard_free(guard: *const c_void);
    safe fn quorumlock_mutex_free(mutex: *const c_void);
    safe fn quorumlock_client_free(client: *const c_void);
}

/// The kinds of locks, told apart by what the lock of each number does.
fn lock_kinds() -> Vec<(String, i32)> {
    let node = crate::embedded::EmbeddedNode::start().unwrap();
    let redlock = Redlock::builder().node(node.url()).build().unwrap();
    let redlock = || redlock.clone();
    let client = new_handle(redlock()).cast();
    let made = |kind| {
        let mut mutex = null();
        let code = quorumlock_client_mutex(client, c"a".as_ptr(), 1, kind, &raw mut mutex);
        (code, mutex)
    };
    for unknown in [-1, 5] {
        assert_eq!(made(unknown).0, Code::InvalidArgument as i32);
    }
    let named = |kind| {
        let (code, mutex) = made(kind);
        assert_eq!(code, Code::Ok as i32);
        let mut guard = null();
        let code = quorumlock_mutex_try_lock(mutex, &raw mut guard, null_mut());
        assert_eq!(code, Code::Ok as i32);
        let has_fence = quorumlock_guard_fencing_token(guard) > 0;
        let is_plain = redlock().mutex("a").try_lock().unwrap().is_none();
        let is_fenced = redlock().mutex("a").fenced().try_lock().unwrap().is_none();
        let is_shared = redlock().read_mutex("a").try_lock().unwrap().is_some();
        let is_written = redlock().write_mutex("a").try_lock().unwrap().is_none();
        quorumlock_guard_free(guard);
        quorumlock_mutex_free(mutex);
        let name = match (is_plain, is_fenced, is_shared, is_written, has_fence) {
            (true, false, true, false, false) => "LOCKPLAIN",
            (false, true, true, false, true) => "LOCKFENCED",
            (false, false, true, true, false) => "LOCKREAD",
            (false, false, false, true, false) => "LOCKWRITE",
            (false, false, false, true, true) => "LOCKFENCEDWRITE",
            other => panic!("{kind}: {other:?}"),
        };
        (name.to_owned(), kind)
    };
    let kinds = (0..5).map(named).collect();
    quorumlock_client_free(client);
    kinds
}

#[test]
fn numbers_are_what_they_always_were_and_the_same_in_the_header() {
    let mut header = numbers();
    for (name, number) in EVENTS.split_whitespace().zip(0..) {
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

    let phases = all!(Phase: Resolve, Connect, Handshake, Reply);
    let causes = all!(
        Cause: Auth, Backlog, Closed, ClusterMode, Credentials(CredentialsError::Empty), Database,
        Duplicate(1), FenceAhead, UnexpectedValue, Loading, NoExpiry, NoPermission, NoScripts,
        NotMaster, NotTls, OutOfMemory, Protocol, Quarantined, ReadOnly, Refused,
        Server(ServerError::Busy), System(1), TimedOut, Tls(TlsError::Required), TooManyClients,
        UnknownHost, Unreachable
    );
    let (cause, remaining) = (Cause::Refused, Duration::ZERO);
    let states =
        all!(NodeState: Down(cause), Quarantined { remaining }, Rejected(cause), Unknown, Voting);
    let reasons = all!(
        GaveUpReason: Cancelled, Failed, Held, TimedOut, TooLate, Unavailable, ShutDown
    );
    let severities = all!(Severity: Debug, Info, Warning, Error);
    let roles = [
        ("UNKNOWN", None),
        ("MASTER", Some(true)),
        ("REPLICA", Some(false)),
    ];
    let of_code = [
        here("", Code::ALL, |number| number as i32),
        here("PHASE", &phases, |number| number as i32),
        here("CAUSE", &causes, |cause| fault(cause).cause()),
        here("NODE", &states, state_number),
        here("REASON", &reasons, |number| number as i32),
        here("SEVERITY", &severities, |number| number as i32),
        roles
            .map(|(name, is)| (format!("ROLE{name}"), role_number(is)))
            .into(),
        tls_errors(),
        lock_kinds(),
    ];
    // What C is told where there is nothing.
    let none = ["PHASE", "CAUSE", "NODE", "REASON", "SEVERITY"].map(|of| (format!("{of}NONE"), 0));
    let of_code: BTreeSet<(String, i32)> = of_code.into_iter().flatten().chain(none).collect();
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
