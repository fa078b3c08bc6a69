//! What is reported to callers and observers: errors, outcomes, events.

/// Shows each variant of an enum by its words.
macro_rules! words {
    ($type:ident: $($variant:ident => $words:literal,)*) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self {
                    $($type::$variant => $words,)*
                })
            }
        }
    };
}

pub(crate) mod error;
pub mod event;
pub(crate) mod event_queue;
pub(crate) mod extension;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod node_states;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod spans;
