//! What `doctor` finds: how bad it is, what it is, and what to do.

use crate::json::{Object, object};
use crate::report::write_line;

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    kind: &'static str,
    what: String,
    remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Locks work as they should, as far as is known.
    Note,
    /// Locks work, and may not always.
    Warning,
    /// The node does not vote.
    Fault,
}

impl Level {
    pub(super) fn finding(
        self,
        kind: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level: self,
            kind,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl Finding {
    pub(super) fn show(&self) {
        let Finding {
            kind, what, remedy, ..
        } = self;
        let colon = if remedy.is_empty() { "" } else { "; " };
        write_line!("  {}: {kind}: {what}{colon}{remedy}", self.word());
    }

    pub(super) fn json(&self) -> Object {
        object! {
            "level" = self.word(),
            "kind" = self.kind,
            "message" = self.what,
            "remedy" = self.remedy,
        }
    }

    fn word(&self) -> &'static str {
        match self.level {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }
}
