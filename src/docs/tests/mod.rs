//! The page of every message of an error or an event: rendered by the code, compared with the
//! manual's page. `QUORUMLOCK_WRITE_MESSAGES=1 cargo test --all-features --lib docs` writes the
//! page anew.
//!
//! Here are the faults of nodes and the page; `errors` has the errors, `events` the events,
//! `statuses` the statuses of nodes.

mod errors;
pub(crate) mod events;
mod statuses;

use crate::events::error::NodeFault;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::server_error::ServerError;
use crate::fault::tls_error::TlsError;
use crate::fault::{Cause, Fault, Phase};
use crate::ffi::event_tests;
use crate::{FenceChecker, FencingToken};
use errors::{TIMEOUT, errors, unavailable, url_errors};
use statuses::looks;
use std::fmt::{Display, Write};
use std::path::Path;
use std::time::Duration;

/// A fault, and what to do about it.
type Remedied = (Fault, &'static str);

impl Fault {
    fn with_remedy(self, remedy: &'static str) -> Remedied {
        (self, remedy)
    }
}

/// What can be wrong with one node, and what to do about it.
fn node_faults() -> Vec<Remedied> {
    use Phase::{Connect, Handshake, Reply, Resolve};
    let fault = Fault::new;
    let denied = |detail| fault(Reply, Cause::NoPermission).with(detail);
    let server = |error| {
        fault(Reply, Cause::Server(error))
            .with_remedy("Check the server; the word is that of its error reply")
    };
    let timed_out = |phase| fault(phase, Cause::TimedOut).with(TIMEOUT);
    let auth = |detail| fault(Handshake, Cause::Auth).with(detail);
    let tls = |error| fault(Handshake, Cause::Tls(error));
    let protocol = |error| {
        Fault::protocol(Reply, error)
            .with_remedy("Check which program answers there: it violates RESP2")
    };
    let credentials = |error| fault(Handshake, Cause::Credentials(error));
    vec![
        timed_out(Resolve).with_remedy("Check the DNS"),
        timed_out(Connect).with_remedy(
            "Check the node, the network and firewalls; raise `node_timeout` for a \
             far node",
        ),
        timed_out(Handshake)
            .with_remedy("What listens there does not answer: a hung server, or no Redis server"),
        timed_out(Reply).with_remedy(
            "Check the node, or raise `node_timeout`. The command may still run later",
        ),
        fault(Reply, Cause::TimedOut)
            .with(Detail::Limit(Duration::from_millis(40), None))
            .with_remedy(
                "The attempt had less time, by a short ttl or the limit of the call. With \
                 30 s, the node hangs",
            ),
        fault(Connect, Cause::TimedOut).with_remedy("Check the node and the network"),
        fault(Resolve, Cause::UnknownHost)
            .with_remedy("Correct the host name in the URL, or the DNS"),
        fault(Connect, Cause::Refused).with_remedy("Start the server, or correct the address"),
        fault(Connect, Cause::Unreachable).with_remedy("Check the network"),
        fault(Connect, Cause::Closed)
            .with_remedy("Check the server's log, and the devices on the way to it"),
        fault(Handshake, Cause::Closed)
            .with_remedy("Name a port without TLS, and a server instead of a proxy"),
        fault(Reply, Cause::Closed).with_remedy(
            "The server ended, or a device on the way closed the connection; the next \
             attempt connects again",
        ),
        fault(Connect, Cause::System(24))
            .with_remedy("By the error number; here, raise the limit of open files (`ulimit -n`)"),
        Fault::protocol(Handshake, ProtocolError::UnknownType)
            .with_remedy("Name a Redis or Valkey server, and a port without TLS"),
        protocol(ProtocolError::ArrayTooLong),
        protocol(ProtocolError::BadNumber),
        protocol(ProtocolError::BulkTooLong),
        protocol(ProtocolError::LineTooLong),
        protocol(ProtocolError::MissingCrlf),
        protocol(ProtocolError::ReplyTooLong),
        protocol(ProtocolError::TooDeep),
        protocol(ProtocolError::UnexpectedReply),
        protocol(ProtocolError::UnknownType),
        protocol(ProtocolError::Unrequested),
        tls(TlsError::UnknownIssuer)
            .with_remedy("Name the root that has issued it by `Tls::roots_file`: [page about TLS]"),
        tls(TlsError::WrongName)
            .with_remedy("Issue one with a SAN for the URL's host, or add `?server_name=`"),
        tls(TlsError::CertificateExpired)
            .with_remedy("Issue a new one, and let the server read it"),
        tls(TlsError::CertificateNotYetValid)
            .with_remedy("Check the clocks of this machine and of the one that issued it"),
        tls(TlsError::CertificateVersion1)
            .with_remedy("Issue one with `-extfile`: [page about TLS]"),
        tls(TlsError::BadCertificate)
            .with_remedy("Check it by `openssl verify` and `openssl x509 -text`"),
        fault(Handshake, Cause::NotTls)
            .with_remedy("Name the port of TLS (`tls-port`), or write `redis://`"),
        tls(TlsError::ClientCertificateRequired)
            .with_remedy("Give one by `Tls::identity_file`, or set `tls-auth-clients no`"),
        tls(TlsError::Alert(48)).with_remedy(
            "Let the server trust the issuer of the client certificate: \
             `tls-ca-cert-file`",
        ),
        tls(TlsError::Alert(45)).with_remedy("Issue a new client certificate"),
        tls(TlsError::Alert(40)).with_remedy(
            "Check the server's `tls-protocols`, `tls-ciphers` and `tls-ciphersuites`",
        ),
        tls(TlsError::Alert(20))
            .with_remedy("Look the number up in RFC 8446, section 6, and check the server's log"),
        tls(TlsError::Incompatible).with_remedy(
            "Allow TLS 1.2 or 1.3 on the server, and a certificate of RSA, ECDSA or \
             Ed25519",
        ),
        tls(TlsError::Required)
            .with_remedy("Write `rediss://` in the URL, or name a port without TLS"),
        tls(TlsError::Misbehaved)
            .with_remedy("Check which program answers there, and devices on the way to it"),
        auth(Detail::PasswordMissing)
            .with_remedy("Put the password into the URL: `redis://:password@host`"),
        auth(Detail::PasswordWrong).with_remedy("Correct user and password in the URL"),
        auth(Detail::PasswordUnset)
            .with_remedy("Take the password out of the URL, or set it on the server"),
        auth(Detail::UsersUnknown).with_remedy("Take the user out of the URL"),
        auth(Detail::None).with_remedy("Correct user and password in the URL"),
        denied(Detail::Command("SET"))
            .with_remedy("Allow the command in the user's ACL: [operations page], access control"),
        denied(Detail::Command("EVAL with GET and DEL"))
            .with_remedy("Allow what a release needs in the user's ACL"),
        denied(Detail::Command("EVAL with GET and PEXPIRE"))
            .with_remedy("Allow what an extension needs in the user's ACL"),
        denied(Detail::Command("GET")).with_remedy("Allow it, for `holder`"),
        denied(Detail::Command("PTTL")).with_remedy("Allow it, for `holder`"),
        denied(Detail::Command("TIME")).with_remedy("Allow it, for `holder` of a fenced lock"),
        denied(Detail::Key("SET")).with_remedy("Allow the key pattern in the user's ACL"),
        denied(Detail::Key("EVAL with GET, SET and TIME"))
            .with_remedy("Allow `~quorumlock-*:…` in the user's ACL"),
        denied(Detail::Key("EVAL with GET, SET, DEL, PTTL and TIME"))
            .with_remedy("Allow `~quorumlock-*:…` in the user's ACL"),
        denied(Detail::Key("EVAL with GET, SET, DEL, PEXPIRE and TIME"))
            .with_remedy("Allow `~quorumlock-*:…` in the user's ACL"),
        fault(Handshake, Cause::NoPermission)
            .with(Detail::Command("SELECT"))
            .with_remedy("Allow it, or use database 0"),
        denied(Detail::Command("PUBLISH"))
            .with_remedy("Allow it, or switch `release_notifications` off"),
        denied(Detail::Command("SUBSCRIBE"))
            .with_remedy("Allow it, or switch `release_notifications` off"),
        denied(Detail::None).with_remedy("Check the user's ACL"),
        fault(Reply, Cause::Server(ServerError::Err))
            .with(Detail::Command("SET"))
            .with_remedy(
                "Give the command its name back (`rename-command`), or name a newer server",
            ),
        fault(Reply, Cause::NoScripts)
            .with_remedy("Let the user run `EVAL`, or name a node that has scripts"),
        fault(Reply, Cause::UnexpectedValue).with_remedy(
            "Find out which program wrote the key of a fenced or read-write lock, and \
             delete it",
        ),
        fault(Reply, Cause::NoExpiry).with_remedy(
            "Delete the key, unless a program holds the lock: [operations page], \
             other clients",
        ),
        fault(Reply, Cause::FenceAhead).with_remedy(
            "On one node: set its clock right, and wait for the key's retention; \
             delete the key there only where no writer uses its fence. On all nodes: \
             set the clock of this machine right",
        ),
        fault(Handshake, Cause::Database)
            .with_remedy("Correct the number in the URL, or raise `databases` on the server"),
        fault(Handshake, Cause::NotMaster)
            .with_remedy("Name a master: this is a replica, or became one"),
        fault(Reply, Cause::NotMaster)
            .with(Detail::Master(([10, 0, 0, 7], 6379).into()))
            .with_remedy(
                "Wait: connections lead to that server from now on, if it has the same keys",
            ),
        fault(Reply, Cause::ReadOnly)
            .with_remedy("Name a master: this is a replica, or became one"),
        fault(Handshake, Cause::ClusterMode)
            .with(Detail::Shards(3, 16_384))
            .with_remedy("Name clusters of one shard each, or masters without cluster mode"),
        fault(Handshake, Cause::ClusterMode)
            .with(Detail::Shards(1, 5461))
            .with_remedy("Assign all slots (`CLUSTER ADDSLOTSRANGE 0 16383`)"),
        denied(Detail::Command("CLUSTER INFO"))
            .with_remedy("Allow it (`+cluster|info`): it shows whether the cluster is one shard"),
        fault(Handshake, Cause::Duplicate(0))
            .with_remedy("Two URLs lead to one server: name another server"),
        fault(Reply, Cause::Quarantined)
            .with(Detail::Left(Duration::from_millis(58_300)))
            .with_remedy(
                "Wait for at most `max_ttl`, or declare the node durable if it is: \
                 [operations page], durable nodes",
            ),
        fault(Reply, Cause::Loading).with_remedy("Wait until the node has loaded its data"),
        fault(Reply, Cause::OutOfMemory).with_remedy("Raise `maxmemory` or free memory"),
        fault(Handshake, Cause::TooManyClients)
            .with_remedy("Raise `maxclients`, or find the program that leaves connections open"),
        fault(Reply, Cause::Backlog).with_remedy(
            "The node has not answered many requests, and gets no more until it does: \
             check its load",
        ),
        fault(Reply, Cause::Server(ServerError::Busy))
            .with_remedy("Wait for the script, or `SCRIPT KILL` it"),
        fault(Reply, Cause::Server(ServerError::ClusterDown))
            .with_remedy("Wait for the fail-over of the shard, or assign all slots"),
        fault(Handshake, Cause::Server(ServerError::Denied))
            .with_remedy("Set a password and `protected-mode no`, or bind to the right address"),
        fault(Reply, Cause::Server(ServerError::MasterDown)).with_remedy("Name a master"),
        fault(Reply, Cause::Server(ServerError::Misconf))
            .with_remedy("Check the server's disk: it cannot save"),
        fault(Reply, Cause::Server(ServerError::NoReplicas))
            .with_remedy("Check its replicas, or lower `min-replicas-to-write`"),
        credentials(CredentialsError::Failed).with_remedy("See the log of the program"),
        credentials(CredentialsError::BadCertificate).with_remedy(
            "Write certificate, key and roots that belong together, in PEM; until \
             then, those before are used",
        ),
        credentials(CredentialsError::Panicked).with_remedy("Correct the provider"),
        credentials(CredentialsError::TimedOut)
            .with_remedy("Have the provider keep what it has fetched"),
        credentials(CredentialsError::Empty)
            .with_remedy("Write a password into the file, or return one"),
        credentials(CredentialsError::TooLong)
            .with_remedy("Name the file that contains the password, or return less"),
        credentials(CredentialsError::Unreadable(std::io::ErrorKind::NotFound))
            .with_remedy("Write it, or name another"),
        credentials(CredentialsError::Unreadable(
            std::io::ErrorKind::PermissionDenied,
        ))
        .with_remedy("Let the program's user read it"),
        credentials(CredentialsError::NotUtf8)
            .with_remedy("Name the file that contains the password"),
        server(ServerError::Err),
        server(ServerError::Unrecognised),
    ]
}

fn list<L: Display>(page: &mut String, title: &str, lines: &[L]) {
    let _ = write!(page, "\n# {title}\n\n```text\n");
    for line in lines {
        let _ = writeln!(page, "{line}");
    }
    page.push_str("```\n");
}

fn page() -> String {
    let mut page = String::from(
        "Every message of an error, an event and a node's status, but those about the arguments of a C\n\
         function. A test renders this page and compares it with this text.\n",
    );
    list(
        &mut page,
        "A lock, a release or a `connect` that failed",
        &unavailable(),
    );
    page.push_str(
        "\n# One node\n\nEach follows the node's address, in an error, an event or a status.\n\n",
    );
    page.push_str("| `Cause` | Message | What to do |\n|---|---|---|\n");
    for (fault, remedy) in node_faults() {
        let line = NodeFault::new("10.0.0.1:6379", fault).to_string();
        let cause = format!("{:?}", fault.cause);
        let message = line.strip_prefix("10.0.0.1:6379: ").unwrap();
        let variant = cause.split('(').next().unwrap_or_default();
        let _ = writeln!(page, "| `{variant}` | {message} | {remedy} |");
    }
    list(&mut page, "A node's URL, after \"node 0: \"", &url_errors());
    list(&mut page, "A setting, a name, a lease, a wait", &errors());
    page.push_str("\n# An event\n\n`Display` in Rust, `quorumlock_event_message` in C.\n\n");
    page.push_str("| `event::Event` | `quorumlock_kind` | Line |\n|---|---|---|\n");
    for (variant, kind, line) in event_tests::lines() {
        let kind = kind.trim_start_matches("QUORUMLOCK_EVENT_");
        let _ = writeln!(page, "| `{variant}` | `{kind}` | {line} |");
    }
    let checker = FenceChecker::new();
    let [_, late] = [8, 7].map(|fence| checker.check("orders/42", FencingToken::saturating(fence)));
    list(
        &mut page,
        "A write with an old fencing token",
        &[&late.unwrap_err()],
    );
    list(&mut page, "The status of a node", &looks());
    page.push_str("\n[operations page]: operations.md\n[page about TLS]: tls.md\n");
    page
}

#[test]
fn the_page_of_messages_shows_what_the_code_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/messages.md");
    let page = page();
    if std::env::var_os("QUORUMLOCK_WRITE_MESSAGES").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap();
    for (line, (shown, said)) in committed.lines().zip(page.lines()).enumerate() {
        assert_eq!(
            shown,
            said,
            "line {} of {}; see the beginning of this file",
            line + 1,
            file.display()
        );
    }
    assert_eq!(committed.len(), page.len(), "one is longer");
    assert!(!page.contains("secret"), "a password shows");
}

/// A cause that the page does not show does not compile here.
#[test]
fn every_cause_is_on_the_page() {
    let number = |cause: Cause| match cause {
        Cause::Auth => 0,
        Cause::Backlog => 1,
        Cause::Closed => 2,
        Cause::ClusterMode => 3,
        Cause::Database => 4,
        Cause::Duplicate(_) => 5,
        Cause::UnexpectedValue => 6,
        Cause::Loading => 7,
        Cause::NoPermission => 8,
        Cause::NoScripts => 9,
        Cause::NotMaster => 10,
        Cause::OutOfMemory => 11,
        Cause::Protocol => 12,
        Cause::Quarantined => 13,
        Cause::ReadOnly => 14,
        Cause::Refused => 15,
        Cause::Server(_) => 16,
        Cause::System(_) => 17,
        Cause::TimedOut => 18,
        Cause::TooManyClients => 19,
        Cause::UnknownHost => 20,
        Cause::Unreachable => 21,
        Cause::FenceAhead => 22,
        Cause::NoExpiry => 23,
        Cause::NotTls => 24,
        Cause::Tls(_) => 25,
        Cause::Credentials(_) => 26,
    };
    let mut shown: Vec<u8> = node_faults()
        .iter()
        .map(|(fault, _)| number(fault.cause))
        .collect();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown, (0..27).collect::<Vec<u8>>());
}
