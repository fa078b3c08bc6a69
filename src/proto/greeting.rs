//! How a connection introduces itself: who we are to the server, in which database we work, and who it is.
//!
//! Its parts go out in one flight and are answered in the same order. Each may be refused; what is told of the memory
//! decides nothing, and neither does its refusal.

use super::command::{self, InfoReply};
use super::fault::Cause;
use super::identity::Identity;
use super::resp::{ProtocolError, Reply};
use std::fmt;

/// What to send first on a connection.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// The ACL user; none is the default user.
    pub user: Option<String>,
    /// The password; none sends no `AUTH`.
    pub password: Option<String>,
    /// The database; 0 sends no `SELECT`.
    pub database: u32,
}

/// A part of a greeting, in the order in which they go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Auth,
    Select,
    InfoServer,
    InfoMemory,
    InfoReplication,
}

impl Greeting {
    /// Writes it, and gives each part that it has.
    pub(super) fn write(&self, out: &mut Vec<u8>, mut each: impl FnMut(Part)) {
        if let Some(password) = &self.password {
            command::auth(out, self.user.as_deref(), password);
            each(Part::Auth);
        }
        if self.database != 0 {
            command::select(out, self.database);
            each(Part::Select);
        }
        for (section, part) in
            [("server", Part::InfoServer), ("memory", Part::InfoMemory), ("replication", Part::InfoReplication)]
        {
            command::info(out, section);
            each(part);
        }
    }
}

impl Part {
    /// Whether the greeting is answered in full with this.
    pub(super) fn is_last(self) -> bool {
        self == Part::InfoReplication
    }

    /// Takes in the reply. Gives why the server refuses us, if it does.
    ///
    /// # Errors
    /// A reply that the command never gives.
    pub(super) fn learn(self, reply: Reply<'_>, identity: &mut Identity) -> Result<Option<Cause>, ProtocolError> {
        let reply = match self {
            Part::Auth => return command::greeting_reply(reply, Cause::Auth),
            Part::Select => return command::greeting_reply(reply, Cause::Database),
            Part::InfoServer | Part::InfoMemory | Part::InfoReplication => command::info_reply(reply)?,
        };
        Ok(match reply {
            InfoReply::Text(section) => {
                identity.learn(section);
                None
            }
            InfoReply::Refused(cause) if self != Part::InfoMemory => Some(cause),
            InfoReply::Refused(_) | InfoReply::Withheld => None,
        })
    }
}

/// Shows whether there is a password, never which.
impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting")
            .field("user", &self.user.as_ref().map(|_| "…"))
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("database", &self.database)
            .finish()
    }
}
