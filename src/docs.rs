//! # What we tested, and what we did not
//!
//! Trust is the product. So each claim has an adversary, each adversary was shown to bite, and this page says what all of them
//! have not looked at. Every figure can be made again by the command beside it; they were measured on two cores of a virtual
//! machine, with Redis 7.0.15 unless another server is named.
//!
//! # The claims and their adversaries
//!
//! | Claim | Adversary | Where |
//! |---|---|---|
//! | At most one valid holder, always | A simulator of whole clusters; real processes and servers under a nemesis | `tests/sim`, `tests/it/nemesis.rs` |
//! | Fences grow with every acquisition, whatever the clocks do | An exhaustive search of all states; the simulator; real servers with kills and hangs | `tests/models/fences`, `tests/sim`, `tests/it/fencing.rs`, `fence_storm.rs` |
//! | Every reply goes to its own request | The simulator; every reply cut at every byte; fuzzing; a proxy that holds back, cuts and trickles | `tests/sim`, `fuzz`, `tests/it/late_replies.rs` |
//! | Nothing is left behind by a lost, cancelled or failed attempt | The simulator; real servers stopped in the middle of an attempt | `tests/sim`, `tests/it/late_sets.rs` |
//! | No thread sleeps through its wake-up | Model checks of random schedules of the real code | `tests/models/relay.rs`, `keeper`, `waiting.rs` |
//! | A loss is told in time, once | Model checks; 2000 real losses; the simulator | `tests/models/keeper`, `tests/it/losses.rs`, `tests/sim` |
//! | A node that came back without its data gives no lock away | Real restarts; the simulator | `tests/it/restarts.rs`, `tests/sim` |
//! | A suspended machine does not believe in a dead lock | The clock over simulated readings; the simulator | `src/clock_tests.rs`, `tests/sim` |
//! | A wall clock set forward ends no wait | Simulated readings; a process whose clock is set; the simulator | `src/clock_tests.rs`, `tests/it/waiting.rs`, `tests/sim` |
//! | The first attempt wins wherever a later one does, whatever the distance | Simulated delays | `tests/sim/recovery.rs` |
//! | Every address of a host name is tried at once | Scripted connections; a name with two addresses | `src/net/link/race.rs`, `tests/it/addresses.rs` |
//! | A child of `fork` disturbs nobody | Processes that fork while threads hammer the client | `tests/it/forking.rs` |
//! | No password, token or text of a server gets out | Tests of every `Display` and `Debug`; servers that echo | `tests/it/strangers.rs`, unit tests |
//! | The in-process node answers as real ones do | The same conversations with both | `tests/it/alike.rs` |
//! | C programs meet defined behaviour only | C, C++ and Python programs, valgrind, sanitizers | `tests/it/capi` |
//!
//! # The simulator
//!
//! The library itself, from `Mutex::lock` down to its bytes, runs in one thread on simulated time, many clients against
//! many nodes. Stand-ins are there only for locks and threads, byte streams, `poll`, waits and entropy. Each seed draws
//! machines with clocks of their own, rates and jumps, delays, losses, resets, half-open connections, nodes that hang,
//! crash with and without their data, run out of memory, load, turn into replicas, refuse writes, are busy with a
//! script; clients that are paused, put to sleep, killed. Then everything heals, and everybody must get the lock once
//! more.
//!
//! Its judge knows the specification and nothing of the library: one valid holder in true time; a quorum behind every lock, for as long as
//! its guard says; no key after its time; no reply to another's request; no key left behind; fences grow; losses told once and in time; progress after healing.
//!
//! 200 659 seeds ran without a finding on the present library: 9.0 million simulated seconds, 21 million locks taken, 2.9 million faults,
//! 2.25 billion events, 1.2 million a second when nothing else runs. Among what it had found before: a node that loads its data
//! being flooded with the releases that it was owed, and a renewal that counted as later than what was sent behind it.
//!
//! ```text
//! QUORUMLOCK_SIM_SEEDS=200000 cargo test --release -p sim within -- --nocapture
//! ```
//!
//! CI runs a slice with other seeds for every commit. A seed that fails prints the command that repeats it exactly and a trace
//! shortened to what matters.
//!
//! ## Faults that we planted
//!
//! A check that never fails proves nothing. So faults are put into a copy of the library, one at a time, and the table says how
//! many seeds it took to find each, and which rule was seen broken:
//!
//! | Planted fault | Seeds | Caught by the rule |
//! |---|---|---|
//! | Quorum off by one | 1 | a true quorum behind every lock |
//! | No undo | 2 | nothing is left behind |
//! | Undo before the `SET` | 2 | what has ended has ended |
//! | Undo only where it was granted | 2 | nothing is left behind |
//! | The greatest fence, and no raise | 15 | fences grow |
//! | A raise that does not compare the token | 27 | fences grow |
//! | Validity from the decision | 4 | a lease is covered |
//! | A quorum too late still wins | 11 | valid when given |
//! | Drift ignored | 1 | a lease is covered |
//! | Token reused in a retry | 2 | a fresh token for each attempt |
//! | Stale vote counted | 1 | what has ended has ended |
//! | Late reply shifted by one | 19 | nothing is left behind |
//! | A quorum of answers without a quorum of deletions is a loss | 2 | a loss is one |
//! | A timeout counts as a refusal | 2 | nothing is left behind |
//! | An error reply counts as a refusal | 4 | a refusal is one |
//! | What a lost connection owes is forgotten | 2 | nothing is left behind |
//! | No release for a node that is away | 2 | nothing is left behind |
//! | What was written is forgotten on reconnect | 2 | nothing is left behind |
//! | A wrong dialect is not asked again when a quorum has decided | 19 | nothing is left behind |
//! | The same for a fenced release by an unknown hash | 46 | nothing is left behind |
//! | Failed extension releases | 4 | a loss is one |
//! | Extended after the end, by hand | 4 | what has ended has ended |
//! | Extended after the end, by the watchdog | 16 | a loss is told in time |
//! | Repair after expiry | 4 | what has ended has ended |
//! | Repair after the release | 13 | what has ended has ended |
//! | An extension counts from its answer | 4 | a lease is covered |
//! | A renewal counts from its answer | 13 | a lease is covered |
//! | A shortened lease is relied on | 16 | a lease is covered |
//! | A renewal overtakes an extension by hand | 54 | a lease is covered |
//! | Watchdog after unlock | 11 | each thing is told once |
//! | A clock that stands still in sleep | 10 | a lease is covered |
//! | Waits end by the lease clock | 5 | waits last their time |
//! | One thread delivers the events of all | 20 | deliveries are bounded |
//! | A loss is told twice to an observer | 23 | each thing is told once |
//! | What became of a dropped guard is not told | 5 | each thing is told once |
//! | Keys that live ten times as long | 2 | no key after its time |
//! | Attempts without a time limit | 4 | calls end in time |
//! | Restart not noticed | 32 | one holder |
//! | Young stranger believed | 32 | one holder |
//! | Quarantine too short | 40 | one holder |
//! | Quarantine ends with the wall clock | 32 | one holder |
//! | The first flight of a restarted node counts | 32 | one holder |
//! | No release in quarantine | 114 | nothing is left behind |
//! | A node is never asked again | 2 | nothing is left behind |
//! | Rounds leak when a connection is lost | 1 | nothing in flight at the end |
//! | No thread sends what is left | 25 | nothing is left behind |
//! | What is left unsent is not polled for | 65 | nothing is left behind |
//! | The last handle does not wait for answers | 97 | nothing is left behind |
//! | A release that did not run is forgotten | 1 | nothing is left behind |
//!
//! Not found by it, and caught by other tests: extensions that count in quarantine; releases that flood a node which
//! loads its data. Five seeds of six have a profile (`tests/sim/profiles.rs`): circumstances that independent draws
//! rarely bring together. Without them, and without the rule that nodes keep what a guard relies on, a renewal that
//! counts from its answer took 12 874 seeds. A simulated socket that is closed with unread replies, or before they
//! come, resets its connection, and discards what it has not sent. Of the errors that mean "not run", simulated nodes
//! give `LOADING`, `READONLY`, `OOM`, `BUSY`, `MISCONF` and `NOREPLICAS`, in the texts of Redis 7.0, Redis 8.6 and
//! Valkey 9.1; no node there says `MASTERDOWN`. Not found in 1000 seeds: no waiting thread is asked to
//! drive.
//!
//! ```text
//! cargo test --release -p sim planted -- --ignored --nocapture
//! ```
//!
//! ## What the literature says must go wrong
//!
//! Outside of the bounds every lease fails. The simulator finds each of these, prints its trace, and shows that what is
//! meant against it cures it:
//!
//! | What goes wrong | What cures it |
//! |---|---|
//! | A node's clock jumps forward (Kleppmann, 2016) | nothing but a fence |
//! | The holder stands still past its lease, and writes then | a fence |
//! | A, B and C grant, C forgets, C, D and E grant | the restart guard |
//! | A node evicts the key | nothing; the observer is told of such nodes |
//! | Clocks run apart by more than `drift_factor` | a greater one |
//! | A machine sleeps, and its clock with it | the lease clock |
//!
//! ```text
//! cargo test --release -p sim literature -- --nocapture
//! ```
//!
//! # Real processes, real servers, real faults
//!
//! Four client processes of three threads and five servers; a number in a file that is read, waited with, and written under the
//! lock and nothing else; 29 kinds of faults, one every half a second: servers that hang, die, come back empty, are flooded, run
//! out of memory, forget their scripts, become replicas, have their clocks set; connections that are reset, cut, half open, that
//! trickle; packets dropped; clients killed and paused.
//!
//! Ten minutes: 1136 faults, 78 clients killed and replaced, 1376 packets dropped; 16 131 acquisitions and 32 268 updates. **No
//! update lost, no overlap, nothing left behind.** The longest time without an update was 4 s, while most of the servers were gone.
//!
//! ```text
//! QUORUMLOCK_NEMESIS_SECONDS=600 cargo test --test it nemesis -- --nocapture
//! ```
//!
//! # Fences
//!
//! The rule is searched exhaustively, with the very code that the library runs, for three nodes: 102 632 states of three attempts;
//! with floors 16.7 million, with repairs 31.9 million. Eight weaker rules are refuted by the same search, each with a trace. One
//! node may be a day ahead of all clocks: it is left out, and no number comes of it (`tests/it/fences_ahead.rs`). On
//! five real servers, with kills, restarts and hangs, 1 090 650 acquisitions by eight threads in four processes: all different, growing, and
//! 99.2 % won in one round trip. A holder that is stopped past its lease and writes then is refused by SQLite, and is not without
//! the fence.
//!
//! ```text
//! cargo test --release -p models --test fences -- --nocapture
//! QUORUMLOCK_FENCE_ACQUISITIONS=1000000 cargo test --release --test it fence_storm -- --nocapture
//! ```
//!
//! # Schedules
//!
//! The hand-over of driving, the watchdog against unlock and extension, and waiting for word of a release run under a random
//! scheduler, as the real code:
//!
//! ```text
//! QUORUMLOCK_TEST_SCHEDULES=100000 cargo test --release -p models
//! ```
//!
//! # Arbitrary bytes
//!
//! Fuzz targets drive the decoder, a round trip, URLs, a whole session with a server that lies, and the acquisition against a
//! model; properties check the codec and the tally for all rows of up to nine nodes. CI runs each target for 20 s:
//! `cargo fuzz run session`.
//!
//! # What we did not test
//!
//! * **Other systems than Linux.** macOS, FreeBSD and Windows are compiled, not run.
//! * **Networks.** Everything ran over loopback, with delays and losses made by a proxy, by the kernel's packet filter, or simulated.
//! * **Long times.** The longest real run took ten minutes. Weeks are simulated only, and no process was left running for days.
//! * **Real suspend.** The clock was shown readings as they are after a suspend; no laptop was closed.
//! * **Disks that lie**, and servers that answer before a write is on disk although they were told not to.
//! * **Weak memory.** The model checks run threads in turns, on sequentially consistent memory. ThreadSanitizer and x86-64 have run the real thing.
//! * **Servers we did not have**: `DELEX` (Redis 8.4) ran against the in-process node only. Forks of Redis other than Valkey have not been
//!   tried, nor Redis Enterprise or a cloud's service: those are often behind a proxy, which is no independent master.
//! * **In the simulator**: host names, Unix sockets, `fork`, leases as text, the C interface. Real servers see those.
//! * **The quality of the system's random numbers**, on which the uniqueness of owner tokens rests: 160 bits for each attempt.
//! * **Nobody else** has tested it yet: no independent audit, no Jepsen run by its makers.

#[doc = include_str!("docs/messages.md")]
pub mod messages {}
