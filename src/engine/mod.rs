//! Shared connections, requests in flight, and the thread that polls; the local queue, the
//! watchdog, and calls that wait for other programs.
//!
//! # The path of one attempt
//!
//! From `Mutex::try_lock` to the sockets and back. A test checks that each function is in its file,
//! and that the path leads through fewer than twenty files; another one, that a lock and unlock
//! execute code of each.
//!
//! | | What happens | Function | File |
//! |---|---|---|---|
//! | 1 | The caller asks for a lock, and waits for no other holder | `Lock::take` | `api/lock/taking.rs` |
//! | 2 | A loop does what the state machine returns | `Attempts::run` | `api/lock/attempts.rs` |
//! | 3 | The state machine asks for an attempt | `Acquire::poll` | `algorithm/acquire/mod.rs` |
//! | 4 | The attempt draws a token, and for a fenced lock the floor of its fence | `Attempts::attempt` | `api/lock/attempts.rs` |
//! | 5 | The lease counts from a time that is read before the first byte is written | [`Engine::acquire`](calls::Engine::acquire) | `engine/calls.rs` |
//! | 6 | The thread begins the attempt, and drives or sleeps until it is decided; or leaves it in the queue of a thread that begins it with others | [`Driver::submit`](driver::Driver::submit) | `engine/driver/mod.rs` |
//! | 7 | A node that cannot be asked votes with its fault at once; the others are asked | [`Nodes::acquire`](nodes::Nodes::acquire) | `engine/nodes/requests.rs` |
//! | 8 | The attempt gets a round: a tally, and a ticket that names it | [`Rounds::open_command`](rounds::Rounds::open_command) | `engine/rounds/mod.rs` |
//! | 9 | The nodes that follow the log are asked by one entry in it; each node that is apart, by its own connection's queue | `Connections::queue` | `engine/nodes/connections.rs` |
//! | 10 | The log notes which reply is expected of each, behind those to earlier commands | `Requests::ask` | `protocol/session/requests.rs` |
//! | 11 | The command is encoded: `SET key token NX PX ttl` | `plain::acquire` | `protocol/kinds/plain.rs` |
//! | 12 | The bytes of all threads leave in one write per node | [`NodeConnection::flush`](node_connection::NodeConnection::flush) | `engine/node_connection/mod.rs` |
//! | 13 | The socket takes them | `Stream::write` | `os/stream.rs` |
//! | 14 | The driver polls all sockets, with the mutex free | `Watch::poll` | `os/poll.rs` |
//! | 15 | What is ready is read | `Nodes::absorb` | `engine/nodes/reactor.rs` |
//! | 16 | Each reply goes to the round that it belongs to | `Nodes::dispatch` | `engine/nodes/dispatch.rs` |
//! | 17 | The first reply belongs to the first request that is unanswered. It is a vote, unless its node is in quarantine or no master, or the reply contains more: then `Nodes::count_vote` decides what counts | `Session::next_plain_vote` | `protocol/session/following.rs` |
//! | 18 | The vote is counted, and the node refers to the round no more | `Rounds::count` | `engine/rounds/mod.rs` |
//! | 19 | The round notes the wait slot of its owner when the vote decides it | [`Rounds::vote`](rounds::Rounds::vote) | `engine/rounds/mod.rs` |
//! | 20 | A quorum decides | `Tally::acquisition` | `algorithm/vote/mod.rs` |
//! | 21 | The result is stored for the owner, which is woken | [`Rounds::conclude`](rounds::Rounds::conclude) | `engine/rounds/mod.rs` |
//! | 22 | Validity is checked, in `conclude`, and the nodes that an undo is for are noted | `Acquire::attempted` | `algorithm/acquire/mod.rs` |
//! | 23 | The caller gets a guard, or the lost attempt is undone | `Attempts::acquired`, or `Attempts::undo` | `api/lock/attempts.rs` |
//!
//! A call for a permit makes steps 4 to 21 for one slot, and if the nodes reply that another one is
//! free, for that one (`api/lock/search.rs`).
//!
//! An undo, and the release of a lock, take the same path from step 5 on, by `Engine::undo` and
//! `Engine::release`.
//!
//! # The path of a wait
//!
//! | | What happens | Function | File |
//! |---|---|---|---|
//! | 1 | A refused call that may wait gets an entry, and its client subscribes to its channel | [`Engine::sit`](calls::Engine::sit) | `engine/calls.rs` |
//! | 2 | The call is registered by its number | [`WaitRegistry::enter`](wait_registry::WaitRegistry::enter) | `engine/wait_registry.rs` |
//! | 3 | It asks in its turn, when the state machine asks for it: the nodes store the entry, or grant | `Attempts::in_turn` | `api/lock/attempts/waiting.rs` |
//! | 4 | What the nodes reply about the queue is collected with the votes | [`Rounds::record_queue_reply`](rounds::Rounds::record_queue_reply) | `engine/rounds/mod.rs` |
//! | 5 | The ticket is fixed, and the time to ask without a message | `QueuedCall::lost` | `algorithm/queue/mod.rs` |
//! | 6 | The thread sleeps, or drives | [`Seat::wait`](seat::Seat::wait) | `engine/seat.rs` |
//! | 7 | A message is read from a subscriber connection, and wakes the call | `Subscribers::read` | `engine/nodes/subscribers.rs` |
//! | 8 | The state machine determines when to ask because of it | `QueuedCall::due` | `algorithm/queue/mod.rs` |
//! | 9 | The release removes the entry, or the call does when it ends without the lock | [`Nodes::update_queue`](nodes::Nodes::update_queue) | `engine/nodes/requests.rs` |
//!
//! # The path of a release that a node has not run
//!
//! | | What happens | Function | File |
//! |---|---|---|---|
//! | 1 | A release is queued on each connection, behind its own `SET`. For a node without a connection it is kept, if its key may be there | [`Nodes::release`](nodes::Nodes::release) | `engine/nodes/requests.rs` |
//! | 2 | The key may be there if this client has written to the node since the attempt began | `NodeConnection::may_hold` | `engine/node_connection/mod.rs` |
//! | 3 | A lost connection leaves releases unanswered: they are kept, if their keys may be there | `Nodes::defer_abandoned` | `engine/nodes/mod.rs` |
//! | 4 | A node answers with an error that means "not run" ([`Cause`](crate::Cause)`::is_not_run`): the release is kept, and sent again after a pause | `UnsettledReleases::on_not_run` | `engine/nodes/pending.rs` |
//! | 5 | The kept releases of a node, by the end of their keys; beyond a limit the first is dropped | `PendingReleases::insert` | `engine/node_connection/pending.rs` |
//! | 6 | The driver makes connections again, drops what has ended and sends the rest, after each poll | `Nodes::serve_pending` | `engine/nodes/mod.rs` |
//! | 7 | When the last thread leaves and releases are left or unanswered, or nodes are being judged, the helper drives, at once or when no thread has looked for the answers | `start_helper` | `engine/driver/helper.rs` |
//! | 8 | A call such as `flush_releases` waits until releases are sent, answered or run | `UnsettledReleases::end_waits` | `engine/nodes/pending.rs` |
//! | 9 | The outcome of a release that no thread waits for is reported as an event | [`Rounds::report_verdict`](rounds::Rounds::report_verdict) | `engine/rounds/mod.rs` |

mod busy_poll;
pub(crate) mod calls;
pub(crate) mod channel_watch;
pub(crate) mod credentials;
pub(crate) mod driver;
pub(crate) mod interrupt;
pub(crate) mod local_queue;
pub(crate) mod node_connection;
pub(crate) mod nodes;
pub(crate) mod rounds;
pub(crate) mod seat;
mod socket_state;
mod subscriber;
pub(crate) mod swept_table;
#[cfg(test)]
mod tests;
pub(crate) mod wait_registry;
pub(crate) mod watchdog_thread;
