//! How the connections to each node are protected: by TLS where its URL requires it.

use super::Builder;
use crate::engine::credentials::Renewal;
use crate::events::error::Result;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Endpoint;

/// For each node, in order.
///
/// # Errors
/// TLS cannot be set up: there are no roots, for example.
#[cfg(feature = "tls")]
pub(super) fn transports(
    builder: &Builder,
    endpoints: &[Endpoint],
) -> Result<Vec<TransportConfig>> {
    targets(&builder.tls, endpoints).map_err(crate::events::error::config_error)
}

/// What returns the same when a file of certificates has changed; nothing where there is none.
#[cfg(feature = "tls")]
pub(super) fn renewal(builder: &Builder, endpoints: &[Endpoint]) -> Option<Renewal> {
    use crate::fault::credentials_error::CredentialsError;

    let tls = builder.tls.clone();
    let mut used = Some(tls.stamp()?).filter(|_| endpoints.iter().any(Endpoint::is_tls))?;
    let mut refused = None;
    let endpoints = endpoints.to_vec();
    Some(Box::new(move || {
        let now = tls.stamp()?;
        if now == used {
            return None;
        }
        if let Ok(transports) = targets(&tls, &endpoints) {
            used = now;
            return Some(Ok(transports));
        }
        // It is tried again each time: rights are no part of what shows a change.
        let is_reported = refused.as_ref() == Some(&now);
        refused = Some(now);
        (!is_reported).then_some(Err(CredentialsError::BadCertificate))
    }))
}

/// Roots are loaded once, and not without a node that needs them.
#[cfg(feature = "tls")]
fn targets(
    tls: &crate::api::tls::Tls,
    endpoints: &[Endpoint],
) -> std::result::Result<Vec<TransportConfig>, String> {
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
            None => settings.insert(tls.settings()?),
        };
        let target = settings.target(endpoint.server_name().unwrap_or(host));
        let target = target.map_err(|error| format!("node {index}: {error}"))?;
        transports.push(TransportConfig::Tls(Arc::new(target)));
    }
    Ok(transports)
}

/// Without TLS, a URL that asks for it was refused before.
#[cfg(not(feature = "tls"))]
pub(super) fn transports(_: &Builder, endpoints: &[Endpoint]) -> Result<Vec<TransportConfig>> {
    Ok(vec![TransportConfig::Plain; endpoints.len()])
}

/// Nothing is in files.
#[cfg(not(feature = "tls"))]
pub(super) fn renewal(_: &Builder, _: &[Endpoint]) -> Option<Renewal> {
    None
}
