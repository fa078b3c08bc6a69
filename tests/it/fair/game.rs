//! Programs of several threads that want one lock over and over, and what is judged of it by the clock that all
//! processes share.

use crate::support::child::{Child, End};
use quorumlock::event::Event;
use quorumlock::{Builder, Mutex, Observer};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as Guarded};
use std::thread;
use std::time::Duration;

/// In this time an attempt that follows at once has been made.
const AT_ONCE: Duration = Duration::from_millis(5);

thread_local! {
    /// When each attempt of the present call was lost that a quorum has refused.
    static REFUSED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// One lock and its release, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) program: usize,
    /// Before the call's first attempt: no thread of the program that came before has released the lock yet.
    pub(crate) begun: u64,
    /// When a quorum of nodes had the place of the call, with its ticket, or never.
    pub(crate) settled: Option<u64>,
    pub(crate) had: u64,
    pub(crate) released: u64,
}

/// What a program does.
#[derive(Clone, Copy)]
pub(crate) struct Game {
    pub(crate) quorum: usize,
    pub(crate) threads: usize,
    pub(crate) held: Duration,
    pub(crate) lasts: Duration,
}

struct Refusals(usize);

impl Observer for Refusals {
    fn event(&self, event: &Event) {
        if let Event::AttemptLost(lost) = event
            && lost.refused() >= self.0
        {
            REFUSED.with_borrow_mut(|times| times.push(now()));
        }
    }
}

impl Game {
    /// Plays in a child process, and leaves the turns in a file.
    pub(crate) fn fork(self, builder: &Builder, mutex: fn(&quorumlock::Redlock) -> Mutex, file: &Path) -> Child {
        Child::fork(End::Vanish, |parent| {
            let client = builder.clone().observer(Arc::new(Refusals(self.quorum))).build().unwrap();
            drop(client.mutex(format!("warm-up/{}", std::process::id())).fair().lock());
            parent.send(".");
            parent.wait();
            let (end, turns) = (now() + self.lasts.as_nanos() as u64, Guarded::new(Vec::new()));
            thread::scope(|scope| {
                (0..self.threads).for_each(|_| _ = scope.spawn(|| self.play(&mutex(&client), end, &turns)));
            });
            fs::write(file, turns.into_inner().unwrap().concat()).unwrap();
        })
    }

    fn play(self, mutex: &Mutex, end: u64, turns: &Guarded<Vec<String>>) {
        while now() < end {
            REFUSED.take();
            let wanted = now();
            let guard = mutex.lock().unwrap();
            let had = now();
            let settled = REFUSED.with_borrow(|times| settled(times));
            thread::sleep(self.held);
            let released = now();
            // Noted before the release: the thread behind begins after it.
            turns.lock().unwrap().push(format!("{wanted} {settled} {had} {released}\n"));
            drop(guard.unlock());
        }
    }
}

/// When a call was settled whose attempts were refused at these times; 0: never. The first one fixes its ticket. If the
/// nodes did not have that already, the second one follows at once.
fn settled(refused: &[u64]) -> u64 {
    match refused {
        [] => 0,
        [first] => first + AT_ONCE.as_nanos() as u64,
        [first, second, ..] => *second.min(&(first + AT_ONCE.as_nanos() as u64)),
    }
}

/// The turns of all programs, in their order.
pub(crate) fn turns(files: &[PathBuf]) -> Vec<Turn> {
    let mut all = Vec::new();
    for (program, file) in files.iter().enumerate() {
        let mut free_at = 0;
        let text = fs::read_to_string(file).unwrap();
        let mut own: Vec<Vec<u64>> =
            text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
        own.sort_by_key(|turn| turn[2]);
        for turn in own {
            let [wanted, settled, had, released] = turn[..] else { panic!() };
            let begun = wanted.max(free_at);
            free_at = released;
            all.push(Turn { program, begun, settled: (settled > 0).then_some(settled), had, released });
        }
    }
    all.sort_by_key(|turn: &Turn| turn.had);
    all
}

/// The pairs of which the second one had its place when the first one began, and the first one had the lock before it.
pub(crate) fn overtakes(turns: &[Turn]) -> Vec<(Turn, Turn)> {
    let mut found = Vec::new();
    for (index, &early) in turns.iter().enumerate() {
        let was_waiting = |late: &&Turn| late.settled.is_some_and(|settled| settled <= early.begun);
        found.extend(turns[index + 1..].iter().take(1000).filter(was_waiting).map(|&late| (early, late)));
    }
    found
}

pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
