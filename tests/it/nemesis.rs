//! Several client processes and five real servers, under every kind of fault.
//!
//! Each process increments a number in a file, by reading it, waiting, and writing it, under the
//! lock and nothing else. [`worker`] is what they do, [`faults`] what is done to them and to their
//! servers, always within the bounds in which Redlock is safe. Those are:
//! * A server keeps what it has granted, or is known to have been started anew. It may be killed
//!   and come back with its data (each write is on disk before it is answered) or without: the
//!   clients guard against that, strictly, because some of them meet the server for the first time
//!   after it has forgotten.
//! * A server's clock may be set forward by an hour if it has answered no client for a time to live
//!   meanwhile, so that nothing holds any more that it had granted. Nothing less will do for even
//!   one server of five: the quorums of two clients may have that one alone in common, and no
//!   client can see it.
//! * Clocks of servers may be set forward by what the allowance for drift covers, all at once, and
//!   back by any time, which only lets keys live longer.
//! * A server may become a replica and a master again, but not of another server, whose data it
//!   would take.
//! * A writer checks the time that is left, and is not paused for longer than that between the
//!   check and the write. Everywhere else processes are paused for as long as can be.
//!
//! Then
//! 1. no update is lost, and no two holders overlap in time (the monotonic clock of the one machine
//!    that they run on);
//! 2. a minority of impaired servers stops no client for long, and when all are well again the lock
//!    can be had;
//! 3. nothing is left behind: every key goes away;
//! 4. the guard's channel reports the end of a lease, and no ended lease goes on.
//!
//! The run is short by default. `QUORUMLOCK_NEMESIS_SECONDS` makes it longer,
//! `QUORUMLOCK_NEMESIS_SEED` repeats its choices, if not their timing, and `QUORUMLOCK_NEMESIS_NFT`
//! has the kernel drop packets as well, where the machine allows it. It prints a report.

pub(crate) mod clocks;
mod faults;
mod flood;
mod packets;
mod worker;

use crate::prelude::*;
use crate::storm::{Counter, Story, Worker, judge, number, seed};
use faults::{Nemesis, STRIKES};
use std::fmt::Write;

const TEST: &str = "nemesis::nothing_is_lost_while_everything_breaks";
const SERVERS: usize = 5;
const PROCESSES: usize = 4;
/// The longest time without a holder: the remaining time of a killed holder's lease, twice, and a
/// majority that hung.
const LONGEST_GAP: Duration = Duration::from_secs(15);

#[test]
#[allow(clippy::print_stdout)]
fn nothing_is_lost_while_everything_breaks() {
    if let Some(worker) = Worker::this() {
        return worker::run(&worker);
    }
    let time = Duration::from_secs(number("QUORUMLOCK_NEMESIS_SECONDS").unwrap_or(8));
    let seed = seed("QUORUMLOCK_NEMESIS_SEED");
    println!("nemesis: seed {seed}, {time:?}");

    let mut nemesis = Nemesis::begin(SERVERS, PROCESSES, seed);
    let begun = Instant::now();
    while begun.elapsed() < time {
        nemesis.strike();
    }
    let lasted = begun.elapsed();
    nemesis.heal();
    let killed = nemesis.stop();
    can_be_had(nemesis.servers());

    let story = Story::read(nemesis.directory());
    let counter = Counter::of(nemesis.directory()).read();
    let report = format!(
        "seed {seed}, {lasted:.0?}\n{}",
        report(&nemesis, &story, counter, killed, lasted)
    );
    println!("{report}");
    judge::no_update_is_lost(&story, counter, killed);
    let (start, end) = story.longest_gap();
    assert!(Duration::from_nanos(end - start) < LONGEST_GAP, "{report}");
    assert!(story.done.len() > time.as_secs() as usize * 3, "{report}");
    judge::nothing_is_left(nemesis.servers(), || can_be_had(nemesis.servers()));
    println!("no update lost, no overlap, nothing left behind");
}

/// Healed, the cluster serves any client.
fn can_be_had(servers: &[Server]) {
    // With a longer `max_ttl`, nodes that have forgotten locks would vote later.
    let builder = Redlock::builder().ttl(worker::TTL).max_ttl(worker::TTL);
    let client = builder.nodes(servers.each(Server::url)).build().unwrap();
    let mutex = client.mutex(worker::RESOURCE);
    // A holder that was killed holds it to its end.
    let had = || {
        mutex
            .lock_with(&Wait::timeout(worker::TTL))
            .is_ok_and(|guard| guard.is_some())
    };
    assert!(
        eventually(6 * worker::TTL, had),
        "all is well again, and the lock cannot be had"
    );
}

fn report(
    nemesis: &Nemesis,
    story: &Story,
    counter: u64,
    killed: usize,
    lasted: Duration,
) -> String {
    let mut report = String::new();
    let mut line = |text: String| {
        let _ = writeln!(report, "{text}");
    };
    let threads = worker::THREADS;
    line(format!(
        "{SERVERS} servers, {PROCESSES} processes of {threads} threads, {killed} killed and replaced"
    ));
    let rate = story.done.len() as f64 / lasted.as_secs_f64();
    line(format!(
        "{} acquisitions, {rate:.0} updates a second, the number is {counter}",
        story.count("acquired")
    ));
    let (start, end) = story.longest_gap();
    let meanwhile = nemesis
        .history()
        .iter()
        .filter(|event| event.start < end && start < event.end);
    let names: Vec<_> = meanwhile.map(|event| event.name).collect();
    let gap = Duration::from_nanos(end - start);
    line(format!(
        "longest time without an update: {gap:.2?}, during: {}",
        names.join("; ")
    ));
    line("what the clients saw:".into());
    for (what, count) in &story.counts {
        line(format!("  {count:>8} × {what}"));
    }
    let (strikes, hung) = (
        nemesis.history().len(),
        nemesis
            .history()
            .iter()
            .filter(|event| event.with_one_hung)
            .count(),
    );
    line(format!(
        "{strikes} faults injected, during {hung} of them another server hung:"
    ));
    for (name, _) in STRIKES {
        let count = nemesis
            .history()
            .iter()
            .filter(|event| event.name == name)
            .count();
        line(match nemesis.can(name) {
            true => format!("  {count:>8} × {name}"),
            false => format!("         - × {name} (not here)"),
        });
    }
    let packets = nemesis.packets_dropped();
    let commands = nemesis.flood_answers();
    line(format!(
        "{packets} packets dropped, {commands} commands of floods answered"
    ));
    report
}
