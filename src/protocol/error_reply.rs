//! Error replies: the cause of a fault, and what the error is about. An [`ErrorReply`] is made
//! once, where the reply is read. No other file compares the texts of servers.
//!
//! Error replies are distinguished by beginnings that servers are known to use. Some of them echo a
//! user's name, so nothing is looked for behind the beginning.

use super::moved::NamedMaster;
use super::script_error;
use crate::fault::detail::Detail;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use core::net::SocketAddr;

/// What an error reply means. Its text is not kept: it may repeat what the server was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// By its first word. What servers before Redis 7.0 put around an error raised inside a script
    /// is left out.
    pub cause: Cause,
    /// What it is about.
    pub subject: Subject,
}

/// What an error is about, as far as its text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What an access control list does not permit.
    Denied(Denied),
    /// The same for a command inside a script.
    DeniedInside(Denied),
    /// The login, which was refused for this reason.
    Login(Detail),
    /// The key, which another server has, at this address.
    Moved(SocketAddr),
    /// Nothing that is known.
    Unknown,
    /// The server does not have the command.
    UnknownCommand,
    /// The server does not have a command inside the script.
    UnknownInside,
}

/// What an access control list does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The channel.
    Channel,
    /// The command.
    Command,
    /// The key.
    Key,
    /// All scripts.
    Scripts,
}

impl ErrorReply {
    /// The meaning of this text.
    pub fn read(text: &[u8]) -> ErrorReply {
        let cause = cause(text);
        ErrorReply {
            cause,
            subject: subject(text, cause),
        }
    }

    /// The fault of a node that replies so to `command`.
    pub fn fault(self, command: &'static str) -> Fault {
        let fault = Fault::new(Phase::Reply, self.cause);
        match (self.cause, self.subject) {
            (
                Cause::NoPermission,
                Subject::Denied(Denied::Key) | Subject::DeniedInside(Denied::Key),
            ) => fault.with(Detail::Key(command)),
            (Cause::NoPermission, _)
            | (Cause::Server(ServerError::Err), Subject::UnknownCommand | Subject::UnknownInside) => {
                fault.with(Detail::Command(command))
            }
            (_, Subject::Moved(master)) => fault.with(Detail::Master(master)),
            _ => fault,
        }
    }

    /// The cause of a refused login, or of a database that was not selected, whose usual cause is
    /// this.
    pub(super) fn cause_or(self, usual: Cause) -> Cause {
        match self.cause {
            Cause::Server(ServerError::Err | ServerError::Unrecognised) => usual,
            cause => cause,
        }
    }

    /// Whether the user may not run the command, or the server does not have it.
    pub(super) fn is_withheld(self) -> bool {
        self.cause == Cause::NoPermission || self.subject == Subject::UnknownCommand
    }

    /// Whether the server runs no scripts, or none for the user. What else the user may not do,
    /// touch the key for one, has another remedy.
    pub(super) fn runs_no_scripts(self) -> bool {
        matches!(
            self.subject,
            Subject::UnknownCommand | Subject::Denied(Denied::Scripts)
        )
    }
}

fn cause(text: &[u8]) -> Cause {
    let error = script_error::raised(text);
    let word = error.split(|&byte| byte == b' ').next().unwrap_or_default();
    match word {
        b"NOAUTH" | b"WRONGPASS" => Cause::Auth,
        b"ASK" | b"MOVED" | b"TRYAGAIN" => Cause::NotMaster,
        b"CROSSSLOT" => Cause::ClusterMode,
        b"LOADING" => Cause::Loading,
        b"NOPERM" => Cause::NoPermission,
        b"OOM" => Cause::OutOfMemory,
        b"READONLY" => Cause::ReadOnly,
        _ if text.starts_with(b"ERR max number of clients reached") => Cause::TooManyClients,
        _ if script_error::is_denied(text) => Cause::NoPermission,
        _ => {
            // Inside a script, older servers leave out the word that only marks it as an error.
            let unknown = if error.len() < text.len() {
                ServerError::Err
            } else {
                ServerError::Unrecognised
            };
            Cause::Server(ServerError::of(word).unwrap_or(unknown))
        }
    }
}

fn subject(text: &[u8], cause: Cause) -> Subject {
    if text.starts_with(b"NOPERM") {
        Subject::Denied(denied(text))
    } else if cause == Cause::NoPermission {
        Subject::DeniedInside(denied(script_error::cause(text)))
    } else if text.starts_with(b"ERR unknown ")
        || text.starts_with(b"ERR Could not find scripting engine")
    {
        // Servers have replied `unknown command` and `unknown or unsupported command`, with and
        // without quotes around the name. A Valkey that was built without Lua has an `EVAL` that
        // can run nothing.
        Subject::UnknownCommand
    } else if script_error::is_unknown_inside(text) {
        Subject::UnknownInside
    } else if let Some(address) = NamedMaster::read(text).and_then(|named| named.address()) {
        Subject::Moved(address)
    } else {
        login(text).map_or(Subject::Unknown, Subject::Login)
    }
}

/// What a refused login comes from.
fn login(text: &[u8]) -> Option<Detail> {
    const TABLE: [(&[u8], Detail); 6] = [
        (b"NOAUTH", Detail::PasswordMissing),
        (b"WRONGPASS", Detail::PasswordWrong),
        (b"ERR invalid password", Detail::PasswordWrong),
        (
            b"ERR AUTH <password> called without any password",
            Detail::PasswordUnset,
        ),
        (
            b"ERR Client sent AUTH, but no password is set",
            Detail::PasswordUnset,
        ),
        (
            b"ERR wrong number of arguments for 'auth'",
            Detail::UsersUnknown,
        ),
    ];
    by_beginning(TABLE, text)
}

/// What the table has for a text that begins so.
fn by_beginning<T, const N: usize>(table: [(&[u8], T); N], text: &[u8]) -> Option<T> {
    table
        .into_iter()
        .find(|(beginning, _)| text.starts_with(beginning))
        .map(|(_, meaning)| meaning)
}

/// What is denied: the command, unless the text names something else.
fn denied(text: &[u8]) -> Denied {
    const TABLE: [(&[u8], Denied); 6] = [
        (b"NOPERM No permissions to access a key", Denied::Key),
        (
            b"NOPERM this user has no permissions to access one of the keys",
            Denied::Key,
        ),
        (
            b"ACL failure in script: No permissions to access a key",
            Denied::Key,
        ),
        (
            b"The user executing the script can't access at least one of the keys",
            Denied::Key,
        ),
        (
            b"NOPERM No permissions to access a channel",
            Denied::Channel,
        ),
        (
            b"NOPERM this user has no permissions to access one of the channels",
            Denied::Channel,
        ),
    ];
    const SCRIPTS: &[u8] = b" run the 'eval";
    let is_script = || text.windows(SCRIPTS.len()).any(|window| window == SCRIPTS);
    by_beginning(TABLE, text).unwrap_or_else(|| {
        if is_script() {
            Denied::Scripts
        } else {
            Denied::Command
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::reply_tests::rows;

    fn is_of(text: &str, of: impl FnOnce(ErrorReply) -> Detail, expected: &str) {
        let detail = of(ErrorReply::read(text.as_bytes()));
        assert_eq!(format!("{detail:?}"), expected, "{text}");
    }

    /// As these servers reply: 5.0.14, 6.2.16, 7.0.15, 7.2.6, 7.4.1, 8.0.6, 8.6.2 and Valkey 9.1.2.
    /// The end of a long text is left out.
    #[test]
    fn logins_and_denials_are_told_apart_by_what_servers_say() {
        let login = |error: ErrorReply| match error.subject {
            Subject::Login(detail) => detail,
            _ => Detail::None,
        };
        for row in rows(
            "
            NOAUTH Authentication required. | PasswordMissing
            ERR invalid password | PasswordWrong
            WRONGPASS invalid username-password pair or user is disabled. | PasswordWrong
            ERR AUTH <password> called without any password configured for the default | PasswordUnset
            ERR Client sent AUTH, but no password is set | PasswordUnset
            ERR wrong number of arguments for 'auth' command | UsersUnknown
            ERR unknown command 'AUTH' | None
        ",
        ) {
            is_of(row[0], login, row[1]);
        }
        is_of("", login, "None");
        for row in rows(
            r#"
            NOPERM this user has no permissions to run the 'set' command or its | Command("SET")
            NOPERM this user has no permissions to run the 'set' command | Command("SET")
            NOPERM User me has no permissions to run the 'set' command | Command("SET")
            NOPERM User No permissions to access a key has no permissions to run the | Command("SET")
            NOPERM this user has no permissions to access one of the keys used as | Key("SET")
            NOPERM No permissions to access a key | Key("SET")
            ERR ACL failure in script: No permissions to access a key script: 1f | Key("SET")
            ERR The user executing the script can't access at least one of the keys | Key("SET")
            ERR The user executing the script can't run this command or subcommand | Command("SET")
        "#,
        ) {
            is_of(row[0], |error| error.fault("SET").detail, row[1]);
        }
    }

    #[test]
    fn error_replies_are_classified_by_their_first_word() {
        let table = rows(
            "
            NOAUTH Authentication required. | Auth
            WRONGPASS invalid username-password pair or user is disabled. | Auth
            MOVED 3999 127.0.0.1:6381 | NotMaster
            ASK 3999 127.0.0.1:6381 | NotMaster
            TRYAGAIN Multiple keys request during rehashing of slot | NotMaster
            CLUSTERDOWN The cluster is down | Server(ClusterDown)
            LOADING Redis is loading the dataset in memory | Loading
            NOPERM this user has no permissions to run the 'set' command | NoPermission
            OOM command not allowed when used memory > 'maxmemory'. | OutOfMemory
            READONLY You can't write against a read only replica. | ReadOnly
            MASTERDOWN Link with MASTER is down and replica-serve-stale-data is | Server(MasterDown)
            MISCONF Redis is configured to save RDB snapshots | Server(Misconf)
            BUSY Redis is busy running a script. | Server(Busy)
            ERR max number of clients reached | TooManyClients
            ERR The user executing the script can't run this command or subcommand | NoPermission
            @user_script: 70: -OOM command not allowed when used memory | OutOfMemory
            ERR syntax error | Server(Err)
            ERR | Server(Err)
            OOMPH | Server(Unrecognised)
            hunter2 was your password | Server(Unrecognised)
        ",
        );
        let table = table.map(|row| (row[0], row[1]));
        let recorded: Vec<&str> = include_str!("error_texts.txt")
            .lines()
            .filter_map(|line| line.split(" | ").nth(3))
            .collect();
        for (text, expected) in table.chain([("", "Server(Unrecognised)")]) {
            let cause = ErrorReply::read(text.as_bytes()).cause;
            assert_eq!(format!("{cause:?}"), expected, "{text}");
            let word = text
                .split_inclusive(' ')
                .next()
                .filter(|word| *word != "ERR ")
                .unwrap_or("none");
            let of_word: Vec<&&str> = recorded
                .iter()
                .filter(|line| line.starts_with(word))
                .collect();
            let is_real = of_word.is_empty() || of_word.iter().any(|line| line.starts_with(text));
            assert!(is_real || word.starts_with('@'), "no server says {text:?}");
        }
    }
}
