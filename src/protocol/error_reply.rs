//! What error replies mean: the cause of a fault, and the detail of its message.
//!
//! Error replies are distinguished by beginnings that servers are known to use. Some of them echo a user's name, so
//! nothing is looked for behind the beginning.

use super::script_error;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};

/// What an error reply to `command` comes to.
pub fn fault(text: &[u8], command: &'static str) -> Fault {
    let fault = Fault::new(Phase::Reply, cause(text));
    match fault.cause {
        Cause::NoPermission => fault.with(denial(text, command)),
        Cause::Server("ERR") if is_unknown(text) => fault.with(Detail::Command(command)),
        _ => fault,
    }
}

/// Classifies an error reply by its first word. What servers before Redis 7.0 put around an error raised inside a
/// script is left out.
pub fn cause(text: &[u8]) -> Cause {
    const UNRECOGNISED: &str = "unrecognised";
    /// Words of error replies that have no cause of their own but say something to an operator.
    const KNOWN: [&str; 10] = [
        "BUSY",
        "BUSYKEY",
        "DENIED",
        "ERR",
        "EXECABORT",
        "MASTERDOWN",
        "MISCONF",
        "NOREPLICAS",
        "NOSCRIPT",
        "WRONGTYPE",
    ];
    let error = script_error::raised(text);
    let word = error.split(|&byte| byte == b' ').next().unwrap_or_default();
    match word {
        b"NOAUTH" | b"WRONGPASS" => Cause::Auth,
        b"ASK" | b"CLUSTERDOWN" | b"CROSSSLOT" | b"MOVED" => Cause::ClusterMode,
        b"LOADING" => Cause::Loading,
        b"NOPERM" => Cause::NoPermission,
        b"OOM" => Cause::OutOfMemory,
        b"READONLY" => Cause::ReadOnly,
        _ if text.starts_with(b"ERR max number of clients reached") => Cause::TooManyClients,
        _ if script_error::is_denied(text) => Cause::NoPermission,
        _ => {
            // Inside a script, older servers leave out the word that says no more than that it is an error.
            let unknown = if error.len() < text.len() { "ERR" } else { UNRECOGNISED };
            Cause::Server(KNOWN.into_iter().find(|known| known.as_bytes() == word).unwrap_or(unknown))
        }
    }
}

/// What a refused login comes from.
pub fn login(text: &[u8]) -> Detail {
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
pub fn denial(text: &[u8], command: &'static str) -> Detail {
    const KEY: [&[u8]; 4] = [
        b"NOPERM No permissions to access a key",
        b"NOPERM this user has no permissions to access one of the keys",
        b"ACL failure in script: No permissions to access a key",
        b"The user executing the script can't access at least one of the keys",
    ];
    let error = script_error::cause(text);
    match KEY.iter().any(|beginning| error.starts_with(beginning)) {
        true => Detail::Key(command),
        false => Detail::Command(command),
    }
}

/// Whether the user may not run the command, or the server does not have it.
pub(super) fn is_withheld(text: &[u8]) -> bool {
    cause(text) == Cause::NoPermission || is_unknown_command(text)
}

/// Whether the server does not have the command, or not one that its script calls.
fn is_unknown(text: &[u8]) -> bool {
    is_unknown_command(text) || script_error::is_unknown_inside(text)
}

/// Servers have said `unknown command` and `unknown or unsupported command`, with and without quotes around the name. A
/// Valkey that was built without Lua has an `EVAL` that can run nothing.
pub(super) fn is_unknown_command(text: &[u8]) -> bool {
    text.starts_with(b"ERR unknown ") || text.starts_with(b"ERR Could not find scripting engine")
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
            assert_eq!(login(text.as_bytes()), detail, "{text}");
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
            assert_eq!(denial(text.as_bytes(), "SET"), detail, "{text}");
        }
    }

    #[test]
    fn error_replies_are_classified_by_their_first_word() {
        let table: [(&str, Cause); 19] = [
            ("NOAUTH Authentication required.", Cause::Auth),
            ("WRONGPASS invalid username-password pair or user is disabled.", Cause::Auth),
            ("MOVED 3999 127.0.0.1:6381", Cause::ClusterMode),
            ("CLUSTERDOWN The cluster is down", Cause::ClusterMode),
            ("LOADING Redis is loading the dataset in memory", Cause::Loading),
            ("NOPERM this user has no permissions to run the 'set' command", Cause::NoPermission),
            ("OOM command not allowed when used memory > 'maxmemory'.", Cause::OutOfMemory),
            ("READONLY You can't write against a read only replica.", Cause::ReadOnly),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Cause::Server("MASTERDOWN"),
            ),
            ("MISCONF Redis is configured to save RDB snapshots", Cause::Server("MISCONF")),
            ("BUSY Redis is busy running a script.", Cause::Server("BUSY")),
            ("ERR max number of clients reached", Cause::TooManyClients),
            ("ERR The user executing the script can't run this command or subcommand", Cause::NoPermission),
            ("@user_script: 70: -OOM command not allowed when used memory > 'maxmemory'.", Cause::OutOfMemory),
            ("ERR syntax error", Cause::Server("ERR")),
            ("ERR", Cause::Server("ERR")),
            ("OOMPH", Cause::Server("unrecognised")),
            ("", Cause::Server("unrecognised")),
            ("hunter2 was your password", Cause::Server("unrecognised")),
        ];
        let recorded: Vec<&str> =
            include_str!("error_texts.txt").lines().filter_map(|line| line.split(" | ").nth(3)).collect();
        for (text, expected) in table {
            assert_eq!(cause(text.as_bytes()), expected, "{text}");
            let word = text.split_inclusive(' ').next().filter(|word| *word != "ERR ").unwrap_or("none");
            let of_word: Vec<&&str> = recorded.iter().filter(|line| line.starts_with(word)).collect();
            let is_real = of_word.is_empty() || of_word.iter().any(|line| line.starts_with(text));
            assert!(is_real || word.starts_with('@'), "no server says {text:?}");
        }
    }
}
