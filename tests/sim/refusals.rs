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

    /// What a server of this kind has replied to this request.
    fn recorded(self, flavour: ServerKind, request: &str) -> &'static str {
        let version = match flavour {
            ServerKind::Valkey9 => "valkey-9.1.2",
            _ => "7.0.15",
        };
        let state = format!("{self:?}").to_lowercase();
        let text = |line: &'static str| {
            let [condition, kind, versions, text] = line.splitn(4, " | ").collect::<Vec<_>>()[..]
            else {
                return None;
            };
            let is_version = versions == "all" || versions.split(' ').any(|it| it == version);
            (condition == state && kind == request && is_version).then_some(text)
        };
        let mut lines = include_str!("../../src/protocol/error_texts.txt").lines();
        lines.find_map(text).expect("a recorded reply")
    }

    /// The error, in the words of this kind of server.
    fn text(self, flavour: ServerKind) -> &'static str {
        self.recorded(flavour, "acquire")
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
            .then(|| reply.replace(READ_ONLY, self.text(flavour)).into_bytes()),
        }
    }
}

/// The simulated nodes reply what real servers reply.
#[test]
fn refusals_have_the_texts_of_real_servers() {
    use crate::protocol::kinds;
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
    for flavour in [ServerKind::Redis, ServerKind::Valkey9] {
        let mut store = Store::new(flavour, "0".repeat(40), 0);
        let mut session = ClientState::default();
        store.execute(&mut session, acquire, 1, &mut Vec::new());
        for refusal in Refusal::ALL {
            for (request, words) in all {
                let said = refusal.reply(flavour, (&store, &session), words, 2);
                let recorded = format!("-{}\r\n", refusal.recorded(flavour, request));
                assert_eq!(
                    said,
                    Some(recorded.into_bytes()),
                    "{flavour:?}: {refusal:?}, {request}"
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
