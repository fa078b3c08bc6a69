//! What the meaning of a reply to an operation depends on. An operation is large, and is kept once
//! for all nodes; this is kept for each reply that is expected.

use super::form::Form;
use super::kinds;
use super::kinds::wire::{AskedVerb, Wire};
use super::operation::{Operation, Verb};
use super::script::Script;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::queue::TakeRequest;

/// An operation, as far as the meaning of a reply depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) verb: AskedVerb,
    /// What is particular to the kind of the lock.
    pub(super) wire: &'static Wire,
    /// The least number, where the lock has numbers.
    pub(super) least: Option<FencingToken>,
}

impl Asked {
    pub(super) fn of(operation: &Operation) -> Asked {
        let wire = kinds::wire(operation.kind);
        let verb = match operation.verb {
            Verb::Acquire { .. } => AskedVerb::Acquire,
            Verb::Extend { .. } | Verb::Keep { .. } => AskedVerb::Extend,
            Verb::Leave(_) => AskedVerb::Leave,
            Verb::Raise => AskedVerb::Raise,
            Verb::Release(_) => AskedVerb::Release,
            Verb::Take {
                request:
                    TakeRequest {
                        entry,
                        stores_only,
                        must_queue,
                        ..
                    },
                ..
            } => AskedVerb::Take {
                stores_only,
                needs_queue: entry.is_some() && (must_queue || !wire.is_token_only),
                may_go_by_set: wire.is_token_only && !stores_only && !must_queue,
            },
        };
        Asked {
            verb,
            wire,
            least: operation.kind.fence(),
        }
    }

    pub(super) fn acquires(self) -> bool {
        matches!(
            self.verb,
            AskedVerb::Acquire
                | AskedVerb::Take {
                    stores_only: false,
                    ..
                }
        )
    }

    pub(super) fn is_release(self) -> bool {
        self.verb == AskedVerb::Release
    }

    /// Whether it removes a hold or an entry: the reply may report which other clients were told.
    pub(super) fn departs(self) -> bool {
        matches!(self.verb, AskedVerb::Leave | AskedVerb::Release)
    }

    pub(super) fn may_go_by_set(self) -> bool {
        matches!(
            self.verb,
            AskedVerb::Take {
                may_go_by_set: true,
                ..
            }
        )
    }

    /// The form that it is sent in to a server that has run the script.
    pub(super) fn usual_form(self) -> Form {
        match (self.verb, self.script()) {
            // An extension is never sent twice: behind a later one, it would shorten what that has
            // gained.
            (AskedVerb::Extend, _) => Form::Text,
            (_, None) => Form::Set,
            (_, Some(_)) => Form::Hash,
        }
    }

    /// The script of its kind, if it is asked by that.
    pub(super) fn script(self) -> Option<&'static Script> {
        let is_by_command = matches!(self.verb, AskedVerb::Acquire | AskedVerb::Extend);
        (!(is_by_command && self.wire.is_token_only)).then_some(&self.wire.script)
    }

    /// The commands that a user needs for it, for a message.
    pub(super) fn commands(self) -> &'static str {
        let [acquire, extend, release] = self.wire.needs;
        match self.verb {
            AskedVerb::Acquire => acquire,
            AskedVerb::Extend | AskedVerb::Raise => extend,
            AskedVerb::Release => release,
            AskedVerb::Take { .. } | AskedVerb::Leave => {
                "EVAL with GET, SET, DEL, EXISTS, PTTL, TIME and the commands of queues"
            }
        }
    }
}
