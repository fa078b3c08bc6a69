//! How a connection introduces itself: the user, the database, and what the server reports about
//! itself.
//!
//! Its parts go out in one flight and are answered in the same order. Each may be refused; what
//! `INFO` reports about persistence rejects no connection, and neither does its refusal. The same
//! holds for `INFO memory`, which no vote depends on: it is asked for later, because a server takes
//! more time for it than for all the rest. A server in cluster mode is asked about its cluster when
//! it has reported that mode.

use super::command;
use super::credentials::Credentials;
use super::error_reply::{ErrorReply, Subject};
use super::node_note;
use super::resp::Reply;
use super::server_info::ServerInfo;
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Cause, Fault, Phase};

/// What to send first on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// What to log in with; none sends no `AUTH`.
    pub credentials: Option<Credentials>,
    /// The database; 0 sends no `SELECT`.
    pub database: u32,
    /// Whether to ask for `INFO persistence` too: of a node that is declared durable, as that can
    /// contradict it.
    pub checks_durability: bool,
    /// The key of what the node remembers of itself; none looks at nothing.
    pub node_key: Option<String>,
    /// Whether the node is looked at behind each vote, and not once a second.
    pub looks_behind_votes: bool,
}

/// A part of a handshake, in the order in which they go out, or of a later look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Auth,
    Select,
    InfoServer,
    InfoPersistence,
    InfoReplication,
    NodeKey,
    NodeTime,
    /// Asked once `INFO server` shows cluster mode.
    Cluster,
    InfoMemory,
}

impl Handshake {
    /// Writes it, and returns the parts that it has.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(credentials) = &self.credentials {
            credentials.log_in(out);
            parts.push(Part::Auth);
        }
        if self.database != 0 {
            command::select(out, self.database);
            parts.push(Part::Select);
        }
        for (section, part) in [
            ("server", Part::InfoServer),
            ("persistence", Part::InfoPersistence),
            ("replication", Part::InfoReplication),
        ] {
            if part != Part::InfoPersistence || self.checks_durability {
                command::info(out, section);
                parts.push(part);
            }
        }
        if let Some(key) = &self.node_key {
            node_note::look(out, key.as_bytes());
            parts.extend([Part::NodeKey, Part::NodeTime]);
        }
        parts
    }
}

impl Part {
    /// Takes in the reply, and returns why the server refuses us, if it does.
    ///
    /// # Errors
    /// A reply that the command never returns.
    pub(super) fn learn(
        self,
        reply: Reply<'_>,
        identity: &mut ServerInfo,
    ) -> Result<Option<Fault>, ProtocolError> {
        let error = match (self, reply) {
            (Part::Auth | Part::Select, _) => command::handshake_reply(reply)?,
            (Part::NodeKey, _) => return identity.look.learn_value(reply).map(|()| None),
            (Part::NodeTime, _) => return identity.look.learn_time(reply).map(|()| None),
            (_, Reply::Bulk(Some(section))) => {
                identity.learn(section);
                None
            }
            (Part::InfoMemory | Part::InfoPersistence, Reply::Error(_)) => None,
            // Nothing else shows whether there is one shard.
            (Part::Cluster, Reply::Error(text)) => {
                let fault = ErrorReply::read(text).fault("CLUSTER INFO");
                return Ok(Some(Fault {
                    phase: Phase::Handshake,
                    ..fault
                }));
            }
            // The user may not ask, or the command is renamed: what the server is stays unknown.
            (_, Reply::Error(text)) => {
                Some(ErrorReply::read(text)).filter(|error| !error.is_withheld())
            }
            _ => return Err(ProtocolError::UnexpectedReply),
        };
        Ok(error.map(|error| {
            let cause = match self {
                Part::Auth => error.cause_or(Cause::Auth),
                Part::Select => error.cause_or(Cause::Database),
                _ => error.cause,
            };
            let fault = Fault::new(Phase::Handshake, cause);
            match (cause, self, error.subject) {
                (Cause::Auth, _, Subject::Login(detail)) => fault.with(detail),
                (Cause::NoPermission, Part::Auth, _) => fault.with(Detail::Command("AUTH")),
                (Cause::NoPermission, Part::Select, _) => fault.with(Detail::Command("SELECT")),
                _ => fault,
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::server_error::ServerError;

    fn parts(handshake: &Handshake) -> (String, Vec<Part>) {
        let mut flight = Vec::new();
        let parts = handshake.write(&mut flight);
        (String::from_utf8(flight).unwrap(), parts)
    }

    #[test]
    fn only_a_node_that_is_declared_durable_is_asked_about_persistence() {
        let (flight, asked) = parts(&Handshake::default());
        assert_eq!(asked, [Part::InfoServer, Part::InfoReplication]);
        assert!(!flight.contains("persistence"));
        let (flight, asked) = parts(&Handshake {
            checks_durability: true,
            ..Handshake::default()
        });
        assert_eq!(
            asked,
            [
                Part::InfoServer,
                Part::InfoPersistence,
                Part::InfoReplication
            ]
        );
        assert!(
            flight.contains("\r\nINFO\r\n$11\r\npersistence\r\n"),
            "{flight}"
        );
    }

    #[test]
    fn what_the_server_is_may_be_withheld_or_refused() {
        let learn = |reply| Part::InfoServer.learn(reply, &mut ServerInfo::default());
        for reply in [
            Reply::Bulk(Some(b"x:1")),
            Reply::Error(b"NOPERM no"),
            Reply::Error(b"ERR unknown command 'INFO'"),
        ] {
            assert_eq!(learn(reply), Ok(None), "{reply:?}");
        }
        let denied = Fault::new(Phase::Handshake, Cause::Server(ServerError::Denied));
        assert_eq!(learn(Reply::Error(b"DENIED no")), Ok(Some(denied)));
        assert_eq!(
            learn(Reply::Simple(b"OK")),
            Err(ProtocolError::UnexpectedReply)
        );
    }

    #[test]
    fn persistence_may_be_withheld_and_rejects_no_connection() {
        let table = [
            (Reply::Bulk(Some(b"aof_enabled:1")), Some(true)),
            (Reply::Bulk(Some(b"aof_enabled:0")), Some(false)),
            (Reply::Error(b"NOPERM no"), None),
            (Reply::Error(b"BUSY x"), None),
        ];
        for (reply, enabled) in table {
            let mut identity = ServerInfo::default();
            assert_eq!(
                Part::InfoPersistence.learn(reply, &mut identity),
                Ok(None),
                "{reply:?}"
            );
            assert_eq!(identity.aof_enabled(), enabled, "{reply:?}");
        }
    }
}
