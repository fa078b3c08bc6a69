//! The lines of the events, for the page of messages: the same in Rust and in C.

use super::event::{EventObject, kind};
use super::header_tests::numbers;
use crate::docs::tests::events;

/// Of each event: its variant in Rust, the name of its kind in C, and the line that a C program is
/// shown.
pub(crate) fn lines() -> Vec<(String, &'static str, String)> {
    let names = numbers();
    let name = |number: i32| {
        let is_kind = |name: &str| name.starts_with("QUORUMLOCK_EVENT_");
        *names
            .iter()
            .find(|(name, is)| is_kind(name) && **is == number)
            .unwrap()
            .0
    };
    let line = |event: crate::event::Event| {
        let in_c = EventObject::new(&event);
        assert_eq!(in_c.message(), event.to_string());
        let variant = format!("{event:?}").split(' ').next().unwrap().to_owned();
        (variant, name(kind(&event)), in_c.message().to_owned())
    };
    events::all().into_iter().map(line).collect()
}

#[test]
fn every_kind_of_event_has_a_line() {
    let mut shown: Vec<&str> = lines().into_iter().map(|(_, name, _)| name).collect();
    shown.sort_unstable();
    shown.dedup();
    let mut all: Vec<&str> = numbers()
        .into_keys()
        .filter(|name| name.starts_with("QUORUMLOCK_EVENT_"))
        .collect();
    all.retain(|name| *name != "QUORUMLOCK_EVENT_NONE");
    assert_eq!(shown, all);
}
