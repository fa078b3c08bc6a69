//! A synchronous, blocking Redlock: one distributed lock over N independent Redis or Valkey masters.
#[doc(hidden)]
pub mod proto;
