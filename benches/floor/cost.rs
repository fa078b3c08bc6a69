//! Cost: what a pair takes that can be counted, by one thread once it has warmed up.
//!
//! Allocations are counted here. System calls and instructions are counted by a tool that watches a child ([`probe`]), in
//! a short run and a long one: the difference is the pairs', and what starting up took drops out.

use crate::contest::repeat;
use crate::probe::{self, Subject};
use crate::stand::Stand;
use crate::table::{Goal, Row};
use crate::{ALLOCATOR, Setting, ours};
use quorumlock::MutexGuard;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

const NODES: usize = 5;

/// Counts by name of what a child did.
type Counts = BTreeMap<String, f64>;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let stand = Stand::start(setting, NODES);
    let addresses = stand.addresses(NODES);
    let watched = Watched { addresses: &addresses, floor: Subject::Floor(stand.dialect()) };
    vec![
        allocations(&addresses, setting.choose(10_000, 1000)),
        held_bytes(&addresses, setting.choose(10_000, 1000)),
        system_calls(&watched, setting.choose([500, 3000], [50, 250])),
        instructions(&watched, setting.choose([200, 1200], [50, 150])),
    ]
}

fn allocations(addresses: &[SocketAddr], pairs: usize) -> Row {
    let mutex = ours::mutex(&ours::client(addresses), "cost/allocations");
    let count = || {
        let before = ALLOCATOR.stats();
        repeat(pairs, || ours::pair(&mutex));
        let made = ALLOCATOR.stats() - before;
        (made.allocations + made.reallocations) as f64 / pairs as f64
    };
    // Buffers grow to their size.
    count();
    Row::value("heap allocations a pair", "", count()).against("floor", 0.0).goal(Goal::ValueAtMost(0.0))
}

fn held_bytes(addresses: &[SocketAddr], number: usize) -> Row {
    let client = ours::client(addresses);
    let live = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
    };
    ours::pair(&ours::mutex(&client, "cost/warm"));
    let mut held = Vec::with_capacity(number);
    let before = live();
    held.extend((0..number).map(|index| ours::lock(&ours::mutex(&client, &format!("cost/held/{index}")))));
    let heap = (live() - before) / number as f64;
    drop(held);
    let inline = size_of::<MutexGuard>();
    Row::value(format!("a held guard, of {number}"), "bytes", heap + inline as f64)
        .goal(Goal::ValueAtMost(200.0))
        .note(format!("{inline} in the guard, {heap:.0} on the heap"))
}

fn system_calls(watched: &Watched<'_>, lengths: [usize; 2]) -> Row {
    let what = "system calls a pair";
    if !runs("strace", &["-f", "-c", "-o", "/dev/null", "true"]) {
        return Row::missing(what, "strace cannot be run here");
    }
    let tool = |output: &str| ["strace", "-f", "-c", "-o", output].map(str::to_owned).to_vec();
    let [ours, floor] = watched.both(lengths, tool, |text| {
        // % time, seconds, usecs/call, calls, errors if any, name
        let fields = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        fields.filter_map(|line| Some((line.last()?.to_string(), line.get(3)?.parse().ok()?))).collect()
    });
    let mut calls: Vec<(&String, &f64)> =
        ours.iter().filter(|(name, count)| *name != "total" && **count > 0.05).collect();
    calls.sort_by(|one, other| other.1.total_cmp(one.1));
    let list = calls.iter().map(|(name, count)| format!("{name} {count:.1}")).collect::<Vec<_>>().join(", ");
    let total = |counts: &Counts| counts.get("total").copied().unwrap_or(f64::NAN);
    Row::value(what, "", total(&ours)).against("floor", total(&floor)).goal(Goal::ValueAtMost(22.0)).note(list)
}

fn instructions(watched: &Watched<'_>, lengths: [usize; 2]) -> Row {
    let what = "user instructions a pair";
    let (counted_by, [ours, floor]) = if perf_counts_instructions() {
        let tool =
            |output: &str| ["perf", "stat", "-x,", "-e", "instructions:u", "-o", output].map(str::to_owned).to_vec();
        ("perf", watched.both(lengths, tool, |text| number(text, "instructions", ",", 0)))
    } else if runs("valgrind", &["--tool=none", "true"]) {
        let tool = |output: &str| {
            let log = format!("--log-file={output}");
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &log].map(str::to_owned).to_vec()
        };
        ("callgrind", watched.both(lengths, tool, |text| number(text, "Collected", ": ", 1)))
    } else {
        return Row::missing(what, "neither perf nor valgrind can count them here");
    };
    let total = |counts: &Counts| counts.get("instructions").copied().unwrap_or(f64::NAN);
    Row::value(what, "", total(&ours))
        .against("floor", total(&floor))
        .goal(Goal::ValueAtMost(12_000.0))
        .note(format!("by {counted_by}"))
}

/// The number in the line that holds a word, between these separators.
fn number(text: &str, word: &str, separator: &str, index: usize) -> Counts {
    let line = text.lines().find(|line| line.contains(word)).unwrap_or_default();
    let number = line.split(separator).nth(index).and_then(|field| field.trim().parse().ok());
    Counts::from([("instructions".to_owned(), number.unwrap_or(f64::NAN))])
}

/// Whom the tools watch, and where their servers are.
struct Watched<'a> {
    addresses: &'a [SocketAddr],
    floor: Subject,
}

impl Watched<'_> {
    /// What one pair of the library and one of the floor take.
    fn both(
        &self,
        lengths: [usize; 2],
        tool: impl Fn(&str) -> Vec<String>,
        read: impl Fn(&str) -> Counts,
    ) -> [Counts; 2] {
        [Subject::Ours, self.floor].map(|subject| {
            let [short, long] = lengths.map(|pairs| self.watch(subject, pairs, &tool, &read));
            let difference = |(name, count): (String, f64)| {
                let more = count - short.get(&name).copied().unwrap_or(0.0);
                (name, more / (lengths[1] - lengths[0]) as f64)
            };
            long.into_iter().map(difference).collect()
        })
    }

    fn watch(
        &self,
        subject: Subject,
        pairs: usize,
        tool: impl Fn(&str) -> Vec<String>,
        read: impl Fn(&str) -> Counts,
    ) -> Counts {
        let output = std::env::temp_dir().join(format!("quorumlock-probe-{}", std::process::id()));
        let tool = tool(&output.to_string_lossy());
        let tool: Vec<&str> = tool.iter().map(String::as_str).collect();
        let status = probe::command(&tool, subject, pairs, self.addresses).status();
        assert!(status.is_ok_and(|status| status.success()), "{tool:?} failed");
        let text = fs::read_to_string(&output).unwrap_or_default();
        let _ = fs::remove_file(&output);
        read(&text)
    }
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Virtual machines often lack the counter, and perf then succeeds without it.
fn perf_counts_instructions() -> bool {
    let output = Command::new("perf").args(["stat", "-x,", "-e", "instructions:u", "true"]).output();
    output.is_ok_and(|output| output.status.success() && output.stderr.first().is_some_and(u8::is_ascii_digit))
}
