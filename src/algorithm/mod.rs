//! Redlock itself: attempts, tallies, leases, renewals, fences and quarantine. It knows no sockets
//! and no commands. Of Redis it knows how a node can fail ([`Cause`](crate::fault::Cause)) and what
//! shows a restart ([`quarantine::ServerProcess`]).
//!
//! Nothing here touches a socket, a clock, a thread, entropy or a file. A function that depends on
//! time or chance takes both as arguments. So a test or a simulator can run all of it, on any
//! clock. This module is public for tests, simulators and fuzzers, and is not part of the stable
//! interface.
//!
//! # The algorithm, step by step
//!
//! N independent nodes each hold one vote. Rule numbers refer to `src/docs/rules.md`.
//!
//! 1. **Quorum.** A decision needs `N / 2 + 1` nodes: [`Tally::quorum`](vote::Tally::quorum).
//! 2. **Start.** An attempt draws a fresh [`OwnerToken`](lease::OwnerToken) and reads both clocks
//!    as `t0` before its first byte is written (rule 2.1):
//!    [`Output::Attempt`](acquire::Output::Attempt).
//! 3. **Ask.** `SET key token NX PX ttl` goes to all nodes at once. They may answer until
//!    [`Acquire::attempt_deadline`](acquire::Acquire::attempt_deadline) (rule 2.6).
//! 4. **Votes.** Each reply, or its absence, is a [`Vote`](vote::Vote): granted, refused, absent or
//!    a [`Fault`](crate::fault::Fault). A node that may have forgotten locks has no usable vote:
//!    [`quarantine::of_attempt`].
//! 5. **Tally.** [`Tally::record`](vote::Tally::record) counts the first vote of each node, and
//!    [`Tally::acquisition`](vote::Tally::acquisition) returns the outcome as soon as it is certain
//!    (rule 2.5).
//! 6. **Drift.** [`Ttl::new`](lease::Ttl::new) subtracts from the time to live what clocks may
//!    disagree by: `ttl × drift_factor + 2 ms`.
//! 7. **Validity.** The lease ends at [`Ttl::lease_from`](lease::Ttl::lease_from)`(t0)`: one
//!    addition. [`Acquire::attempted`](acquire::Acquire::attempted), in `conclude`, checks that a
//!    quorum granted and that the end is still to come (rule 2.4).
//! 8. **Fence.** For a fenced lock, [`Fences::agreement`](fence::Fences::agreement) takes the
//!    greatest number of the answers. Unless a quorum has it,
//!    [`Output::Raise`](acquire::Output::Raise) raises the others, and
//!    [`Acquire::raised`](acquire::Acquire::raised) decides (rule 6.3).
//! 9. **Undo.** A lost attempt is released on every node that it may have reached and that has not
//!    refused it (rule 2.7): [`Acquire::attempted`](acquire::Acquire::attempted) decides which,
//!    [`Output::Undo`](acquire::Output::Undo) names them.
//! 10. **Retry.** The next attempt follows after a random delay,
//!     [`Backoff::next_delay`](backoff::Backoff::next_delay), (rule 3.3), or when the nodes have
//!     told the call that the lock may be free,
//!     [`Acquire::on_message`](acquire::Acquire::on_message): [`queue`] has the order among
//!     programs. [`EarlyEnd`](early_end::EarlyEnd) ends waits that cannot succeed (rule 3.1).
//! 11. **Extension.** [`Renewals`](renewal::Renewals) determines when to extend which lease.
//!     [`Tally::extension`](vote::Tally::extension) decides, and only within the old validity (rule
//!     4.5).
//! 12. **Release.** Compare-and-delete on all nodes; [`Tally::release`](vote::Tally::release)
//!     decides (rule 4.3).
//! 13. **Quarantine.** [`Quarantine::meet`](quarantine::Quarantine::meet) recognises a restarted
//!     node. Its votes do not count until every lock that it may have forgotten has ended (rule
//!     7.4).
//!
//! # A whole life
//!
//! Two of three nodes grant, the lock is extended once, and then released:
//!
//! ```
//! use quorumlock::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitLimit};
//! use quorumlock::algorithm::backoff::Backoff;
//! use quorumlock::algorithm::lease::{MAX_TTL, Ttl};
//! use quorumlock::algorithm::node::{NodeId, NodeSet};
//! use quorumlock::algorithm::renewal::{RenewalConfig, Renewals};
//! use quorumlock::algorithm::time::{LeaseTime, Readings, Timestamp};
//! use quorumlock::algorithm::vote::{ExtensionVerdict, Outcome, ReleaseVerdict, Tally, Vote};
//! use std::time::Duration;
//!
//! /// Both clocks of this example show the same time.
//! fn at(millis: u64) -> Readings {
//!     let time = Duration::from_millis(millis);
//!     Readings { steady: Timestamp::ORIGIN.after(time), lease: LeaseTime::ORIGIN.after(time) }
//! }
//!
//! let ttl = Ttl::new(Duration::from_millis(900), 0.01, MAX_TTL).unwrap(); // step 6: valid for 889 ms
//! let config = AcquireConfig {
//!     ttl,
//!     node_timeout: Duration::from_millis(100),
//!     wait_limit: WaitLimit::Until(at(500).steady),
//!     backoff: Backoff::new(Duration::from_millis(2), Duration::from_millis(250)),
//!     permanent_fault_limit: Duration::from_secs(3),
//!     queues: false,
//!     first_in_turn: None,
//! };
//! let mut machine = Acquire::new(config, at(0).steady);
//!
//! // The first attempt: another client holds two of the three nodes.
//! assert_eq!(machine.poll(), Output::Attempt);
//! assert_eq!(machine.attempt_deadline(at(0).steady, false), at(100).steady);
//! let mut tally = Tally::new(3);
//! tally.record(NodeId::new(0), Vote::Granted);
//! tally.record(NodeId::new(1), Vote::Refused);
//! assert_eq!(tally.acquisition(), Outcome::Pending, "the third node decides");
//! tally.record(NodeId::new(2), Vote::Refused);
//! assert_eq!(tally.acquisition(), Outcome::Held);
//! let random = 0; // the shortest delay
//! machine.attempted(at(0), &tally, NodeSet::first(3), at(5), random);
//!
//! // Step 9: only the node that granted has anything to undo. Step 10: wait.
//! assert_eq!(machine.poll(), Output::Undo(NodeSet::first(1)));
//! let Output::Wait(until) = machine.poll() else { panic!() };
//! assert!(until > at(5).steady);
//! machine.woken(at(10).steady);
//!
//! // The second attempt wins: two grants are a quorum, and no step waits for the third node.
//! assert_eq!(machine.poll(), Output::Attempt);
//! let mut tally = Tally::new(3);
//! tally.record(NodeId::new(0), Vote::Granted);
//! tally.record(NodeId::new(2), Vote::Granted);
//! machine.attempted(at(10), &tally, NodeSet::first(3), at(13), random);
//! let Output::Done(Verdict::Acquired(validity)) = machine.poll() else { panic!() };
//! assert_eq!(validity, ttl.lease_from(at(10).lease));
//! assert_eq!(validity.end(), at(899).lease, "889 ms from t0, not from the last reply");
//!
//! // Step 11: after a third of the time to live, the lock is extended.
//! let mut renewals = Renewals::new();
//! let id = renewals.insert(RenewalConfig::of(ttl), at(10).lease, validity, at(13).lease);
//! assert_eq!(renewals.next_at(), at(310).lease);
//! let mut due = Vec::new();
//! renewals.due(at(310).lease, 100, &mut due);
//! let mut tally = Tally::new(3);
//! tally.record(NodeId::new(0), Vote::Granted);
//! tally.record(NodeId::new(1), Vote::Absent); // never had the key
//! tally.record(NodeId::new(2), Vote::Granted);
//! assert_eq!(tally.extension(), ExtensionVerdict::Extended);
//! let longer = ttl.lease_from(at(310).lease);
//! assert_eq!(renewals.renewed(id, at(310).lease, longer, at(312).lease), Some(longer));
//!
//! // Step 12: off the schedule first, then released.
//! assert!(renewals.remove(id));
//! let mut tally = Tally::new(3);
//! tally.record(NodeId::new(0), Vote::Granted);
//! tally.record(NodeId::new(1), Vote::Refused);
//! tally.record(NodeId::new(2), Vote::Granted);
//! assert_eq!(tally.release(), ReleaseVerdict::Released);
//! ```

pub mod acquire;
pub mod backoff;
pub mod digits;
pub mod early_end;
pub mod fence;
pub mod health;
pub mod holder;
pub mod incarnation;
pub mod inspection;
pub mod kind;
pub mod label;
pub mod lease;
pub mod node;
pub mod pending_release;
pub mod quarantine;
pub mod queue;
pub mod renewal;
pub mod time;
pub mod vote;
