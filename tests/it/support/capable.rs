//! What the server under test can do. A test that needs more does nothing, and reports that in the
//! output of the run.

use crate::prelude::*;
use std::io::Write;

/// Ends a test of what the server cannot do.
macro_rules! skip_unless {
    ($can:expr) => {
        if !$can {
            return;
        }
    };
}
pub(crate) use skip_unless;

/// Whether this server has users, with rights to channels: Redis 6.2 and later.
pub(crate) fn knows_users(server: &Server) -> bool {
    // It has that right already.
    let rule = ["ACL", "SETUSER", "default", "allchannels"];
    !matches!(server.command(&rule).unwrap(), Answer::Error(_))
}

/// The servers of these that have users. The others are reported as left out.
pub(crate) fn with_users(servers: Vec<Server>) -> impl Iterator<Item = Server> {
    servers.into_iter().filter(|server| {
        let knows = knows_users(server);
        if !knows {
            say_skipped("users (ACL)");
        }
        knows
    })
}

/// Whether the server has users. If not, the test that asks is reported as skipped.
pub(crate) fn has_users() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    can(&HAS, "users (ACL)", || {
        knows_users(&Server::start().unwrap())
    })
}

/// The same of TLS: servers can be built without it.
pub(crate) fn has_tls() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    // One that has it misses the certificate.
    let misses_one = |error: std::io::Error| error.to_string().contains("tls-cert-file");
    can(&HAS, "TLS", || {
        Server::plan().tls().start().is_err_and(misses_one)
    })
}

/// The same of a delay for each key that is loaded: Redis 6 and later.
pub(crate) fn has_slow_loading() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    can(&HAS, "key-load-delay", || {
        Server::with(&["--key-load-delay", "0"]).is_ok()
    })
}

fn can(known: &OnceLock<bool>, what: &str, find_out: impl FnOnce() -> bool) -> bool {
    let can = *known.get_or_init(find_out);
    if !can {
        say_skipped(what);
    }
    can
}

fn say_skipped(what: &str) {
    let thread = std::thread::current();
    // Not by `println`, which a run shows of failed tests only.
    _ = writeln!(
        std::io::stderr(),
        "skipped: {}: the server has no {what}",
        thread.name().unwrap_or("a test")
    );
}
