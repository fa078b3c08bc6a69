//! The kinds of locks: one file for each, with all that is particular to it on the wire.

pub mod fenced;
pub mod number;
pub mod plain;
pub mod read_write;
