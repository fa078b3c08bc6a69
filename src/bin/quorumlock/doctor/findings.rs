//! What `doctor` finds: how bad it is, what it is, and what to do.

use crate::json::Object;
use crate::report;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Worth knowing.
    Note,
    /// Locks work, and may not always.
    Warning,
    /// The node does not vote.
    Fault,
}

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    kind: &'static str,
    what: String,
    remedy: String,
}

impl Finding {
    pub(super) fn note(kind: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Note, kind, what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn warning(kind: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, ..Finding::note(kind, what, remedy) }
    }

    pub(super) fn fault(kind: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Fault, ..Finding::note(kind, what, remedy) }
    }

    pub(super) fn show(&self) {
        let Finding { kind, what, remedy, .. } = self;
        let colon = if remedy.is_empty() { "" } else { "; " };
        report::line(format_args!("  {}: {kind}: {what}{colon}{remedy}", self.word()));
    }

    pub(super) fn json(&self) -> String {
        let object = Object::new().text("level", self.word()).text("kind", self.kind);
        object.text("message", &self.what).text("remedy", &self.remedy).to_string()
    }

    fn word(&self) -> &'static str {
        match self.level {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }
}
