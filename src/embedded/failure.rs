//! Why a script of the library came to no answer, and how servers say so.
//!
//! An error that the script returns stands for itself. One that it does not catch names the script and the line, and
//! before Redis 7.0 both do.

use super::config::ServerKind;
use crate::protocol::script;
use std::borrow::Cow;

/// Why a script came to no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptFailure {
    /// What a command inside it answered, or what the server says of the script itself.
    Answered(&'static str),
    /// The server did not run a command inside it.
    NotRun {
        error: &'static str,
        /// Where in the script the command stands.
        line: usize,
        /// The hash of the script, if it does not catch the error.
        uncaught_by: Option<&'static str>,
    },
}

impl ScriptFailure {
    /// The server does not run the first command of the script that begins so.
    pub(super) fn of_call(error: &'static str, script: &str, call: &str) -> ScriptFailure {
        let before = script.split(call).next().unwrap_or_default();
        let uncaught_by = Some(script::RELEASE_SHA1).filter(|_| script == script::RELEASE);
        ScriptFailure::NotRun { error, line: before.matches('\n').count() + 1, uncaught_by }
    }

    /// The text of the error reply, as the servers of this kind put it.
    pub(super) fn text(self, kind: ServerKind) -> Cow<'static, str> {
        let (error, line, uncaught_by) = match self {
            ScriptFailure::Answered(text) => return text.into(),
            ScriptFailure::NotRun { error, line, uncaught_by } => (error, line, uncaught_by),
        };
        match (kind, uncaught_by) {
            (ServerKind::Redis62, None) => format!("@user_script: {line}: -{error}").into(),
            (ServerKind::Redis62, Some(hash)) => {
                let place = format!("@user_script:{line}: @user_script: {line}:");
                format!("ERR Error running script (call to f_{hash}): {place} -{error}").into()
            }
            (_, None) => error.into(),
            (ServerKind::Valkey9, Some(_)) => format!("{error} script: on @user_script:{line}.").into(),
            (_, Some(hash)) => format!("{error} script: {hash}, on @user_script:{line}.").into(),
        }
    }
}

impl From<&'static str> for ScriptFailure {
    fn from(text: &'static str) -> ScriptFailure {
        ScriptFailure::Answered(text)
    }
}
