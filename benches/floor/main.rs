//! What a lock costs, as a ratio to what the system calls cost.
//!
//! ```text
//! cargo bench                       everything, about twelve minutes; Markdown on standard output
//! cargo bench -- latency handoff    these sections: latency, throughput, drop, durable, distant, handoff, contention,
//!                                   cost, scaling, fair, fenced, readers, reentry, permits, sets, programs,
//!                                   waiters, observed, secured (needs --features embedded-tls)
//! cargo bench -- --free             one placement, with client and servers on any core
//! cargo bench -- --pinned           the other one, with the client on one core and the servers on the others
//! cargo bench -- --quick            a smoke test for machines that are busy: does it run at all? Less than a minute
//! ```
//!
//! The *floor* is the least that the same work takes: a bare program with prebuilt bytes, one
//! non-blocking socket per node, that sends, polls and receives until a quorum has answered
//! ([`floor`]). Absolute times depend more on the machine than on the library. So nothing here is
//! judged by them: the library and its floor run in turns, chunk by chunk, in one run; a figure is
//! the ratio of the two within a round, and its median over the rounds with the least and the most
//! ([`comparison`]). The floor also runs against itself: what that ratio is away from 1 is noise.
//!
//! There is a table for each [placement](machine), the free one first. The servers are started by
//! this program on free ports, and end with it.
//!
//! The goals in the table are those the library was built to. A goal that is missed is marked and
//! fails nothing.

// A program of its own, that prints, and that has nothing better to do on a failure than to end
// with it.
#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod bare_handoff;
mod clock;
mod comparison;
mod competition;
mod competitor;
mod contention;
mod cost;
mod distant;
mod dropped;
mod durable;
mod fair;
mod fenced;
mod floor;
mod handoff;
mod latency;
mod library;
mod limit;
mod machine;
mod monitor;
mod observed;
mod permits;
mod polling;
mod probe;
mod programs;
mod proxy;
mod readers;
mod reentry;
mod release;
mod scaling;
mod secured;
#[path = "../../tests/it/support/server.rs"]
mod server;
mod servers;
mod sets;
mod setting;
mod strict;
mod table;
mod throughput;
mod waiters;
mod workers;

use machine::Cores;
use setting::Setting;
use std::process::ExitCode;
use table::Row;

/// The name of a section, and its measurement.
type Section = (&'static str, fn(&Setting) -> Vec<Row>);

const SECTIONS: [Section; 19] = [
    ("latency", latency::measure),
    ("throughput", throughput::measure),
    ("drop", dropped::measure),
    ("durable", durable::measure),
    ("distant", distant::measure),
    ("handoff", handoff::measure),
    ("contention", contention::measure),
    ("cost", cost::measure),
    ("scaling", scaling::measure),
    ("fair", fair::measure),
    ("fenced", fenced::measure),
    ("readers", readers::measure),
    ("reentry", reentry::measure),
    ("permits", permits::measure),
    ("sets", sets::measure),
    ("programs", programs::measure),
    ("waiters", waiters::measure),
    ("observed", observed::measure),
    ("secured", secured::measure),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [probe::MARK, order @ ..] = &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        probe::run(order);
        return ExitCode::SUCCESS;
    }
    if let [competitor::MARK, order @ ..] =
        &*arguments.iter().map(String::as_str).collect::<Vec<_>>()
    {
        competitor::run(order);
        return ExitCode::SUCCESS;
    }
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let known = |argument: &&String| {
        ["--bench", "--quick", "--free", "--pinned"].contains(&argument.as_str())
            || SECTIONS.iter().any(|(name, _)| name == argument)
    };
    if let Some(unknown) = arguments.iter().find(|argument| !known(argument)) {
        let names = SECTIONS.map(|(name, _)| name).join(", ");
        eprintln!("{unknown:?} is none of --quick, --free, --pinned, {names}");
        return ExitCode::FAILURE;
    }
    // Without `--bench` it is `cargo test --benches` that runs this, to see whether it runs.
    let quick = has("--quick") || !has("--bench");
    let load = machine::load();
    let sections: Vec<Section> = match SECTIONS
        .into_iter()
        .filter(|(name, _)| has(name))
        .collect::<Vec<_>>()
    {
        named if named.is_empty() => SECTIONS.to_vec(),
        named => named,
    };
    let both = has("--free") == has("--pinned");
    if both || has("--free") {
        print_table(
            &Setting {
                cores: Cores::free(),
                quick,
            },
            &sections,
        );
    }
    if both || has("--pinned") {
        match Cores::pinned() {
            Some(cores) => print_table(&Setting { cores, quick }, &sections),
            None => println!(
                "Pinned: not measured. It needs a second core, and a way to choose cores.\n"
            ),
        }
    }
    println!("{}", machine::description(&load));
    if machine::is_busy(&load) {
        println!(
            "The machine was busy with something else: rates and slow percentiles are unreliable."
        );
    }
    if quick {
        println!("Quick: too few samples for figures to be quoted.");
    }
    let failures = library::failures();
    if failures > 0 {
        println!("{failures} operations of the library failed, for lack of a quorum in time.");
    }
    ExitCode::SUCCESS
}

/// Measures the sections in one placement, and prints their table.
fn print_table(setting: &Setting, sections: &[Section]) {
    let placement = setting.cores.description();
    let mut rows = Vec::new();
    for (name, measure) in sections {
        eprintln!("{placement}: {name} …");
        rows.extend(measure(setting));
    }
    println!("{placement}\n\n{}", table::markdown(&rows));
}
