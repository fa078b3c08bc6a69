//! Asks for the credentials of a node, off the path of every call.
//!
//! A provider is code of the program's: it may block, fail or panic. So each node with a provider
//! has a thread that calls it and hands out the result. It is asked before each connection, when
//! credentials are to be replaced at a time, and again after a failure. While it blocks, only its
//! own node waits.

use crate::fault::credentials_error::CredentialsError;
use crate::os::sync::{self, Condvar, Mutex, lock};
use crate::protocol::credentials::Credentials;
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// What the program hands in: it is called with the address of a node.
pub(crate) type Provider =
    Arc<dyn Fn(&str) -> Result<Credentials, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Pause after a failure, while a connection is open that will need other credentials.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest time from one call of a provider to the next that it asks for itself.
const SHORTEST_REFRESH: Duration = Duration::from_millis(10);

/// The way to the thread of one node. The thread ends when this is dropped.
pub(super) struct CredentialsThread(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    signal: Condvar,
}

#[derive(Default)]
struct State {
    /// When to call the provider next, if at all.
    due: Option<Instant>,
    is_closed: bool,
}

impl CredentialsThread {
    /// Starts it. It calls nothing yet, and hands each result to `on_return`.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub(super) fn start(
        address: String,
        provider: Provider,
        on_return: impl Fn(Result<Credentials, CredentialsError>) + Send + 'static,
    ) -> io::Result<CredentialsThread> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            signal: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        sync::spawn("quorumlock login", move || {
            while own.is_due() {
                let credentials = called(&provider, &address);
                own.ask_after(match &credentials {
                    Ok(credentials) => credentials
                        .refreshed_after()
                        .map(|time| time.max(SHORTEST_REFRESH)),
                    Err(_) => Some(PAUSE),
                });
                on_return(credentials);
            }
        })?;
        Ok(CredentialsThread(shared))
    }

    /// Has the provider called now, or again when it returns.
    pub(super) fn ask(&self) {
        self.0.ask_after(Some(Duration::ZERO));
    }

    /// Has it called after a pause: the server has refused what it returned.
    pub(super) fn ask_later(&self) {
        self.0.ask_after(Some(PAUSE));
    }
}

impl Drop for CredentialsThread {
    fn drop(&mut self) {
        lock(&self.0.state).is_closed = true;
        self.0.signal.notify_one();
    }
}

impl Shared {
    /// Waits until the provider is to be called. False when it never is any more.
    fn is_due(&self) -> bool {
        let mut state = lock(&self.state);
        loop {
            let left = state
                .due
                .map(|due| due.saturating_duration_since(Instant::now()));
            state = match left {
                _ if state.is_closed => return false,
                Some(Duration::ZERO) => {
                    state.due = None;
                    return true;
                }
                Some(left) => {
                    let waited = self.signal.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .signal
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Has the provider called after this time, unless it is to be called before that.
    fn ask_after(&self, time: Option<Duration>) {
        let Some(due) = time.and_then(|time| Instant::now().checked_add(time)) else {
            return;
        };
        let mut state = lock(&self.state);
        state.due = Some(state.due.map_or(due, |earlier| earlier.min(due)));
        self.signal.notify_one();
    }
}

/// What the provider returns, if it can be used.
pub(crate) fn called(provider: &Provider, address: &str) -> Result<Credentials, CredentialsError> {
    let returned = catch_unwind(AssertUnwindSafe(|| provider(address)));
    let credentials =
        returned
            .map_err(|_| CredentialsError::Panicked)?
            .map_err(|error| match error.downcast_ref() {
                Some(&known) => known,
                None => CredentialsError::Failed,
            })?;
    match credentials.problem() {
        Some(error) => Err(error),
        None => Ok(credentials),
    }
}
