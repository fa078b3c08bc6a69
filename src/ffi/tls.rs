//! What of TLS is no setting by name: certificates and keys in memory. Without the feature `tls`,
//! each function returns that it is not supported.

use super::boundary::calls;
use super::code::Code;
use super::config::ConfigHandle;
#[cfg(not(feature = "tls"))]
use super::failure::Failure;
use super::failure::Result;

#[cfg(feature = "tls")]
fn add_roots(config: &ConfigHandle, pem: &str) -> Result<Code> {
    config.change(|builder| Ok(builder.change_tls(|tls| tls.roots_pem(pem))))
}

#[cfg(feature = "tls")]
fn set_identity(config: &ConfigHandle, certificate: &str, key: &str) -> Result<Code> {
    config.change(|builder| Ok(builder.change_tls(|tls| tls.identity_pem(certificate, key))))
}

#[cfg(not(feature = "tls"))]
fn add_roots(_: &ConfigHandle, _: &str) -> Result<Code> {
    Err(Failure::plain(Code::Unsupported))
}

#[cfg(not(feature = "tls"))]
fn set_identity(_: &ConfigHandle, _: &str, _: &str) -> Result<Code> {
    Err(Failure::plain(Code::Unsupported))
}

calls! {
    fn quorumlock_config_set_tls_roots_pem(&config: ConfigHandle, *pem[pem_length]) {
        add_roots(&config, pem)
    }

    fn quorumlock_config_set_tls_identity_pem(
        &config: ConfigHandle,
        *certificate[certificate_length],
        *key[key_length]
    ) {
        set_identity(&config, certificate, key)
    }
}
