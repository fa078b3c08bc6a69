//! The wall clocks of servers, each of which can be stepped.
//!
//! A server is started with a small library in front of its C library (`clock.c`), which adds the
//! offset in a file of the server's directory to the time. A server that was not linked with a C
//! library of its own, or that asks the kernel by itself, does not feel it: [`Clocks::are_felt`]
//! finds out.

use crate::prelude::*;

/// In the server's directory, where it runs.
const FILE: &str = "clock";

/// The variable that names this file to the [`library`].
pub(crate) const VARIABLE: &str = "QUORUMLOCK_NEMESIS_CLOCK";

/// How far the clock of each server is off, in microseconds.
pub(crate) struct Clocks {
    offsets: Vec<i64>,
    are_felt: bool,
}

impl Clocks {
    /// Adds to a plan that the clock can be stepped.
    pub(crate) fn prepare(plan: Plan) -> Plan {
        plan.variable(preload::VARIABLE, library())
            .variable(VARIABLE, FILE)
    }

    /// The clocks of servers that were prepared. All are right.
    pub(crate) fn of(servers: &[Server]) -> Clocks {
        let mut clocks = Clocks {
            offsets: vec![0; servers.len()],
            are_felt: false,
        };
        let before = seconds(&servers[0]);
        clocks.step(servers, 0, 3_600_000_000);
        clocks.are_felt = seconds(&servers[0]) > before + 1800;
        clocks.step(servers, 0, -3_600_000_000);
        clocks
    }

    /// Whether these servers can be made to err.
    pub(crate) fn are_felt(&self) -> bool {
        self.are_felt
    }

    pub(crate) fn forward(&mut self, servers: &[Server], index: usize, time: Duration) {
        self.step(servers, index, time.as_micros() as i64);
    }

    pub(crate) fn back(&mut self, servers: &[Server], index: usize, time: Duration) {
        self.step(servers, index, -(time.as_micros() as i64));
    }

    fn step(&mut self, servers: &[Server], index: usize, micros: i64) {
        self.offsets[index] += micros;
        set(&servers[index].directory().join(FILE), self.offsets[index]);
    }
}

/// Sets how far the wall clock of the process with this file is off, in microseconds.
pub(crate) fn set(file: &Path, offset: i64) {
    // Written over and never cut short, because the process has it mapped.
    let Ok(file) = fs::OpenOptions::new().write(true).open(file) else {
        return;
    };
    std::os::unix::fs::FileExt::write_all_at(&file, &offset.to_ne_bytes(), 0).unwrap();
}

/// What is loaded before the C library of such a process.
pub(crate) fn library() -> PathBuf {
    preload::library("nemesis/clock.c")
}

fn seconds(server: &Server) -> u64 {
    match server.command(&["TIME"]) {
        Ok(Answer::List(parts)) => match parts.first() {
            Some(Answer::Text(seconds)) => seconds.parse().unwrap(),
            other => panic!("TIME answered {other:?}"),
        },
        other => panic!("TIME answered {other:?}"),
    }
}
