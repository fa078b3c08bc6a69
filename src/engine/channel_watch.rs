//! Ends waits that a channel may cancel.
//!
//! A thread that waits for sockets cannot wait for a channel as well. While such threads wait, one
//! more thread of the client waits for the channels of all of them, and sets the interrupt of each
//! wait whose channel has brought a message or has ended. It takes no message: the thread that
//! waits does, so that one message ends one wait. It ends with the last wait.

use super::interrupt::Interrupt;
use crate::os::sync::{Mutex, lock, spawn};
use crossbeam_channel::{Receiver, Select, Sender, bounded};
use std::sync::Arc;

/// The waits of one client that a channel may cancel.
#[derive(Default)]
pub(crate) struct ChannelWatch {
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    waits: Vec<WatchedWait>,
    /// Tells the thread that the waits have changed. None: there is no thread.
    changed: Option<Sender<()>>,
}

#[derive(Clone)]
struct WatchedWait {
    channel: Receiver<()>,
    interrupt: Arc<Interrupt>,
    /// Whether the channel is still to be waited for: its message may be there until the thread
    /// that waits takes it.
    is_armed: bool,
}

/// One wait. Dropping it ends the watch for it.
pub(crate) struct WatchRegistration {
    watch: Arc<ChannelWatch>,
    interrupt: Arc<Interrupt>,
    is_watched: bool,
}

impl ChannelWatch {
    /// Registers a wait. The interrupt is set when the channel brings a message or ends, once for
    /// each time that the registration is [armed](WatchRegistration::arm).
    pub(crate) fn register(
        self: &Arc<Self>,
        channel: &Receiver<()>,
        interrupt: &Arc<Interrupt>,
    ) -> WatchRegistration {
        let mut state = lock(&self.state);
        state.waits.push(WatchedWait {
            channel: channel.clone(),
            interrupt: Arc::clone(interrupt),
            is_armed: true,
        });
        state.tell_change();
        let is_watched = state.changed.is_some() || self.start(&mut state);
        WatchRegistration {
            watch: Arc::clone(self),
            interrupt: Arc::clone(interrupt),
            is_watched,
        }
    }

    /// Starts the thread. False: the system has none.
    fn start(self: &Arc<Self>, state: &mut WatchState) -> bool {
        let (sender, changed) = bounded(1);
        let watch = Arc::clone(self);
        let is_started = spawn("quorumlock cancel", move || watch.run(&changed)).is_ok();
        state.changed = Some(sender).filter(|_| is_started);
        is_started
    }

    fn run(&self, changed: &Receiver<()>) {
        loop {
            let armed: Vec<WatchedWait> = {
                let mut state = lock(&self.state);
                if state.waits.is_empty() {
                    state.changed = None;
                    return;
                }
                state
                    .waits
                    .iter()
                    .filter(|wait| wait.is_armed)
                    .cloned()
                    .collect()
            };
            let mut select = Select::new();
            armed.iter().for_each(|wait| _ = select.recv(&wait.channel));
            let change = select.recv(changed);
            let ready = select.ready();
            if ready == change {
                let _ = changed.try_recv();
            } else if let Some(wait) = lock(&self.state).find(&armed[ready].interrupt) {
                wait.is_armed = false;
                wait.interrupt.set();
            }
        }
    }
}

impl WatchState {
    fn find(&mut self, interrupt: &Arc<Interrupt>) -> Option<&mut WatchedWait> {
        self.waits
            .iter_mut()
            .find(|wait| Arc::ptr_eq(&wait.interrupt, interrupt))
    }

    fn tell_change(&self) {
        // A full channel holds a message that is still to be taken.
        let _ = self.changed.as_ref().map(|changed| changed.try_send(()));
    }
}

impl WatchRegistration {
    /// Lets the next message, or one that is there, or the channel's end set the interrupt.
    pub(crate) fn arm(&self) {
        let mut state = lock(&self.watch.state);
        if let Some(wait) = state.find(&self.interrupt).filter(|wait| !wait.is_armed) {
            wait.is_armed = true;
            state.tell_change();
        }
    }

    /// Whether a thread waits for the channel.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched
    }
}

impl Drop for WatchRegistration {
    fn drop(&mut self) {
        let mut state = lock(&self.watch.state);
        state
            .waits
            .retain(|wait| !Arc::ptr_eq(&wait.interrupt, &self.interrupt));
        state.tell_change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::{interrupt, soon};
    use crossbeam_channel::unbounded;
    use std::thread;
    use std::time::Duration;

    fn is_set_soon(interrupt: &Interrupt) {
        soon(|| interrupt.take().then_some(()));
    }

    #[test]
    #[cfg(not(feature = "simulated"))]
    fn a_message_or_the_end_of_a_channel_sets_the_interrupt_once_for_each_time_it_is_armed() {
        let watch = Arc::new(ChannelWatch::default());
        let (sender, channel) = unbounded();
        let interrupt = interrupt();
        let registration = watch.register(&channel, &interrupt);
        assert!(registration.is_watched() && !interrupt.is_set());
        sender.send(()).unwrap();
        is_set_soon(&interrupt);
        assert_eq!(channel.len(), 1, "the thread that waits takes it");
        thread::sleep(Duration::from_millis(20));
        assert!(!interrupt.is_set());
        registration.arm();
        is_set_soon(&interrupt);
        channel.recv().unwrap();
        registration.arm();
        thread::sleep(Duration::from_millis(20));
        assert!(!interrupt.is_set());
        drop(sender);
        is_set_soon(&interrupt);
    }

    #[test]
    #[cfg(not(feature = "simulated"))]
    fn each_wait_is_interrupted_by_its_own_channel_and_the_thread_ends_with_the_last() {
        let watch = Arc::new(ChannelWatch::default());
        for _ in 0..2 {
            let (senders, channels): (Vec<_>, Vec<_>) = (0..2).map(|_| unbounded()).unzip();
            let interrupts = [(); 2].map(|()| interrupt());
            let mut registrations: Vec<_> = channels
                .iter()
                .zip(&interrupts)
                .map(|(channel, interrupt)| watch.register(channel, interrupt))
                .collect();
            assert!(registrations.iter().all(WatchRegistration::is_watched));
            senders[1].send(()).unwrap();
            is_set_soon(&interrupts[1]);
            assert!(!interrupts[0].is_set());
            drop(registrations.pop());
            senders[0].send(()).unwrap();
            is_set_soon(&interrupts[0]);
            drop(registrations);
            soon(|| lock(&watch.state).changed.is_none().then_some(()));
        }
    }
}
