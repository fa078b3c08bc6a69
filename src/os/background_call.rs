//! A call that may block, made in a thread of its own whenever it is due.

use super::sync::{self, JoinHandle, Mutex, is_current, lock};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The way to the thread, which ends when this is dropped. A call that runs then is not waited for.
pub(crate) struct BackgroundCall {
    /// When to call. None when this is dropped.
    times: Option<Sender<Instant>>,
    phase: Arc<Mutex<Phase>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread does.
#[derive(PartialEq)]
enum Phase {
    Calls,
    Ends,
    Waits,
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
        let (times, asked) = channel();
        let phase = Arc::new(Mutex::new(Phase::Waits));
        let own = Arc::clone(&phase);
        let thread = sync::spawn(name, move || {
            let mut due: Option<Instant> = None;
            loop {
                let left = due.map(|due| due.saturating_duration_since(Instant::now()));
                match asked.recv_timeout(left.unwrap_or(Duration::MAX)) {
                    Ok(time) => due = due.min(Some(time)).or(Some(time)),
                    Err(RecvTimeoutError::Timeout) if enter(&own, Phase::Calls) => {
                        due = call().and_then(|time| Instant::now().checked_add(time));
                        enter(&own, Phase::Waits);
                    }
                    Err(_) => return,
                }
            }
        })?;
        Ok(BackgroundCall {
            times: Some(times),
            phase,
            thread: Some(thread),
        })
    }

    /// Has it called after this time, unless it is to be called before that; and when it returns,
    /// if it runs.
    pub(crate) fn ask_after(&self, time: Duration) {
        let time = Instant::now().checked_add(time);
        if let (Some(times), Some(time)) = (&self.times, time) {
            // The thread has not ended before.
            let _ = times.send(time);
        }
    }
}

impl Drop for BackgroundCall {
    fn drop(&mut self) {
        self.times = None;
        let phase = std::mem::replace(&mut *lock(&self.phase), Phase::Ends);
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|thread| phase == Phase::Waits && !is_current(thread)) {
            let _ = thread.join();
        }
    }
}

/// Enters a phase, unless the thread is to end.
fn enter(phase: &Mutex<Phase>, next: Phase) -> bool {
    let mut phase = lock(phase);
    let is_open = *phase != Phase::Ends;
    if is_open {
        *phase = next;
    }
    is_open
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
