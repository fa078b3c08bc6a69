//! What goes between a client and one Redis or Valkey server: RESP2, commands and their replies,
//! handshakes, scripts, and which reply belongs to which request. Pure, as
//! [`algorithm`](crate::algorithm) is: no socket, clock, thread or entropy.
//!
//! # The path of one command
//!
//! 1. The engine describes what every node is asked as an [`Operation`](operation::Operation): a
//!    verb, such as take or release, and the kind of the lock.
//! 2. [`Session::queue`](session::Session::queue) chooses the [`Form`](form::Form) that this server
//!    is asked in. A script that the server has run goes by its hash ([`script`]).
//! 3. [`command`], a file of [`kinds`] or [`queue`] writes the command at the end of the
//!    connection's bytes, or of those of a [`Log`](session::Log) that several connections follow.
//!    In front of it is sent the question whether the server is still a master, if the last reply
//!    to that is old.
//! 4. Beside the bytes is kept what the meaning of each expected reply depends on. The engine
//!    writes the bytes and reads replies.
//! 5. [`resp::decode`] finds the next reply. It belongs to the oldest request, always.
//! 6. `reply.rs` parses the reply to an [`Answer`](form::Answer), by the tables of [`kinds`] and
//!    [`queue`]. [`error_reply`] classifies errors.
//! 7. [`Session::next_event`](session::Session::next_event) hands out a
//!    [`SessionEvent`](session::SessionEvent): a vote, unless the node may not vote, or that
//!    another form is worth trying. The engine then calls
//!    [`Session::ask_again`](session::Session::ask_again).
//!
//! [`endpoint`] reads URLs, [`handshake`] and [`server_info`] open a connection, [`moved`] reads
//! where a replica redirects to, [`subscription`] is the connection that messages to waiting calls
//! arrive on.
//!
//! # What a new command may touch
//!
//! - A file of its own beside [`command`]: a function that writes it, one that parses its reply, a
//!   table of replies as a test. For a verb of the scripts: `queue::ask` and `reply::meaning`.
//! - For a kind of lock: a variant of [`Kind`](crate::algorithm::kind::Kind), a file of [`kinds`]
//!   with its `Wire` and its keys, and its script among those of the embedded node
//!   (`src/embedded/scripts.rs`).
//! - For an operation on a key: [`Verb`](operation::Verb), and `Asked` with all that the meaning of
//!   a reply depends on; in each file of [`kinds`], `write_tail` and `meaning`; [`form`]; in
//!   `sent_operation.rs`, `Command::write_one`, `Abandoned::of`; in `session/forms.rs`,
//!   `Forms::first`.
//! - For a question: one variant of the session's `Request` and of
//!   [`SessionEvent`](session::SessionEvent), and a branch of `Session::next_event` and
//!   `Session::abandon`.
//! - In the engine: `src/engine/nodes/requests.rs` queues it, `src/engine/calls.rs` offers it to
//!   `api`. A new event has a branch of `Nodes::dispatch` in `src/engine/nodes/dispatch.rs`.
//! - What servers of every version answer to it: `error_texts.txt`, the embedded node
//!   (`src/embedded/command.rs`), and `tests/it/embedded_vs_real.rs`, which compares the two. The
//!   fuzz target is `fuzz/bodies/session.rs`.
//! - What users must be permitted: the table of access control in `src/docs/operations.md`, and the
//!   texts of [`Detail::Command`](crate::fault::detail::Detail::Command) in `src/docs/tests`.
//!
//! Nothing in `api` changes with it. `algorithm` changes only for an error reply with a meaning of
//! its own: [`ServerError`](crate::fault::server_error::ServerError) has it, and
//! `Cause::is_permanent` and `Cause::is_not_run` name it.
//!
//! This module is public for tests, simulators and fuzzers, and is not part of the stable
//! interface.

mod asked;
pub mod command;
pub mod credentials;
pub mod endpoint;
pub mod error_reply;
pub mod form;
pub mod handshake;
pub mod host;
pub mod incoming;
mod inspection;
pub mod key_space;
pub mod kinds;
pub mod latency;
pub mod lock_key;
pub mod moved;
pub mod node_note;
pub mod operation;
pub mod queue;
mod refusal;
#[cfg(test)]
mod releases_tests;
mod reply;
#[cfg(test)]
mod reply_tests;
pub mod resp;
pub mod script;
mod script_error;
mod sent_operation;
pub mod server_info;
pub mod session;
pub mod subscription;
mod wake;
