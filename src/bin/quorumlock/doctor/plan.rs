//! What is examined, and with what.

use quorumlock::protocol::endpoint::Endpoint;
use quorumlock::{Credentials, Settings};

/// What is examined, of every node.
pub(super) struct Plan<'d> {
    pub(super) settings: &'d Settings,
    /// The random name of the trial's lock.
    pub(super) name: String,
    /// What names begin with.
    pub(super) begin: String,
}

impl Plan<'_> {
    /// Whether a node is declared durable.
    pub(super) fn is_durable(&self, endpoint: &Endpoint) -> bool {
        endpoint.durable().unwrap_or(self.settings.durable)
    }
}

/// The user of the node, as ACL rules name it.
pub(super) fn user(endpoint: &Endpoint) -> &str {
    let credentials = endpoint.handshake().credentials.as_ref();
    credentials
        .and_then(Credentials::user_name)
        .or(endpoint.user())
        .unwrap_or("default")
}
