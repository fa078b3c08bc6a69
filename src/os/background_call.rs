//! A call that may block, made in a thread of its own whenever it is due.

use super::sync::{self, Condvar, JoinHandle, Mutex, is_current, lock};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The way to the thread, which ends when this is dropped. A call that runs then is not waited for.
pub(crate) struct BackgroundCall {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    signal: Condvar,
}

#[derive(Default)]
struct State {
    /// When to call next, if at all.
    due: Option<Instant>,
    is_calling: bool,
    is_closed: bool,
}

impl BackgroundCall {
    /// Starts the thread, which calls nothing yet. A call returns after which time to call again,
    /// if at a time.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub(crate) fn start(
        name: &str,
        mut call: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> io::Result<BackgroundCall> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            signal: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        let thread = sync::spawn(name, move || {
            while own.begin() {
                let again = call();
                own.end(again);
            }
        })?;
        Ok(BackgroundCall {
            shared,
            thread: Some(thread),
        })
    }

    /// Has it called after this time, unless it is to be called before that; and when it returns,
    /// if it runs.
    pub(crate) fn ask_after(&self, time: Duration) {
        lock(&self.shared.state).call_after(time);
        self.shared.signal.notify_one();
    }
}

impl Drop for BackgroundCall {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_closed = true;
        let is_calling = state.is_calling;
        drop(state);
        self.shared.signal.notify_one();
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|thread| !is_calling && !is_current(thread)) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Waits until a call is due. False when none is any more.
    fn begin(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.is_closed {
            let left = state.due.map_or(Duration::MAX, |due| {
                due.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                state.due = None;
                state.is_calling = true;
                return true;
            }
            let waited = self.signal.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn end(&self, again: Option<Duration>) {
        let mut state = lock(&self.state);
        state.is_calling = false;
        again.into_iter().for_each(|time| state.call_after(time));
    }
}

impl State {
    fn call_after(&mut self, time: Duration) {
        let due = Instant::now().checked_add(time);
        self.due = self.due.into_iter().chain(due).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_is_called_when_it_is_due_and_again_when_it_was_asked_meanwhile() {
        let (called, calls) = mpsc::channel();
        let (go_on, gate) = mpsc::channel();
        let call = BackgroundCall::start("test", move || {
            called.send(()).unwrap();
            gate.recv().unwrap()
        })
        .unwrap();
        let long = Duration::from_secs(3600);
        let is_quiet = || calls.recv_timeout(Duration::from_millis(20)).is_err();
        assert!(is_quiet());
        call.ask_after(long);
        call.ask_after(Duration::ZERO);
        calls.recv().unwrap();
        // The later time has been replaced; twice during a call is once after it.
        call.ask_after(Duration::ZERO);
        call.ask_after(Duration::ZERO);
        assert!(is_quiet());
        go_on.send(Some(long)).unwrap();
        calls.recv().unwrap();
        go_on.send(Some(Duration::ZERO)).unwrap();
        calls.recv().unwrap();
        go_on.send(None).unwrap();
        assert!(is_quiet());
        drop(call);
        assert!(calls.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn a_call_that_blocks_is_not_waited_for() {
        let (called, calls) = mpsc::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let call = BackgroundCall::start("test", move || {
            called.send(()).unwrap();
            let _ = gate.recv();
            None
        })
        .unwrap();
        call.ask_after(Duration::ZERO);
        calls.recv().unwrap();
        drop(call);
        go_on.send(()).unwrap();
        assert!(calls.recv().is_err(), "it ends when it returns");
    }
}
