//! A quorum that loses two of its five nodes, and a counter that loses nothing.
//!
//! ```text
//! cargo run --release --example quickstart                   on five nodes of its own
//! cargo run --release --example quickstart -- URL URL URL    on yours, which it does not harm
//! ```
//!
//! Eight threads add 1 to the number in a file: read, add, write. Unless each of them is alone with
//! the file meanwhile, one overwrites what another has written, and the sum is wrong in the end.
//! While they work, one node hangs, another one dies, and both come back.
//!
//! How to use the lock is in [`work`]. [`nodes`] has something to lock on, [`counter`] the file,
//! and [`report`] shows how it went. The exit code is 0 when no update was lost, 1 when one was, 2
//! when it could not be tried, and 130 after Ctrl-C. Nothing stays behind in any case.

#![allow(
    unreachable_pub,
    reason = "in a program, pub means: for its other modules"
)]

mod counter;
mod nodes;
mod report;
mod work;

use counter::Counter;
use nodes::Nodes;
use quorumlock::{CancelHandle, Redlock};
use report::Report;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use work::Record;

/// Threads that want the counter.
const THREADS: usize = 8;
/// Clients that they share. Each is like a program of its own: only the servers are between them.
const CLIENTS: usize = 4;
/// How long each part of the story lasts.
const PART: Duration = Duration::from_millis(1600);

/// How it ended, if it could be tried.
enum Ending {
    Complete,
    Interrupted,
    UpdatesLost,
}

fn main() -> ExitCode {
    match run() {
        Ok(Ending::Complete) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Ok(Ending::UpdatesLost) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "\nquickstart: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<Ending, Box<dyn Error>> {
    let stop = CancelHandle::new();
    on_ctrl_c(&stop)?;

    let mut nodes = Nodes::start(std::env::args().skip(1).collect())?;
    let counter = Counter::create()?;
    let record = Record::default();
    // One name for all of this run, and no other.
    let resource = format!("quickstart-{}", std::process::id());
    let clients = (0..CLIENTS)
        .map(|_| client(&nodes))
        .collect::<Result<Vec<_>, _>>()?;
    let free = client(&nodes)?.mutex(format!("{resource}-free"));

    let mut report = Report::begin();
    report.fact("nodes", nodes.describe()?);
    report.fact(
        "work",
        format!(
            "{THREADS} threads with {CLIENTS} clients add 1 to the number in a file, under one lock"
        ),
    );
    report.fact(
        "lock",
        "how long it takes to get one that is free, measured all the while by one more thread",
    );
    report.headings();

    let interrupted = thread::scope(|scope| {
        let _stopped_at_the_end = StopOnDrop(&stop);
        for thread in 0..THREADS {
            let mutex = clients[thread % CLIENTS].mutex(&resource);
            let counter = &counter;
            let record = &record;
            let stop = &stop;
            scope.spawn(move || {
                record.outcome(work::increment(&mutex, counter, record, stop), stop)
            });
        }
        scope.spawn(|| record.outcome(work::measure(&free, &record, &stop), &stop));
        tell(&mut nodes, &mut report, &record, &stop)?;
        Ok::<bool, io::Error>(stop.is_cancelled())
    })?;

    if let Some(failure) = record.failure() {
        return Err(failure);
    }
    if interrupted {
        report.interrupted();
        return Ok(Ending::Interrupted);
    }
    // Whatever was added after the last part, while the threads came to their end.
    report.count(&record.take());
    let none_lost = report.verdict(counter.read()?);
    Ok(if none_lost {
        Ending::Complete
    } else {
        Ending::UpdatesLost
    })
}

/// The story: which node fails when.
fn tell(
    nodes: &mut Nodes,
    report: &mut Report,
    record: &Record,
    stop: &CancelHandle,
) -> io::Result<()> {
    let mut part = |what: &str, length: Duration| {
        report.part(what);
        sleep(length, stop);
        report.numbers(record.take());
        !stop.is_cancelled()
    };
    if !nodes.are_ours() {
        part("your nodes, as they are", 2 * PART);
        return Ok(());
    }
    if !part("all five nodes are well", PART) {
        return Ok(());
    }
    nodes.hang(0)?;
    if !part("node 1 hangs", PART) {
        return Ok(());
    }
    nodes.kill(1)?;
    if !part("node 2 dies as well", PART) {
        return Ok(());
    }
    nodes.resume(0)?;
    nodes.revive(1)?;
    part("both are back", PART);
    Ok(())
}

fn client(nodes: &Nodes) -> quorumlock::Result<Redlock> {
    // No lock here lasts longer. A node that comes back without its keys counts again when that has
    // passed.
    Redlock::builder()
        .nodes(nodes.urls())
        .max_ttl(Duration::from_secs(10))
        .build()
}

/// Cancels every wait for a lock, and wakes this thread, which sleeps between the parts of the
/// story.
fn on_ctrl_c(stop: &CancelHandle) -> Result<(), ctrlc::Error> {
    let stop = stop.clone();
    let teller = thread::current();
    ctrlc::set_handler(move || {
        stop.cancel();
        teller.unpark();
    })
}

fn sleep(time: Duration, stop: &CancelHandle) {
    let until = Instant::now() + time;
    while !stop.is_cancelled() && Instant::now() < until {
        thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// Lets the threads end however the story ends, so that no wait is in vain.
struct StopOnDrop<'s>(&'s CancelHandle);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
