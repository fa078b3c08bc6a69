//! Hands what providers return, and certificates that have changed, to the nodes.

use super::credentials::{self, Provider, Renewal};
use super::driver::Driver;
use super::nodes::Nodes;
use super::rounds::Purpose;
use crate::algorithm::node::NodeId;
use crate::algorithm::quarantine::Quarantine;
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Endpoint;
use std::io;
use std::sync::Arc;
use std::time::Duration;

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

/// Has connections to these nodes log in with what the provider returns.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn start(
    driver: &Arc<Driver<Nodes>>,
    nodes: Vec<(NodeId, String)>,
    provider: &Provider,
    node_timeout: Duration,
) -> io::Result<()> {
    for (node, address) in nodes {
        let weak = Arc::downgrade(driver);
        let thread = credentials::start(address, Arc::clone(provider), move |returned| {
            let Some(driver) = weak.upgrade() else {
                return;
            };
            if driver.enter(|nodes, now| nodes.on_credentials(node, returned, now)) {
                // No call may be there to read the reply.
                driver.run(
                    |nodes, now| (nodes.rounds.open(Purpose::Wait), now.after(node_timeout)),
                    |nodes, ticket| nodes.rounds.unrefer(ticket),
                );
            }
        })?;
        driver.enter(|nodes, _| nodes.connections.log_in_by(node, thread));
    }
    Ok(())
}

/// Has connections protected by certificates as they are in their files.
///
/// # Errors
/// The system does not start a thread.
pub(super) fn watch_certificates(
    driver: &Arc<Driver<Nodes>>,
    renewal: Renewal,
) -> io::Result<BackgroundCall> {
    let weak = Arc::downgrade(driver);
    credentials::watch_certificates(renewal, move |changed| {
        if let Some(driver) = weak.upgrade() {
            driver.enter(|nodes, _| nodes.connections.on_certificates(changed));
        }
    })
}
