//! Faults of what a client does about nodes that were restarted.

use super::{Mutant, mutants};

mutants! {
    "restart not noticed" in "algorithm/quarantine.rs":
        "(_, Met::Process(known, _)) if known.is_some() && known == id => Duration::ZERO,"
            => "(_, Met::Process(..)) => Duration::ZERO,";
    "a node first met with a low uptime counts" in "algorithm/quarantine.rs":
        "self.term.saturating_sub(process.uptime)"
            => "Duration::ZERO";
    "quarantine too short" in "algorithm/quarantine.rs":
        "self.end.max(Some(now.after(wait)))"
            => "self.end.max(Some(now.after(wait / 2)))";
    "quarantine ends with the wall clock" in "engine/nodes/vote_filter.rs":
        "self\n            .connection\n            .quarantine\n            .meet(&process, self.clock.now())"
            => "self.connection.quarantine.meet(&process, Timestamp::from_nanos(self.clock.lease_now().as_nanos()))",
        "if quarantine.end(self.clock.now())"
            => "if quarantine.end(Timestamp::from_nanos(self.clock.lease_now().as_nanos()))";
    "the first flight of a restarted node counts" in "engine/nodes/dispatch.rs":
        "                self.connections.filter(node).on_handshake();\n"
            => "",
        "        let mut is_answered = false;\n        while self.connections"
            => "        let (mut is_answered, mut is_new) = (false, false);\n        while self.connections",
        "Ok(Some(event)) => is_answered"
            => "Ok(Some(SessionEvent::Accepted)) => is_new = true,\n                Ok(Some(event)) => is_answered",
        "        Ok(is_answered)\n"
            => "        if is_new {\n            self.connections.filter(node).on_handshake();\n\
                 \x20           self.connections.reject_duplicate(node, now);\n        }\n\
                 \x20       Ok(is_answered)\n";
    "no release in quarantine" in "engine/nodes/requests.rs":
        "if is_wanted && !connection.is_closed() {"
            => "if is_wanted && !connection.is_closed() && !connection.quarantine.is_on() {";
}
