//! A number in a file, which several writers at once would spoil.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// The number, in a temporary directory that goes with this value.
pub struct Counter {
    directory: PathBuf,
    file: PathBuf,
}

impl Counter {
    /// A new file that contains 0.
    pub fn create() -> io::Result<Counter> {
        let directory =
            std::env::temp_dir().join(format!("quorumlock-quickstart-{}", std::process::id()));
        // What is there already was left by a process that is no more: its number is ours now.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory)?;
        let counter = Counter {
            file: directory.join("counter"),
            directory,
        };
        fs::write(&counter.file, line(0))?;
        Ok(counter)
    }

    /// The number in the file.
    pub fn read(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.file)?;
        text.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("the counter's file contains {text:?}")))
    }

    /// Writes another number over the old one, whichever thread wrote that and when.
    pub fn write(&self, number: u64) -> io::Result<()> {
        OpenOptions::new()
            .write(true)
            .open(&self.file)?
            .write_all(line(number).as_bytes())
    }
}

/// Numbers of equal length cover each other wholly: the second write wins, and what the first one
/// added is lost.
fn line(number: u64) -> String {
    format!("{number:>20}\n")
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
