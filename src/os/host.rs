//! What this machine is called.

/// The name of this machine in its network; empty where the system does not report it.
#[cfg(unix)]
pub(crate) fn name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(not(unix))]
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
