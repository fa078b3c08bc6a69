//! The machine: which process runs on which core, and how the report describes it.
//!
//! Every section is measured in two placements. Free, client and servers run on any core, as a user
//! has them: sometimes they share a core and sometimes not, and figures have two values. Pinned,
//! the client has one core and the servers have all others: figures are stable, and a client that
//! polls takes nothing from the servers.

use crate::server::find_binary;
use std::fs;
use std::process::Command;

/// Cores by number. The main thread has its former cores again when this is dropped.
pub(crate) struct Cores {
    before: Vec<usize>,
    client: Vec<usize>,
    servers: Vec<usize>,
}

impl Cores {
    /// All processes run on all cores.
    pub(crate) fn free() -> Cores {
        let all = allowed();
        Cores {
            before: all.clone(),
            client: all.clone(),
            servers: all,
        }
    }

    /// One core for the client, which the calling thread moves to, and the others for the servers.
    /// `None` where there is but one core, or no way to choose.
    pub(crate) fn pinned() -> Option<Cores> {
        let before = allowed();
        let (&client, servers) = before
            .split_last()
            .filter(|(_, others)| !others.is_empty())?;
        let cores = Cores {
            client: vec![client],
            servers: servers.to_vec(),
            before,
        };
        run_on(&cores.client);
        Some(cores)
    }

    /// Starts servers, or threads that simulate the network: what is started inside runs on the
    /// servers' cores.
    pub(crate) fn for_servers<R>(&self, start: impl FnOnce() -> R) -> R {
        // A child inherits the cores of the thread that starts it.
        run_on(&self.servers);
        let started = start();
        run_on(&self.client);
        started
    }

    /// A heading for the table.
    pub(crate) fn description(&self) -> String {
        if self.client == self.servers {
            format!("Free: client and servers on any core of {:?}", self.client)
        } else {
            format!(
                "Pinned: client on core {:?}, servers on {:?}",
                self.client, self.servers
            )
        }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        run_on(&self.before);
    }
}

/// The load average over a minute.
pub(crate) fn load() -> String {
    let line = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    line.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Whether other programs keep the machine busy. Rates then depend on how cores are shared with
/// other programs, and so on the number of threads that are awake; ratios of latencies and of
/// processor time stay valid.
pub(crate) fn is_busy(load: &str) -> bool {
    load.parse().is_ok_and(|load: f64| load > 1.0)
}

/// Two sentences for below the tables.
pub(crate) fn description(load_before: &str) -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = processors
        .lines()
        .filter(|line| line.starts_with("model name"));
    let (count, name) = names.fold((0, "unknown"), |(count, _), line| {
        (count + 1, line.split(": ").nth(1).unwrap_or(""))
    });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "Machine: {name}, {count} cores, Linux {}; {}; load {load_before} before, {} after.\n\
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
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.split(" sha=")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|&core| set.is_set(core).unwrap_or(false))
        .collect()
}

#[cfg(target_os = "linux")]
fn run_on(cores: &[usize]) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core).expect("a core that exists");
    }
    if !cores.is_empty() {
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
            .expect("cores that this process may use");
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn run_on(_: &[usize]) {}
