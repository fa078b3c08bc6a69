//! What planted conditions call: a crate of its own, which tests/mutations adds to its copy.
//!
//! `PLANTED` is the number of the mutant that is active. `PLANTED_LOG` names a file to which the
//! number of each condition is written that the process comes to.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Room for 65 536 numbers: the tree has some thousands of mutants.
const WORDS: usize = 1024;

/// A bit for each number that was written. Models of schedules and coroutines come here as well:
/// nothing blocks.
static WRITTEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

static SETUP: OnceLock<Setup> = OnceLock::new();

struct Setup {
    active: Option<usize>,
    log: Option<PathBuf>,
}

/// Whether this mutant is the active one.
#[inline(never)]
pub fn is(number: usize) -> bool {
    let setup = SETUP.get_or_init(Setup::of_environment);
    if let Some(log) = &setup.log {
        write_once(log, number);
    }
    setup.active == Some(number)
}

impl Setup {
    fn of_environment() -> Setup {
        let active = env::var("PLANTED").ok();
        Setup {
            active: active.map(|number| number.parse().expect("PLANTED is a number")),
            log: env::var_os("PLANTED_LOG").map(PathBuf::from),
        }
    }
}

fn write_once(log: &Path, number: usize) {
    let bit = 1 << (number % 64);
    if WRITTEN[number / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        // Closed at once: tests look at which files are open. Written by one call: processes that a
        // test has started write to the same file.
        let opened = OpenOptions::new().append(true).create(true).open(log);
        let written = opened.and_then(|mut log| log.write_all(format!("{number}\n").as_bytes()));
        written.expect("a log that can be written");
    }
}
