//! What `doctor` finds: how bad it is, what it is, and what to do.

use crate::json::Object;
use crate::report;

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    level: Level,
    kind: &'static str,
    what: String,
    remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Locks work as they should, as far as is known.
    Note,
    /// Locks work, and may not always.
    Warning,
    /// The node does not vote.
    Fault,
}

impl Finding {
    fn new(level: Level, kind: &'static str, what: String, remedy: &str) -> Finding {
        Finding {
            level,
            kind,
            what,
            remedy: remedy.to_owned(),
        }
    }

    pub(super) fn note(kind: &'static str, what: impl Into<String>, remedy: &str) -> Finding {
        Finding::new(Level::Note, kind, what.into(), remedy)
    }

    pub(super) fn warning(kind: &'static str, what: impl Into<String>, remedy: &str) -> Finding {
        Finding::new(Level::Warning, kind, what.into(), remedy)
    }

    pub(super) fn fault(kind: &'static str, what: impl Into<String>, remedy: &str) -> Finding {
        Finding::new(Level::Fault, kind, what.into(), remedy)
    }

    pub(super) fn is_note(&self) -> bool {
        self.level == Level::Note
    }

    pub(super) fn is_fault(&self) -> bool {
        self.level == Level::Fault
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
        match self.level {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }
}
