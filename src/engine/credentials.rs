//! Asks for the credentials of nodes, off the path of every call, and hands them to the nodes.
//!
//! A provider is code of the program's: it may block, fail or panic. So each node with a provider
//! has a thread that calls it: before each connection, when credentials are to be replaced at a
//! time, and again after a failure. While it blocks, only its own node waits. Another thread looks
//! whether the files of certificates have changed.

use super::driver::Driver;
use super::node_connection::login::PAUSE;
pub(crate) use super::node_connection::login::{Provider, Renewal};
use super::nodes::Nodes;
use super::rounds::Purpose;
use crate::algorithm::node::NodeId;
use crate::algorithm::quarantine::Quarantine;
use crate::fault::credentials_error::CredentialsError;
use crate::os::background_call::BackgroundCall;
use crate::os::caught::caught;
use crate::os::transport::TransportConfig;
use crate::protocol::credentials::Credentials;
use crate::protocol::endpoint::Endpoint;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest time from one call of a provider to the next that it asks for itself.
const SHORTEST_REFRESH: Duration = Duration::from_millis(10);

/// The nodes whose URLs contain no password, and their addresses.
pub(super) fn without_credentials(
    nodes: &[(Endpoint, TransportConfig, Quarantine)],
) -> Vec<(NodeId, String)> {
    nodes
        .iter()
        .enumerate()
        .filter(|(_, (endpoint, ..))| endpoint.handshake().credentials.is_none())
        .map(|(index, (endpoint, ..))| (NodeId::new(index), endpoint.to_string()))
        .collect()
}

/// Has connections to these nodes log in with what the provider returns: a thread for each.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn ask(
    driver: &Arc<Driver<Nodes>>,
    nodes: Vec<(NodeId, String)>,
    provider: &Provider,
    node_timeout: Duration,
) -> io::Result<()> {
    for (node, address) in nodes {
        let weak = Arc::downgrade(driver);
        let provider = Arc::clone(provider);
        let thread = BackgroundCall::start("quorumlock login", move || {
            let returned = called(&provider, &address);
            let again = match &returned {
                Ok(credentials) => credentials.refreshed_after(),
                Err(_) => Some(PAUSE),
            };
            hand_over(&weak, node, returned, node_timeout);
            again.map(|time| time.max(SHORTEST_REFRESH))
        })?;
        driver.enter(|nodes, _| nodes.connections.log_in_by(node, thread));
    }
    Ok(())
}

fn hand_over(
    driver: &Weak<Driver<Nodes>>,
    node: NodeId,
    returned: Result<Credentials, CredentialsError>,
    node_timeout: Duration,
) {
    if let Some(driver) = driver.upgrade()
        && driver.enter(|nodes, now| nodes.on_credentials(node, returned, now))
    {
        // No call may be there to read the reply.
        driver.run(
            |nodes, now| (nodes.rounds.open(Purpose::Wait), now.after(node_timeout)),
            |nodes, ticket| nodes.rounds.unrefer(ticket),
        );
    }
}

/// Has connections protected by certificates as they are in their files: a thread looks once a
/// second whether these have changed.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn watch_certificates(
    driver: &Arc<Driver<Nodes>>,
    mut renewal: Renewal,
) -> io::Result<BackgroundCall> {
    let weak = Arc::downgrade(driver);
    let watch = BackgroundCall::start("quorumlock certificates", move || {
        if let Some(changed) = renewal()
            && let Some(driver) = weak.upgrade()
        {
            driver.enter(|nodes, _| nodes.connections.on_certificates(changed));
        }
        Some(LOOK)
    })?;
    watch.ask_after(LOOK);
    Ok(watch)
}

/// What the provider returns, if it can be used.
pub(crate) fn called(provider: &Provider, address: &str) -> Result<Credentials, CredentialsError> {
    caught(|| provider(address))
        .ok_or(CredentialsError::Panicked)?
        .map_err(|error| {
            error
                .downcast_ref()
                .copied()
                .unwrap_or(CredentialsError::Failed)
        })?
        .checked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::caught::tests::PanicsWhenDropped;
    use std::panic::panic_any;

    #[test]
    fn no_panic_of_a_provider_ends_its_thread() {
        let provider: Provider = Arc::new(|_: &str| panic_any(PanicsWhenDropped));
        assert_eq!(called(&provider, "node"), Err(CredentialsError::Panicked));
    }
}
