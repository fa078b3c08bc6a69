//! What valgrind counts of a program: instructions by file, system calls, allocations.

use crate::capi::programs;
use crate::prelude::*;
use crate::support::program;

/// Counts, by name. The counts of one program less another's are what the first one did in
/// addition.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Instructions, by file: files of the library by their paths below `src`, all others together.
    pub(super) instructions: BTreeMap<String, f64>,
    /// System calls. A read of a clock is one here.
    pub(super) calls: BTreeMap<String, f64>,
    pub(super) allocations: f64,
}

impl Counts {
    /// Runs a program under valgrind.
    pub(super) fn of(program: &Path, arguments: &[String]) -> Counts {
        // Programs with other numbers of nodes run at the same time.
        let profile = program.with_extension(format!("{}.callgrind", arguments.len()));
        let out = format!("--callgrind-out-file={}", profile.display());
        let traced = valgrind(
            &["--tool=callgrind", "--trace-syscalls=yes", &out],
            program,
            arguments,
        );
        let profiled = fs::read_to_string(&profile).unwrap();
        fs::remove_file(profile).unwrap();
        Counts {
            instructions: by_file(&profiled, &format!("{}/src/", root().display())),
            calls: calls(&traced),
            allocations: allocations(&profiled),
        }
    }

    /// What each of so many more pairs has cost than the pairs of `before`.
    pub(super) fn a_pair(mut self, before: &Counts, pairs: f64) -> Counts {
        for (counts, before) in [
            (&mut self.instructions, &before.instructions),
            (&mut self.calls, &before.calls),
        ] {
            for (name, count) in &mut *counts {
                *count = (*count - before.get(name).unwrap_or(&0.0)) / pairs;
            }
        }
        // What happens once in many pairs, as a look at the nodes does, is no part of one.
        self.instructions.retain(|_, count| *count >= 5.0);
        self.calls.retain(|_, count| *count >= 0.5);
        self.allocations = (self.allocations - before.allocations) / pairs;
        self
    }
}

/// Runs a program under valgrind, and returns what valgrind reports.
fn valgrind(options: &[&str], program: &Path, arguments: &[String]) -> String {
    let mut command = programs::command(program, options);
    program::run(command.args(arguments)).exits(0).err
}

/// The system calls in a trace: `SYSCALL[process,thread](number) sys_name (…`.
fn calls(trace: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for line in trace.lines().filter(|line| line.starts_with("SYSCALL[")) {
        if let Some(name) = line
            .split(" sys_")
            .nth(1)
            .and_then(|rest| rest.split(['(', ' ']).next())
        {
            *counts.entry(name.to_owned()).or_default() += 1.0;
        }
    }
    counts
}

/// The instructions in a profile, by file. The line after `calls=` is the cost of the callee, which
/// is counted there.
fn by_file(profile: &str, source: &str) -> BTreeMap<String, f64> {
    let (mut names, mut counts) = (BTreeMap::new(), BTreeMap::<String, f64>::new());
    let mut file = String::new();
    let mut is_of_call = false;
    for line in profile.lines() {
        if let Some((kind @ ("fl" | "fi" | "fe" | "cfl" | "cfi"), text)) = line.split_once('=') {
            let name = named(&mut names, text);
            if !kind.starts_with('c') {
                file = below(source, name);
            }
        } else if line.starts_with("calls=") {
            is_of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line
                .split(' ')
                .nth(1)
                .and_then(|cost| cost.parse::<f64>().ok());
            if let (Some(cost), false) = (cost, is_of_call) {
                *counts.entry(file.clone()).or_default() += cost;
            }
            is_of_call = false;
        }
    }
    counts
}

/// How often the functions that allocate are called in a profile. The line before `calls=` names
/// what is called.
fn allocations(profile: &str) -> f64 {
    let mut names = BTreeMap::new();
    let (mut count, mut called) = (0.0, "");
    for line in profile.lines() {
        if let Some(("fn" | "cfn", text)) = line.split_once('=') {
            called = named(&mut names, text);
        } else if let Some(calls) = line.strip_prefix("calls=")
            && ["calloc", "malloc", "posix_memalign", "realloc"].contains(&called)
        {
            let times = calls.split(' ').next().unwrap_or_default();
            count += times.parse::<f64>().unwrap();
        }
    }
    count
}

/// The name for a number in a profile. It follows the number where that is used first.
fn named<'p>(names: &mut BTreeMap<&'p str, &'p str>, text: &'p str) -> &'p str {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(number, name);
    }
    names[number]
}

/// The path below `src` of a file of the library.
fn below(source: &str, file: &str) -> String {
    file.strip_prefix("src/")
        .or_else(|| file.strip_prefix(source))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_profile_and_a_trace_are_read() {
    let profile = "fl=(1) src/a.rs\nfn=(1) a\n1 10\n+2 5\nfi=(2) /w/src/b.rs\n3 7\nfe=(1)\ncfi=(3) /rustc/core.rs\n\
        cfn=(2) malloc\ncalls=2 9\n4 90\n* 1\nfl=(3)\n1 100\ncfn=(2)\ncalls=1 9\n2 8\ncfn=(1)\ncalls=5 9\n3 1\n";
    let expected =
        [("", 100.0), ("a.rs", 16.0), ("b.rs", 7.0)].map(|(file, count)| (file.to_owned(), count));
    assert_eq!(by_file(profile, "/w/src/"), BTreeMap::from(expected));
    assert_eq!(allocations(profile), 3.0);
    let trace = "==1== x\nSYSCALL[1,1]( 44) sys_sendto ( 5 )\nSYSCALL[1,2](228) sys_clock_gettime( 1 )[sync]\n\
        SYSCALL[1,1](44) sys_sendto ( 6 )\n";
    let expected =
        [("clock_gettime", 1.0), ("sendto", 2.0)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(calls(trace), BTreeMap::from(expected));
}
