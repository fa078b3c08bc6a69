//! Why a script of the library came to no answer, and the error that servers reply then.
//!
//! A script returns the errors of its commands. Before Redis 7.0, the error of a command that the server did not run
//! names the line of the script.

use super::config::ServerKind;
use std::borrow::Cow;

/// Why a script came to no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptFailure {
    /// What a command inside it replied, or what the server reports about the script itself.
    Answered(&'static str),
    /// The server did not run a command inside it.
    NotRun {
        error: &'static str,
        /// The line of the script with the command.
        line: usize,
    },
}

impl ScriptFailure {
    /// The server does not run the first command of the script that begins so.
    pub(super) fn of_call(error: &'static str, script: &str, call: &str) -> ScriptFailure {
        let before = script.split(call).next().unwrap_or_default();
        ScriptFailure::NotRun { error, line: before.matches('\n').count() + 1 }
    }

    /// The text of the error reply, as the servers of this kind put it.
    pub(super) fn text(self, kind: ServerKind) -> Cow<'static, str> {
        match self {
            ScriptFailure::NotRun { error, line } if kind == ServerKind::Redis62 => {
                format!("@user_script: {line}: -{error}").into()
            }
            ScriptFailure::Answered(error) | ScriptFailure::NotRun { error, .. } => error.into(),
        }
    }
}

impl From<&'static str> for ScriptFailure {
    fn from(text: &'static str) -> ScriptFailure {
        ScriptFailure::Answered(text)
    }
}
