//! What `run` writes, by a thread for each descriptor: no other thread waits for a reader.
//!
//! A reader that has stalled (a pipe that is full, a terminal after Ctrl-S) blocks that thread alone. Meanwhile texts
//! wait in a queue of limited size. A text that does not fit is counted, and the count is written as soon as possible.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Most bytes that wait for a reader: some thousand lines.
const CAPACITY: usize = 256 << 10;
/// How long a program that ends waits for a reader.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// A descriptor that texts are written to.
pub(super) struct Output(Arc<Queue>);

struct Queue {
    file: File,
    /// The text that says how many did not fit.
    notice: fn(u64) -> String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    /// The thread exists. It is started with the first text.
    is_started: bool,
    is_writing: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.dropped == 0
    }
}

impl Output {
    pub(super) fn new(file: File, notice: fn(u64) -> String) -> Output {
        Output(Arc::new(Queue { file, notice, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Queues a text; never waits for a reader.
    pub(super) fn write(&self, text: &str) {
        let mut state = self.0.lock();
        if !state.is_started {
            let queue = Arc::clone(&self.0);
            state.is_started = thread::Builder::new().name("output".to_owned()).spawn(move || queue.run()).is_ok();
        }
        if state.waiting.len() + text.len() <= CAPACITY {
            state.waiting.extend_from_slice(text.as_bytes());
        } else {
            state.dropped += 1;
        }
        self.0.changed.notify_all();
    }

    /// Waits until all texts are written. A reader that has stalled does not keep the program from ending.
    pub(super) fn drain(&self) {
        let is_busy = |state: &mut State| state.is_started && (state.is_writing || !state.is_empty());
        drop(self.0.changed.wait_timeout_while(self.0.lock(), DRAIN_TIME, is_busy));
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits, without end: the end of the program ends the thread.
    fn run(&self) {
        loop {
            let state = self.changed.wait_while(self.lock(), |state| state.is_empty());
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            let mut texts = std::mem::take(&mut state.waiting);
            let dropped = std::mem::take(&mut state.dropped);
            state.is_writing = true;
            drop(state);
            if dropped > 0 {
                texts.extend_from_slice((self.notice)(dropped).as_bytes());
            }
            // The reader may have gone.
            drop((&self.file).write_all(&texts));
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    #[test]
    fn a_writer_never_waits_and_the_reader_learns_what_is_missing() {
        let (mut reader, writer) = pipe().unwrap();
        let output = Output::new(OwnedFd::from(writer).into(), |count| format!("{count} dropped\n"));
        let line = format!("{:1023}\n", "");
        // Far more than the pipe and the queue hold.
        let count = 8 * CAPACITY / line.len();
        (0..count).for_each(|_| output.write(&line));
        let begun = Instant::now();
        output.drain();
        assert!(begun.elapsed() < 60 * DRAIN_TIME);
        let (mut text, mut chunk) = (String::new(), [0; 4096]);
        // Each time that the thread takes what waits, it writes how many did not fit until then.
        let dropped = |text: &str| -> usize {
            text.lines().filter_map(|line| line.strip_suffix(" dropped")?.parse::<usize>().ok()).sum()
        };
        // The last line is one of either kind: a thread that begins late still finds room for it.
        while !text.ends_with('\n') || text.matches(&line).count() + dropped(&text) < count {
            let read = reader.read(&mut chunk).unwrap();
            text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        let written = text.matches(&line).count();
        assert!(written * line.len() >= CAPACITY && written < count);
        assert_eq!(written + dropped(&text), count);
        output.write("the last");
        output.drain();
        let read = reader.read(&mut chunk).unwrap();
        assert_eq!(&chunk[..read], b"the last");
    }
}
