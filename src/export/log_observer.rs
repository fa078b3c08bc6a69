//! Each event as one line of the crate `log`.

use crate::events::event::{Event, Severity};
use crate::events::observer::Observer;
use log::Level;

/// Writes each [event](crate::event) as one line to the logger of the crate `log`.
///
/// | Target | Events |
/// |---|---|
/// | `quorumlock::lock` | of calls, locks and releases, and `EventsDropped` |
/// | `quorumlock::node` | of nodes |
///
/// The level follows the [severity](crate::event::Severity): `debug`, `info`, `warn` or `error`. So a logger that shows
/// `info` shows no ordinary work. A line has the text of the event's `Display`, see the [page of
/// messages](crate::docs::messages), and never a token or a password.
///
/// ```
/// use quorumlock::{LogObserver, Redlock};
///
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// let redlock = Redlock::builder().node(node.url()).observer(LogObserver).build()?;
/// # drop(redlock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LogObserver;

impl Observer for LogObserver {
    fn event(&self, event: &Event) {
        log::log!(target: target(event), level(event.severity()), "{event}");
    }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Debug => Level::Debug,
        Severity::Info => Level::Info,
        Severity::Warning => Level::Warn,
        Severity::Error => Level::Error,
    }
}

fn target(event: &Event) -> &'static str {
    match event {
        Event::NodeDown(_) | Event::NodeMayEvict(_) | Event::NodeNotDurable(_) | Event::NodeQuarantined(_) => NODE,
        Event::NodeMismatched(_) | Event::NodeUp(_) | Event::QuarantineEnded(_) => NODE,
        Event::ReleaseNotificationsRefused(_) => NODE,
        _ => LOCK,
    }
}

const LOCK: &str = "quorumlock::lock";
const NODE: &str = "quorumlock::node";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::samples;

    #[test]
    fn every_event_about_a_node_alone_goes_to_the_target_of_nodes() {
        for event in samples::all() {
            let is_about_a_lock = event.to_string().contains("orders/42") || matches!(event, Event::EventsDropped(_));
            assert_eq!(target(&event), if is_about_a_lock { LOCK } else { NODE }, "{event}");
        }
    }
}
