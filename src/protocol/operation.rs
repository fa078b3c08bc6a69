//! The operations on the key of a lock, which every node of a round is asked alike: a verb, and the kind of the lock.

use super::form::Form;
use super::script::Script;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lock_kind::Access;
use crate::algorithm::queue::{Entry, TakeRequest};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is asked.
    pub verb: Verb,
    /// Of which lock.
    pub kind: Kind,
}

/// What is asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Takes the lock if it is free, whichever calls wait. Times to live count by the node's clock, from when it
    /// executes the command.
    Acquire {
        /// The time to live.
        ttl_millis: u64,
    },
    /// Lets the hold last longer, if it is ours.
    Extend {
        /// The time to live from then on.
        ttl_millis: u64,
    },
    /// Removes the entry of a call that neither holds the lock nor asks for it. Without one, those that wait are told.
    Leave(Option<Entry>),
    /// Raises the fence to `least`, if the hold is ours.
    Raise,
    /// Ends the hold, if it is ours.
    Release(Option<Departure>),
    /// Takes the lock if it is free and no other call is first, or stores the call's entry.
    Take {
        /// The time to live.
        ttl_millis: u64,
        /// How the call asks.
        request: TakeRequest,
    },
}

/// What becomes of the entry of a call whose hold or attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The call's.
    pub entry: Entry,
    /// It is stored with this ticket; none: it is removed.
    pub ticket: Option<u64>,
    /// Of a set: in the queue of which of its keys it is.
    pub key: u8,
}

impl Departure {
    /// The same for an entry that is removed.
    pub fn without_ticket(self) -> Departure {
        Departure { ticket: None, ..self }
    }
}

/// What an operation on a fenced lock says beside what it says of any lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceRequest {
    /// The least fencing token. Only an acquisition and a raise send it.
    pub least: FencingToken,
    /// How long the node keeps the fence from now on. No shorter than any time to live.
    pub retention_millis: u64,
}

/// The kind of the lock, as far as its commands depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fenced lock.
    Fenced(FenceRequest),
    /// A slot of a semaphore with so many permits.
    Permit(u16),
    /// A plain lock.
    Plain,
    /// A read-write lock; with a number for writers that want one.
    ReadWrite(Access, Option<FenceRequest>),
}

impl Kind {
    /// What makes it a lock with numbers.
    pub fn fence(self) -> Option<FenceRequest> {
        match self {
            Kind::Fenced(fence) => Some(fence),
            Kind::Permit(_) | Kind::Plain => None,
            Kind::ReadWrite(_, fence) => fence,
        }
    }

    /// Whether its key holds nothing but a token: any library understands it.
    pub(super) fn is_token_only(self) -> bool {
        matches!(self, Kind::Permit(_) | Kind::Plain)
    }

    pub(super) fn script(self) -> Script {
        match self {
            Kind::Fenced(_) => Script::Fenced,
            Kind::Permit(_) => Script::Permit,
            Kind::Plain => Script::Plain,
            Kind::ReadWrite(..) => Script::ReadWrite,
        }
    }
}

/// What the meaning of a reply to an operation depends on. An operation is large, and is kept once for all nodes; this
/// is kept for each reply that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) verb: AskedVerb,
    pub(super) kind: Kind,
}

/// A [`Verb`], as far as the meaning of a reply depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedVerb {
    Acquire,
    Extend,
    Leave,
    Raise,
    Release,
    Take {
        stores_only: bool,
        /// Whether it is a fault that the node has no queue for the call.
        needs_queue: bool,
        /// Whether it can be asked by `SET` where there are no scripts. Without scripts there is no queue.
        may_go_by_set: bool,
    },
}

impl Operation {
    /// Whether it may begin a lock.
    pub fn acquires(&self) -> bool {
        self.asked().acquires()
    }

    /// Whether it ends a lock.
    pub fn is_release(&self) -> bool {
        matches!(self.verb, Verb::Release(_))
    }

    /// What the meaning of a reply depends on.
    pub(super) fn asked(&self) -> Asked {
        let is_token_only = self.kind.is_token_only();
        let verb = match self.verb {
            Verb::Acquire { .. } => AskedVerb::Acquire,
            Verb::Extend { .. } => AskedVerb::Extend,
            Verb::Leave(_) => AskedVerb::Leave,
            Verb::Raise => AskedVerb::Raise,
            Verb::Release(_) => AskedVerb::Release,
            Verb::Take { request: TakeRequest { entry, stores_only, must_queue, .. }, .. } => AskedVerb::Take {
                stores_only,
                needs_queue: entry.is_some() && (must_queue || !is_token_only),
                may_go_by_set: is_token_only && !stores_only && !must_queue,
            },
        };
        Asked { verb, kind: self.kind }
    }
}

impl Asked {
    pub(super) fn acquires(self) -> bool {
        matches!(self.verb, AskedVerb::Acquire | AskedVerb::Take { stores_only: false, .. })
    }

    pub(super) fn is_release(self) -> bool {
        self.verb == AskedVerb::Release
    }

    /// Whether it removes a hold or an entry: the reply may report which other clients were told.
    pub(super) fn departs(self) -> bool {
        matches!(self.verb, AskedVerb::Leave | AskedVerb::Release)
    }

    pub(super) fn may_go_by_set(self) -> bool {
        matches!(self.verb, AskedVerb::Take { may_go_by_set: true, .. })
    }

    /// The form that it is sent in to a server that has run the script.
    pub(super) fn usual_form(self) -> Form {
        match (self.verb, self.script()) {
            // An extension is never sent twice: behind a later one, it would shorten what that has gained.
            (AskedVerb::Extend, _) => Form::Text,
            (_, None) => Form::Set,
            (_, Some(_)) => Form::Hash,
        }
    }

    /// The script of its kind, if it is asked by that.
    pub(super) fn script(self) -> Option<Script> {
        let is_by_command = matches!(self.verb, AskedVerb::Acquire | AskedVerb::Extend);
        (!(is_by_command && self.kind.is_token_only())).then(|| self.kind.script())
    }

    /// The commands that a user needs for it, for a message.
    pub(super) fn commands(self) -> &'static str {
        match (self.kind, self.verb) {
            (Kind::Permit(_) | Kind::Plain, AskedVerb::Acquire) => "SET",
            (Kind::Permit(_) | Kind::Plain, AskedVerb::Extend) => "EVAL with GET and PEXPIRE",
            (Kind::Permit(_) | Kind::Plain, AskedVerb::Release) => "EVAL with GET and DEL",
            (_, AskedVerb::Take { .. } | AskedVerb::Leave) => {
                "EVAL with GET, SET, DEL, EXISTS, PTTL, TIME and the commands of queues"
            }
            (Kind::ReadWrite(..), _) => "EVAL with GET, SET, DEL, PEXPIRE and TIME",
            _ => "EVAL with GET, SET and TIME",
        }
    }
}
