//! Cost: what a pair takes that can be counted, by one thread once it has warmed up.
//!
//! Allocations are counted here. System calls and instructions are counted by a tool that watches a
//! child ([`probe`]), in a short run and a long one: the difference is the pairs', and what
//! starting up took drops out.

use crate::library::{self, ALLOCATOR};
use crate::probe::{self, Subject};
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use quorumlock::MutexGuard;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const NODES: usize = 5;

/// Counts by name of what a child did.
type Counts = BTreeMap<String, f64>;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let watch = |threads, short, long| Watch {
        addresses: &addresses,
        threads,
        pairs: [short, long],
    };
    let [few, many] = setting.choose([200, 1200], [50, 150]);
    vec![
        allocations(&addresses, setting.choose(2000, 100), false),
        allocations(&addresses, setting.choose(2000, 100), true),
        held_bytes(&addresses, setting.choose(10_000, 1000)),
        waited_bytes(&servers, &addresses, setting.choose(1000, 100)),
        system_calls_one_by_one(&watch(1, few, many)),
        system_calls(&watch(1, few, many)),
        system_calls(&watch(64, few / 10, many / 10)),
        instructions(&watch(1, few, many)),
    ]
}

/// `is_fresh`: the mutex is made for each pair.
fn allocations(addresses: &[SocketAddr], pairs: usize, is_fresh: bool) -> Row {
    let client = library::client(addresses);
    let mutex = library::mutex(&client, "cost/allocations");
    let made = library::allocations(pairs, || match is_fresh {
        true => library::pair(&library::mutex(&client, "cost/allocations/fresh")),
        false => library::pair(&mutex),
    })
    .median;
    let (what, most) = if is_fresh {
        (", with a fresh Mutex", 1.0)
    } else {
        ("", 0.0)
    };
    Row::value(format!("heap allocations a pair{what}"), "", made)
        .against("floor", 0.0)
        .value_at_most(most)
}

fn held_bytes(addresses: &[SocketAddr], number: usize) -> Row {
    let client = library::client(addresses);
    library::pair(&library::mutex(&client, "cost/warm"));
    let mut held = Vec::with_capacity(number);
    let before = live();
    held.extend(
        (0..number)
            .map(|index| library::lock(&library::mutex(&client, &format!("cost/held/{index}")))),
    );
    let heap = (live() - before) / number as f64;
    drop(held);
    let inline = size_of::<MutexGuard>();
    Row::value(
        format!("a held guard, of {number}"),
        "bytes",
        heap + inline as f64,
    )
    .value_at_most(200.0)
    .note(format!("{inline} in the guard, {heap:.0} on the heap"))
}

/// What it takes to wait for so many locks at once, not counting the threads that wait.
fn waited_bytes(servers: &Servers, addresses: &[SocketAddr], number: usize) -> Row {
    let mine = library::client(addresses);
    let theirs = library::client(addresses);
    library::pair(&library::mutex(&mine, "cost/warm"));
    let held = library::hold(&theirs, number, "cost/waited");
    let gate = Barrier::new(number + 1);
    let each = thread::scope(|scope| {
        for index in 0..number {
            let mutex = library::mutex(&mine, &format!("cost/waited/{index}"));
            let gate = &gate;
            library::spawn_waiting(scope, move || {
                gate.wait();
                gate.wait();
                drop(library::lock(&mutex));
            });
        }
        gate.wait();
        let before = live();
        gate.wait();
        while !servers.queues().iter().all(|queues| *queues == number) {
            thread::sleep(Duration::from_millis(5));
        }
        let each = (live() - before) / number as f64;
        drop(held);
        each
    });
    Row::value(
        format!("waiting for a lock, of {number} at once"),
        "bytes",
        each,
    )
    .note("besides its thread, with its entries on five nodes")
}

/// How many bytes are allocated.
fn live() -> f64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

/// Stopped at each call, the program finds more answers in each poll than it does when left alone,
/// and polls less often.
fn system_calls_one_by_one(watch: &Watch<'_>) -> Row {
    let what = "system calls a pair, 1 thread, stopped at each";
    if !runs("strace", &["-f", "-c", "-o", "/dev/null", "true"]) {
        return Row::missing(what, "strace cannot be run here");
    }
    let tool = |output: &str| {
        ["strace", "-f", "-c", "-o", output]
            .map(str::to_owned)
            .to_vec()
    };
    let counts = watch.both(tool, |text| {
        // % time, seconds, usecs/call, calls, errors if any, name
        let fields = text
            .lines()
            .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        fields
            .filter_map(|line| Some((line.last()?.to_string(), line.get(3)?.parse().ok()?)))
            .collect()
    });
    compared(what, "total", counts).value_at_most(22.0)
}

fn system_calls(watch: &Watch<'_>) -> Row {
    const ALL: &str = "raw_syscalls:sys_enter";
    let events = ["sendto", "recvfrom", "ppoll", "futex", "getrandom"]
        .map(|call| format!(",syscalls:sys_enter_{call}"));
    let events = format!("{ALL}{}", events.concat());
    let what =
        format!("system calls a pair, {} threads", watch.threads).replace("1 threads", "1 thread");
    if !runs("perf", &["stat", "-e", &events, "true"]) {
        return Row::missing(what, "perf cannot trace them here");
    }
    let tool = |output: &str| {
        ["perf", "stat", "-x,", "-e", &events, "-o", output]
            .map(str::to_owned)
            .to_vec()
    };
    let counts = watch.both(tool, |text| {
        // count, unit, event, and more
        let fields = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let name = |event: &str| {
            event
                .rsplit("sys_enter_")
                .next()
                .unwrap_or(event)
                .to_owned()
        };
        fields
            .filter_map(|line| Some((name(line.get(2)?), line.first()?.parse().ok()?)))
            .collect()
    });
    compared(what, ALL, counts)
}

fn instructions(watch: &Watch<'_>) -> Row {
    let what = "user instructions a pair, 1 thread";
    if !runs("valgrind", &["--tool=none", "true"]) {
        return Row::missing(what, "valgrind cannot be run here");
    }
    let tool = |output: &str| {
        let log = format!("--log-file={output}");
        [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            &log,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let counts = watch.both(tool, |text| {
        // ==1234== Collected : 5678
        let line = text
            .lines()
            .find_map(|line| line.split_once("Collected : "));
        line.and_then(|(_, count)| Some(("all".to_owned(), count.trim().parse().ok()?)))
            .into_iter()
            .collect()
    });
    compared(what, "all", counts)
        .value_at_most(15_000.0)
        .note("by callgrind")
}

/// The total of both, and a list of what the library's consists of.
fn compared(what: impl Into<String>, total: &str, [library, floor]: [Counts; 2]) -> Row {
    let of = |counts: &Counts| counts.get(total).copied().unwrap_or(f64::NAN);
    let row = Row::value(what, "", of(&library)).against("floor", of(&floor));
    let mut parts: Vec<(&String, &f64)> = library
        .iter()
        .filter(|(name, count)| *name != total && **count > 0.05)
        .collect();
    parts.sort_by(|one, other| other.1.total_cmp(one.1));
    let list: Vec<String> = parts
        .iter()
        .map(|(name, count)| format!("{name} {count:.1}"))
        .collect();
    if list.is_empty() {
        row
    } else {
        row.note(list.join(", "))
    }
}

/// What a tool watches: the work of both subjects.
struct Watch<'a> {
    addresses: &'a [SocketAddr],
    threads: usize,
    /// What each thread does in the short and in the long run.
    pairs: [usize; 2],
}

impl Watch<'_> {
    /// What one pair of the library and one of the floor take. `tool` is a command line that writes
    /// to a file, and `read` reads the counts in it.
    fn both(
        &self,
        tool: impl Fn(&str) -> Vec<String>,
        read: impl Fn(&str) -> Counts,
    ) -> [Counts; 2] {
        let more = (self.pairs[1] - self.pairs[0]) * self.threads;
        [Subject::Library, Subject::Floor].map(|subject| {
            let [short, long] = self
                .pairs
                .map(|pairs| read(&self.output(subject, pairs, &tool)));
            let difference = |(name, count): (String, f64)| {
                let count = count - short.get(&name).copied().unwrap_or(0.0);
                (name, count / more as f64)
            };
            long.into_iter().map(difference).collect()
        })
    }

    fn output(&self, subject: Subject, pairs: usize, tool: impl Fn(&str) -> Vec<String>) -> String {
        let path = std::env::temp_dir().join(format!("quorumlock-probe-{}", std::process::id()));
        let tool = tool(&path.to_string_lossy());
        let tool: Vec<&str> = tool.iter().map(String::as_str).collect();
        let status = probe::command(&tool, subject, (self.threads, pairs), self.addresses).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{tool:?} failed"
        );
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(&path);
        text
    }
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
