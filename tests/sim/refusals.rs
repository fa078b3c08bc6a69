//! Conditions in which a server refuses requests and that the embedded store does not know, with
//! the texts of real servers.

use quorumlock::embedded::Condition;
use quorumlock::embedded::ServerKind;
use quorumlock::embedded::store::{ClientState, Store};

/// Why a server refuses requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A script runs for too long: the server refuses everything but a login.
    Busy,
    /// The server cannot write its snapshots, and refuses writes.
    Misconf,
    /// Too few replicas are connected, and the server refuses writes.
    NoReplicas,
}

/// What a replica replies to a write. The store puts it where a server puts each error of a write,
/// in a script as well.
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

impl Refusal {
    pub(crate) const ALL: [Refusal; 3] = [Refusal::Busy, Refusal::Misconf, Refusal::NoReplicas];

    /// The error, in the words of this kind of server.
    fn text(self, flavour: ServerKind) -> String {
        let name = if flavour == ServerKind::Valkey9 {
            "Valkey"
        } else {
            "Redis"
        };
        match self {
            Refusal::Busy => {
                format!(
                    "BUSY {name} is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
                )
            }
            Refusal::Misconf => format!(
                "MISCONF {name} is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                 Commands that may modify the data set are disabled, because this instance is configured to report \
                 errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check \
                 the {name} logs for details about the RDB error."
            ),
            Refusal::NoReplicas => "NOREPLICAS Not enough good replicas to write.".to_owned(),
        }
    }

    /// The reply to a command that the server does not run in this condition; none to one that it
    /// runs.
    pub(crate) fn reply(
        self,
        flavour: ServerKind,
        (store, session): (&Store, &ClientState),
        words: &[&[u8]],
        millis: u64,
    ) -> Option<Vec<u8>> {
        let mut probe = store.clone();
        let mut session = session.clone();
        let mut reply = Vec::new();
        probe.set_condition(Condition::Replica);
        probe.execute(&mut session, words, millis, &mut reply);
        let reply = String::from_utf8_lossy(&reply);
        match self {
            // A server checks these first.
            Refusal::Busy
                if reply.starts_with("-ERR unknown command") || reply.starts_with("-NOAUTH") =>
            {
                None
            }
            Refusal::Busy if words.first() == Some(&&b"AUTH"[..]) => None,
            Refusal::Busy => Some(format!("-{}\r\n", self.text(flavour)).into_bytes()),
            Refusal::Misconf | Refusal::NoReplicas => (reply.starts_with('-')
                && reply.contains(READ_ONLY))
            .then(|| reply.replace(READ_ONLY, &self.text(flavour)).into_bytes()),
        }
    }
}

/// The simulated nodes reply what real servers reply.
#[test]
fn refusals_have_the_texts_of_real_servers() {
    use crate::protocol::kinds;
    let texts = include_str!("../../src/protocol/error_texts.txt");
    let release: &[&[u8]] = &[
        b"EVAL",
        kinds::plain::SCRIPT.text.as_bytes(),
        b"1",
        b"k",
        b"release",
        b"token",
    ];
    let acquire: &[&[u8]] = &[b"SET", b"k", b"token", b"NX", b"PX", b"1000"];
    let extend: &[&[u8]] = &[
        b"EVAL",
        kinds::plain::EXTEND.as_bytes(),
        b"1",
        b"k",
        b"token",
        b"2000",
    ];
    let all = [
        ("acquire", acquire),
        ("release", release),
        ("extend", extend),
    ];
    for (flavour, version) in [
        (ServerKind::Redis, "7.0.15"),
        (ServerKind::Valkey9, "valkey-9.1.2"),
    ] {
        let mut store = Store::new(flavour, "0".repeat(40), 0);
        let mut session = ClientState::default();
        store.execute(&mut session, acquire, 1, &mut Vec::new());
        for refusal in Refusal::ALL {
            for (request, words) in all {
                let state = format!("{refusal:?}").to_lowercase();
                let is_it = |line: &&str| {
                    let fields: Vec<&str> = line.splitn(4, " | ").collect();
                    let versions = fields.get(2).copied().unwrap_or_default();
                    fields[0] == state
                        && fields.get(1) == Some(&request)
                        && (versions == "all" || versions.split(' ').any(|other| other == version))
                };
                let recorded = texts
                    .lines()
                    .find(is_it)
                    .and_then(|line| line.splitn(4, " | ").nth(3));
                let said = refusal
                    .reply(flavour, (&store, &session), words, 2)
                    .unwrap();
                let said = String::from_utf8(said).unwrap();
                assert_eq!(
                    said.strip_prefix('-').map(str::trim_end),
                    recorded,
                    "{version}: {state}, {request}"
                );
            }
        }
        assert_eq!(store.value(b"k", 2), Some(&b"token"[..]), "nothing was run");
    }
}

/// What a server in such a condition still runs.
#[test]
fn a_server_that_refuses_writes_answers_questions() {
    let store = Store::new(ServerKind::Redis, "0".repeat(40), 0);
    let session = ClientState::default();
    let reply = |refusal: Refusal, words: &[&[u8]]| {
        refusal.reply(ServerKind::Redis, (&store, &session), words, 1)
    };
    for refusal in Refusal::ALL {
        let is_busy = refusal == Refusal::Busy;
        assert_eq!(
            reply(refusal, &[b"INFO", b"server"]).is_some(),
            is_busy,
            "{refusal:?}"
        );
        assert_eq!(
            reply(refusal, &[b"PTTL", b"k"]).is_some(),
            is_busy,
            "{refusal:?}"
        );
        assert_eq!(
            reply(refusal, &[b"GETEX", b"k"]),
            None,
            "{refusal:?}: an unknown command"
        );
        assert_eq!(reply(refusal, &[b"AUTH", b"secret"]), None, "{refusal:?}");
    }
}
