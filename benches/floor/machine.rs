//! The machine: which process runs on which core, and how the report describes it.
//!
//! Pinned, the client has one core and the servers have all others. With the scheduler's own placement, client and
//! servers sometimes share a core and sometimes do not, and every figure has two values.

use crate::server::find_binary;
use std::fs;
use std::process::Command;

/// Cores by number. Both empty when the scheduler decides.
pub(crate) struct Cores {
    client: Vec<usize>,
    servers: Vec<usize>,
}

impl Cores {
    /// One core for the client, which this process moves to, and the others for the servers. Where there is but one
    /// core, or no way to choose, they share.
    pub(crate) fn split() -> Cores {
        match allowed().split_last() {
            Some((&client, [first, others @ ..])) => {
                let servers = [&[*first], others].concat();
                let cores = Cores { client: vec![client], servers };
                run_on(&cores.client);
                cores
            }
            _ => Cores::shared(),
        }
    }

    /// All processes run on all cores.
    pub(crate) fn shared() -> Cores {
        Cores { client: Vec::new(), servers: Vec::new() }
    }

    /// Starts servers: what is started inside runs on their cores.
    pub(crate) fn for_servers<R>(&self, start: impl FnOnce() -> R) -> R {
        // A child inherits the cores of the thread that starts it.
        run_on(&self.servers);
        let started = start();
        run_on(&self.client);
        started
    }
}

/// The load average over a minute.
pub(crate) fn load() -> String {
    let line = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    line.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Whether other programs keep the machine busy. Rates then depend on how cores are shared with other programs, and so
/// on the number of threads that are awake; ratios of latencies and of processor time stay valid.
pub(crate) fn is_busy(load: &str) -> bool {
    load.parse().is_ok_and(|load: f64| load > 1.0)
}

/// Two sentences for below the table.
pub(crate) fn description(cores: &Cores, load_before: &str) -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = processors.lines().filter(|line| line.starts_with("model name"));
    let (count, name) =
        names.fold((0, "unknown"), |(count, _), line| (count + 1, line.split(": ").nth(1).unwrap_or("")));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let placement = if cores.client.is_empty() {
        "client and servers on any core".to_owned()
    } else {
        format!("client on core {:?}, servers on {:?}", cores.client, cores.servers)
    };
    format!(
        "Machine: {name}, {count} cores, Linux {}; {}; {placement}; load {load_before} before, {} after.\n\
         The ratio is the median over rounds in which the contenders took turns, with its range; the goal of a \
         ratio, or of the value where there is none.",
        kernel.trim(),
        server_version(),
        load(),
    )
}

/// `Redis server v=7.0.15 sha=…` → `Redis server v=7.0.15`.
fn server_version() -> String {
    let output = find_binary().and_then(|binary| Command::new(binary).arg("--version").output());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split(" sha=").next().unwrap_or_default().trim().to_owned()
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

#[cfg(target_os = "linux")]
fn run_on(cores: &[usize]) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core).expect("a core that exists");
    }
    if !cores.is_empty() {
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("cores that this process may use");
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn run_on(_: &[usize]) {}
