//! Each event as one line of the crate `log`.

use super::severity::Severity;
use super::variants::Event;
use log::Level;

/// Writes an event as one line to the logger of the crate `log`: an observer.
///
/// | Target | Events |
/// |---|---|
/// | `quorumlock::node` | of nodes |
/// | `quorumlock::lock` | all others |
///
/// The level follows the [severity](Severity): `debug`, `info`, `warn` or `error`. So a logger that
/// shows `info` shows no ordinary work.
///
/// ```
/// use quorumlock::{Redlock, event};
///
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// let redlock = Redlock::builder().node(node.url()).observer(event::log).build()?;
/// # drop(redlock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn log(event: &Event) {
    let target = if event.node().is_some() {
        "quorumlock::node"
    } else {
        "quorumlock::lock"
    };
    let level = match event.severity() {
        Severity::Debug => Level::Debug,
        Severity::Info => Level::Info,
        Severity::Warning => Level::Warn,
        Severity::Error => Level::Error,
    };
    log::log!(target: target, level, "{event}");
}
