//! Logs in with tokens that end, and with new ones before they do: no lock is lost, and no call
//! fails. For a password in a file that changes, `.password_file(path)` does all of this.
//!
//! ```text
//! export QUORUMLOCK_NODES=redis://alice@10.0.0.1,redis://alice@10.0.0.2,redis://alice@10.0.0.3
//! cargo run --example reload_credentials -- /run/secrets/token
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use quorumlock::event::{Event, Severity};
use quorumlock::{Builder, Credentials, Watchdog};
use std::error::Error;
use std::time::Duration;
use std::{env, fs, io, thread};

/// Well before a token ends. A service whose tokens last for 15 minutes is asked each 10.
const REFRESH: Duration = Duration::from_secs(1);

/// Asks for a token: here a file, elsewhere a vault, or the service of a cloud.
fn token(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: reload_credentials FILE")?;
    let redlock = Builder::from_env("QUORUMLOCK_")?
        .credentials(move |_node| {
            // An error keeps the present login, is an event, and has this called again in a second.
            Ok(Credentials::new(token(&path)?).refresh_after(REFRESH))
        })
        // `CredentialsFailed` is such an event. Until there is none, keep the old password valid.
        .observer(|event: &Event| {
            if event.severity() > Severity::Info {
                eprintln!("{event}");
            }
        })
        .build()?;
    // Fails at once if no majority accepts the token.
    redlock.connect(Duration::from_secs(3))?;
    let mutex = redlock.mutex("invoices").watchdog(Watchdog::new());
    for invoice in 1.. {
        let guard = mutex.lock()?;
        guard.ensure(Duration::from_secs(1))?;
        println!("invoice {invoice}");
        thread::sleep(Duration::from_millis(200)); // the work
        drop(guard);
    }
    Ok(())
}
