//! What `doctor` finds: how bad it is, what it is, and what to do.

use crate::json::Object;
use crate::report;

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// Whether the node does not vote. Otherwise, locks work, and may not always.
    pub(super) is_fault: bool,
    kind: &'static str,
    what: String,
    remedy: String,
}

impl Finding {
    pub(super) fn warning(
        kind: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            is_fault: false,
            kind,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn fault(
        kind: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            is_fault: true,
            ..Finding::warning(kind, what, remedy)
        }
    }

    pub(super) fn show(&self) {
        let Finding {
            kind, what, remedy, ..
        } = self;
        let colon = if remedy.is_empty() { "" } else { "; " };
        report::line(format_args!(
            "  {}: {kind}: {what}{colon}{remedy}",
            self.word()
        ));
    }

    pub(super) fn json(&self) -> String {
        let object = Object::new()
            .text("level", self.word())
            .text("kind", self.kind);
        object
            .text("message", &self.what)
            .text("remedy", &self.remedy)
            .to_string()
    }

    fn word(&self) -> &'static str {
        if self.is_fault { "fault" } else { "warning" }
    }
}
