//! Asks for the credentials of a node, off the path of every call.
//!
//! A provider is code of the program's: it may block, fail or panic. So each node with a provider
//! has a thread that calls it: before each connection, when credentials are to be replaced at a
//! time, and again after a failure. While it blocks, only its own node waits. Another thread looks
//! whether the files of certificates have changed.

use crate::fault::credentials_error::CredentialsError;
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::protocol::credentials::Credentials;
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What the program hands in: it is called with the address of a node.
pub(crate) type Provider =
    Arc<dyn Fn(&str) -> Result<Credentials, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Returns how the connections to each node are protected, if that has changed.
pub(crate) type Renewal =
    Box<dyn FnMut() -> Option<Result<Vec<TransportConfig>, CredentialsError>> + Send>;

/// Pause after a failure.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest time from one call of a provider to the next that it asks for itself.
const SHORTEST_REFRESH: Duration = Duration::from_millis(10);

/// Starts the thread of one node, which hands what the provider returns to `on_return`.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn start(
    address: String,
    provider: Provider,
    on_return: impl Fn(Result<Credentials, CredentialsError>) + Send + 'static,
) -> io::Result<BackgroundCall> {
    BackgroundCall::start("quorumlock login", move || {
        let credentials = called(&provider, &address);
        let again = match &credentials {
            Ok(credentials) => credentials.refreshed_after(),
            Err(_) => Some(PAUSE),
        };
        on_return(credentials);
        again.map(|time| time.max(SHORTEST_REFRESH))
    })
}

/// Starts the thread that looks once a second whether certificates have changed.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn watch_certificates(
    mut renewal: Renewal,
    on_change: impl Fn(Result<Vec<TransportConfig>, CredentialsError>) + Send + 'static,
) -> io::Result<BackgroundCall> {
    let watch = BackgroundCall::start("quorumlock certificates", move || {
        renewal().into_iter().for_each(&on_change);
        Some(LOOK)
    })?;
    watch.ask_after(LOOK);
    Ok(watch)
}

/// What the provider returns, if it can be used.
pub(crate) fn called(provider: &Provider, address: &str) -> Result<Credentials, CredentialsError> {
    let returned = catch_unwind(AssertUnwindSafe(|| provider(address)));
    returned
        .map_err(|_| CredentialsError::Panicked)?
        .map_err(|error| {
            error
                .downcast_ref()
                .copied()
                .unwrap_or(CredentialsError::Failed)
        })?
        .checked()
}
