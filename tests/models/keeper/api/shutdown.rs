//! The library's module of this name, as far as a lock that is held needs it.

#[path = "../../../../src/api/shutdown/state.rs"]
pub(crate) mod state;
