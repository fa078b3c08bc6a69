//! What `run` writes, by a thread for each descriptor: no other thread waits for a reader.
//!
//! A reader that has stalled (a pipe that is full, a terminal after Ctrl-S) blocks that thread
//! alone. Meanwhile texts wait in a queue of limited size. A text that does not fit is counted, and
//! the count is written as soon as possible.

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Most lines that wait for a reader.
const CAPACITY: usize = 1024;
/// How long a program that ends waits for a reader.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// A descriptor that texts are written to.
pub(super) struct Output {
    texts: Sender<Text>,
    dropped: Arc<AtomicU64>,
}

enum Text {
    Line(String),
    /// Answered when all that was queued before is written.
    Drained(Sender<()>),
}

impl Output {
    /// Writes to this file. `notice` is the text for the number of texts that did not fit.
    pub(super) fn new(file: File, notice: fn(u64) -> String) -> Output {
        let (texts, waiting): (_, Receiver<Text>) = bounded(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&dropped);
        // Ends with the program.
        let write = move || {
            for text in waiting {
                // The reader may have gone.
                match missing.swap(0, Ordering::Relaxed) {
                    0 => {}
                    count => write_all(&file, &notice(count)),
                }
                match text {
                    Text::Line(line) => write_all(&file, &line),
                    Text::Drained(done) => drop(done.try_send(())),
                }
            }
        };
        // Without a thread all texts are dropped.
        drop(
            thread::Builder::new()
                .name("output".to_owned())
                .spawn(write),
        );
        Output { texts, dropped }
    }

    /// Queues a text; never waits for a reader.
    pub(super) fn write(&self, text: &str) {
        if self.texts.try_send(Text::Line(text.to_owned())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all texts are written. A reader that has stalled does not keep the program from
    /// ending.
    pub(super) fn drain(&self) {
        let end = Instant::now() + DRAIN_TIME;
        let (done, over) = bounded(1);
        if self.texts.send_deadline(Text::Drained(done), end).is_ok() {
            let _ = over.recv_deadline(end);
        }
    }
}

/// Writes all of a text, also where another program has set that writing does not block. A reader
/// that has gone gets nothing.
fn write_all(mut file: &File, text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(length @ 1..) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], None);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_writer_never_waits_and_the_reader_learns_what_is_missing() {
        let (mut reader, writer) = pipe().unwrap();
        let output = Output::new(OwnedFd::from(writer).into(), |count| {
            format!("{count} dropped\n")
        });
        let line = format!("{:1023}\n", "");
        // Far more than the pipe and the queue hold.
        let count = 8 * CAPACITY;
        (0..count).for_each(|_| output.write(&line));
        let begun = Instant::now();
        output.drain();
        assert!(begun.elapsed() < 60 * DRAIN_TIME);
        let mut text = String::new();
        let mut chunk = [0; 4096];
        // In front of each text the thread writes how many did not fit until then.
        let dropped = |text: &str| -> usize {
            text.lines()
                .filter_map(|line| line.strip_suffix(" dropped")?.parse::<usize>().ok())
                .sum()
        };
        // The last line is one of either kind: a thread that begins late still finds room for it.
        while !text.ends_with('\n') || text.matches(&line).count() + dropped(&text) < count {
            let read = reader.read(&mut chunk).unwrap();
            text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        let written = text.matches(&line).count();
        assert!((CAPACITY..count).contains(&written));
        assert_eq!(written + dropped(&text), count);
        output.write("the last");
        output.drain();
        let read = reader.read(&mut chunk).unwrap();
        assert_eq!(&chunk[..read], b"the last");
    }
}
