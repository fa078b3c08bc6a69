//! What the message of a fault says beyond its cause: numbers of ours, and words of ours, never text from a server.
//!
//! Error replies are told apart by beginnings that servers are known to use. Some of them echo a user's name, so nothing
//! is looked for behind the beginning.

use super::script_error;
use std::time::Duration;

/// What an operator needs to know besides the phase and the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The user may not run this command of ours, or not like this.
    Command(&'static str),
    /// The user may run this command of ours, and not on this key.
    Key(&'static str),
    /// A quarantine goes on for so long.
    Left(Duration),
    /// The time that was waited, and the setting that limits it, if one did.
    Limit(Duration, Option<&'static str>),
    /// Nothing more is known.
    #[default]
    None,
    /// The server wants a password, and none is given.
    PasswordMissing,
    /// A password is given, and the server has none set.
    PasswordUnset,
    /// The server knows the password or the user not.
    PasswordWrong,
    /// A user is given, and the server has passwords only: Redis before 6.
    UsersUnknown,
}

impl Detail {
    /// What a refused login comes from.
    pub fn of_login(text: &[u8]) -> Detail {
        const TABLE: [(&[u8], Detail); 6] = [
            (b"NOAUTH", Detail::PasswordMissing),
            (b"WRONGPASS", Detail::PasswordWrong),
            (b"ERR invalid password", Detail::PasswordWrong),
            (b"ERR AUTH <password> called without any password", Detail::PasswordUnset),
            (b"ERR Client sent AUTH, but no password is set", Detail::PasswordUnset),
            (b"ERR wrong number of arguments for 'auth'", Detail::UsersUnknown),
        ];
        let found = TABLE.into_iter().find(|(beginning, _)| text.starts_with(beginning));
        found.map_or(Detail::None, |(_, detail)| detail)
    }

    /// What a denied `command` comes from: the command itself, or the key.
    pub fn of_denial(text: &[u8], command: &'static str) -> Detail {
        const KEY: [&[u8]; 4] = [
            b"NOPERM No permissions to access a key",
            b"NOPERM this user has no permissions to access one of the keys",
            b"ACL failure in script: No permissions to access a key",
            b"The user executing the script can't access at least one of the keys",
        ];
        let error = script_error::raised(text);
        let error = error.strip_prefix(b"ERR ").unwrap_or(error);
        match KEY.iter().any(|beginning| error.starts_with(beginning)) {
            true => Detail::Key(command),
            false => Detail::Command(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the servers say it: 5.0.14, 6.2.16, 7.0.15, 7.2.6, 7.4.1, 8.0.6, 8.6.2 and Valkey 9.1.2.
    #[test]
    fn logins_and_denials_are_told_apart_by_what_servers_say() {
        let logins = [
            ("NOAUTH Authentication required.", Detail::PasswordMissing),
            ("ERR invalid password", Detail::PasswordWrong),
            ("WRONGPASS invalid username-password pair or user is disabled.", Detail::PasswordWrong),
            (
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
                Detail::PasswordUnset,
            ),
            ("ERR Client sent AUTH, but no password is set", Detail::PasswordUnset),
            ("ERR wrong number of arguments for 'auth' command", Detail::UsersUnknown),
            ("ERR unknown command 'AUTH'", Detail::None),
            ("", Detail::None),
        ];
        for (text, detail) in logins {
            assert_eq!(Detail::of_login(text.as_bytes()), detail, "{text}");
        }
        let denials = [
            ("NOPERM this user has no permissions to run the 'set' command or its subcommand", Detail::Command("SET")),
            ("NOPERM this user has no permissions to run the 'set' command", Detail::Command("SET")),
            ("NOPERM User me has no permissions to run the 'set' command", Detail::Command("SET")),
            (
                "NOPERM User No permissions to access a key has no permissions to run the 'set' command",
                Detail::Command("SET"),
            ),
            ("NOPERM this user has no permissions to access one of the keys used as arguments", Detail::Key("SET")),
            ("NOPERM No permissions to access a key", Detail::Key("SET")),
            ("ERR ACL failure in script: No permissions to access a key script: 1f", Detail::Key("SET")),
            ("ERR The user executing the script can't access at least one of the keys mentioned", Detail::Key("SET")),
            ("ERR The user executing the script can't run this command or subcommand", Detail::Command("SET")),
        ];
        for (text, detail) in denials {
            assert_eq!(Detail::of_denial(text.as_bytes(), "SET"), detail, "{text}");
        }
    }
}
