//! What `doctor` finds: how bad it is, what it is, and what to do.

use crate::json::{Json, list, object};
use crate::report::write_line;

/// All that was found of something.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

struct Finding {
    level: Level,
    kind: &'static str,
    what: String,
    remedy: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Locks work as they should, as far as is known.
    Note,
    /// Locks work, and may not always.
    Warning,
    /// The node does not vote.
    Fault,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        level: Level,
        kind: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding {
            level,
            kind,
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// The level of the worst of them.
    pub(super) fn worst(&self) -> Option<Level> {
        self.0.iter().map(|finding| finding.level).max()
    }

    pub(super) fn show(&self) {
        for Finding {
            level,
            kind,
            what,
            remedy,
        } in &self.0
        {
            let colon = if remedy.is_empty() { "" } else { "; " };
            write_line!("  {}: {kind}: {what}{colon}{remedy}", level.word());
        }
    }

    pub(super) fn json(&self) -> Json {
        list(self.0.iter().map(|finding| {
            object! {
                "level" = finding.level.word(),
                "kind" = finding.kind,
                "message" = finding.what,
                "remedy" = finding.remedy,
            }
        }))
    }
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }
}
