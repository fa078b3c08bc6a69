//! What is said to Redis and Valkey servers: RESP2, commands and their replies, handshakes, scripts, and the accounting of
//! replies. Pure, as [`algorithm`](crate::algorithm) is: no socket, clock, thread or entropy.
//!
//! This module is public for tests, simulators and fuzzers, and is not part of the stable interface.

mod buffer;
pub mod command;
pub mod dialect;
pub mod endpoint;
pub mod error_reply;
pub mod extension;
pub mod fenced;
pub mod handshake;
pub mod operation;
pub mod publish;
mod request;
pub mod resp;
pub mod script;
mod script_error;
pub mod server_info;
pub mod session;
pub mod subscription;
