//! How the connections to each node are protected: by TLS where its URL requires it.

use super::Builder;
use crate::events::error::Result;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Endpoint;

/// For each node, in order. Roots are loaded once, and not without a node that needs them.
///
/// # Errors
/// TLS cannot be set up: there are no roots, for example.
#[cfg(feature = "tls")]
pub(super) fn transports(
    builder: &Builder,
    endpoints: &[Endpoint],
) -> Result<Vec<TransportConfig>> {
    use super::config;
    use crate::protocol::endpoint::Address;
    use std::sync::Arc;

    let mut settings = None;
    let mut transports = Vec::with_capacity(endpoints.len());
    for (index, endpoint) in endpoints.iter().enumerate() {
        let host = match endpoint.address() {
            Address::Tcp(host, _) if endpoint.is_tls() => host,
            _ => {
                transports.push(TransportConfig::Plain);
                continue;
            }
        };
        let settings = match &settings {
            Some(settings) => settings,
            None => settings.insert(builder.tls.settings().map_err(config)?),
        };
        let target = settings.target(endpoint.server_name().unwrap_or(host));
        let target = target.map_err(|error| config(format!("node {index}: {error}")))?;
        transports.push(TransportConfig::Tls(Arc::new(target)));
    }
    Ok(transports)
}

/// Without TLS, a URL that asks for it was refused before.
#[cfg(not(feature = "tls"))]
pub(super) fn transports(_: &Builder, endpoints: &[Endpoint]) -> Result<Vec<TransportConfig>> {
    Ok(vec![TransportConfig::Plain; endpoints.len()])
}
