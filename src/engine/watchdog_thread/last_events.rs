//! The events that are left when a client ends.

use crate::engine::calls::Engine;
use crate::events::report::Reporter;

/// Reports them, for one node timeout at most: the client may wait as long
/// again for its last releases.
pub(super) fn report_last_events(report: &Reporter, engine: &Engine) {
    let deadline = engine.now().after(engine.node_timeout());
    report.deliver_last(|| engine.now() < deadline);
}
