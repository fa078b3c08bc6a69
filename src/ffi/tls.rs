//! TLS in a configuration. Without the feature `tls`, each function says that it is not supported.

use super::boundary::call;
use super::code::Code;
use super::config::ConfigHandle;
#[cfg(feature = "tls")]
use super::config::with_parameter;
use super::failure::{Failure, Result};
use super::handle::Borrowed;
use super::text::Bytes;
#[cfg(feature = "tls")]
use crate::Tls;

/// One setting.
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "read with TLS alone"))]
enum Setting<'t> {
    Identity(&'t str, &'t str),
    RootsFile(&'t str),
    RootsPem(&'t str),
    /// Of the node that was added last.
    ServerName(&'t str),
}

#[cfg(feature = "tls")]
fn apply(config: &ConfigHandle, setting: Setting<'_>) -> Result<Code> {
    let change = |change: &dyn Fn(Tls) -> Tls| config.change(|builder| builder.change_tls(change));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    match setting {
        Setting::Identity(certificate, key) => change(&|tls| tls.identity_pem(certificate, key)),
        Setting::RootsFile(path) => change(&|tls| tls.roots_file(path)),
        Setting::RootsPem(pem) => change(&|tls| tls.roots_pem(pem)),
        Setting::ServerName(name) if name.is_empty() || !name.bytes().all(is_part) => {
            Err(Failure::new(Code::InvalidArgument, "a server name is a host name or an IP address"))
        }
        Setting::ServerName(name) => config.try_change(|settings| {
            let no_node = || Failure::new(Code::InvalidArgument, "no node was added before its server name");
            let url = settings.nodes.last_mut().ok_or_else(no_node)?;
            *url = with_parameter(url, "server_name", name);
            Ok(())
        }),
    }
}

#[cfg(not(feature = "tls"))]
fn apply(_: &ConfigHandle, _: Setting<'_>) -> Result<Code> {
    Err(Failure::plain(Code::Unsupported))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_tls_roots_pem(
    config: Borrowed<ConfigHandle>,
    pem: Bytes,
    pem_length: usize,
) -> Code {
    call(|| apply(&*config.required("config")?, Setting::RootsPem(pem.text(pem_length, "pem")?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_tls_roots_file(
    config: Borrowed<ConfigHandle>,
    path: Bytes,
    path_length: usize,
) -> Code {
    call(|| apply(&*config.required("config")?, Setting::RootsFile(path.text(path_length, "path")?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_tls_identity_pem(
    config: Borrowed<ConfigHandle>,
    certificate: Bytes,
    certificate_length: usize,
    key: Bytes,
    key_length: usize,
) -> Code {
    call(|| {
        let config = config.required("config")?;
        let certificate = certificate.text(certificate_length, "certificate")?;
        apply(&config, Setting::Identity(certificate, key.text(key_length, "key")?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_tls_server_name(
    config: Borrowed<ConfigHandle>,
    name: Bytes,
    name_length: usize,
) -> Code {
    call(|| apply(&*config.required("config")?, Setting::ServerName(name.text(name_length, "name")?)))
}
