//! The kinds of locks on the wire. Each has one file, with its keys, its script, what it is asked
//! and replies, and what is stored under its key. What they have in common is in
//! [`queue`](super::queue).

pub mod fenced;
pub mod key_kind;
pub mod number;
pub mod permit;
pub mod plain;
pub mod read_write;
pub(super) mod wire;

use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::protocol::script::Script;
use key_kind::KeyKind;
use wire::Wire;

/// All kinds of keys.
pub const KEYS: [&KeyKind; 3] = [&plain::KEYS, &fenced::KEYS, &read_write::KEYS];
/// The scripts, each at its index.
pub(super) const SCRIPTS: [Script; 4] = [
    fenced::SCRIPT,
    permit::SCRIPT,
    plain::SCRIPT,
    read_write::SCRIPT,
];

/// What the version of a lease's text tells.
#[derive(Clone, Copy)]
pub struct LeaseForm {
    /// The kind of the lock, with any number.
    pub kind: Kind,
    /// Whether it has several keys.
    pub is_set: bool,
    /// Whether the text has the label of the holder.
    pub is_labelled: bool,
}

impl LeaseForm {
    /// The version. A slot is the plain lock of its name.
    pub fn version(self) -> &'static str {
        match (self.kind, self.is_set, self.is_labelled) {
            (Kind::Plain | Kind::Permit(_), false, false) => "1",
            (Kind::Fenced(_), _, false) => "2",
            (Kind::Plain | Kind::Permit(_), false, true) => "3",
            (Kind::Fenced(_), _, true) => "4",
            (Kind::Plain | Kind::Permit(_), true, false) => "5",
            (Kind::Plain | Kind::Permit(_), true, true) => "6",
            (Kind::Read, ..) => "7",
            (Kind::Write(None), ..) => "8",
            (Kind::Write(Some(_)), ..) => "9",
        }
    }

    /// The form with this version, if there is one.
    pub fn of(version: &str) -> Option<LeaseForm> {
        let fence = FencingToken::MAX;
        let kinds = [
            Kind::Plain,
            Kind::Fenced(fence),
            Kind::Read,
            Kind::Write(None),
            Kind::Write(Some(fence)),
        ];
        let forms = [(false, false), (false, true), (true, false), (true, true)];
        let mut forms = kinds.into_iter().flat_map(|kind| {
            forms.map(|(is_set, is_labelled)| LeaseForm {
                kind,
                is_set,
                is_labelled,
            })
        });
        forms.find(|form| form.version() == version)
    }
}

/// What is particular to a kind.
pub(super) fn wire(kind: Kind) -> &'static Wire {
    match kind {
        Kind::Fenced(_) => &fenced::WIRE,
        Kind::Permit(_) => &permit::WIRE,
        Kind::Plain => &plain::WIRE,
        Kind::Read | Kind::Write(_) => &read_write::WIRE,
    }
}

/// The keys of locks of this kind.
pub fn keys(kind: Kind) -> &'static KeyKind {
    wire(kind).keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_a_script_of_its_own() {
        let kinds = [
            Kind::Plain,
            Kind::Permit(3),
            Kind::Fenced(FencingToken::MAX),
            Kind::Read,
        ];
        let hashes: BTreeSet<_> = kinds.iter().map(|&kind| wire(kind).script.sha1).collect();
        assert_eq!(hashes.len(), kinds.len());
    }

    #[test]
    fn each_version_of_a_lease_text_has_a_form_of_its_own() {
        for version in 1..=9 {
            let version = version.to_string();
            let form = LeaseForm::of(&version).unwrap();
            assert_eq!(form.version(), version);
        }
        let labelled = LeaseForm::of("6").unwrap();
        assert!(labelled.is_set && labelled.is_labelled && labelled.kind == Kind::Plain);
        for unknown in ["", "0", "10", "1 "] {
            assert!(LeaseForm::of(unknown).is_none(), "{unknown:?}");
        }
    }
}
