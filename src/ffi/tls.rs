//! What of TLS is no setting by name: certificates and keys in memory. Without the feature `tls`,
//! each function returns that it is not supported.

use super::boundary::calls;
#[cfg(not(feature = "tls"))]
use super::code::Code;
use super::config::ConfigHandle;
#[cfg(not(feature = "tls"))]
use super::failure::{Failure, Result};

#[cfg(not(feature = "tls"))]
fn unsupported<A>(_: A) -> Result<Code> {
    Err(Failure::plain(Code::Unsupported))
}

calls! {
    fn quorumlock_config_set_tls_roots_pem(&config: ConfigHandle, *pem[pem_length]) {
        #[cfg(feature = "tls")]
        let changed = config.change(|builder| Ok(builder.change_tls(|tls| tls.roots_pem(pem))));
        #[cfg(not(feature = "tls"))]
        let changed = unsupported((config, pem));
        changed
    }

    fn quorumlock_config_set_tls_identity_pem(
        &config: ConfigHandle,
        *certificate[certificate_length],
        *key[key_length]
    ) {
        #[cfg(feature = "tls")]
        let changed = config.change(|builder| {
            Ok(builder.change_tls(|tls| tls.identity_pem(certificate, key)))
        });
        #[cfg(not(feature = "tls"))]
        let changed = unsupported((config, certificate, key));
        changed
    }
}
