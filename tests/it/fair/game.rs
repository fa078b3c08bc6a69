//! Programs of several threads that want one lock over and over, and what is judged of it by the
//! clock that all processes share.

use crate::prelude::*;
use crate::storm::{Log, Stay, Story, judge, now};
use std::cell::RefCell;

pub(crate) type MakeMutex = fn(&Redlock) -> Mutex;

/// In this time an attempt that follows at once has been made.
const AT_ONCE: Duration = Duration::from_millis(5);

thread_local! {
    /// The attempts that the present call has lost.
    static LOST: RefCell<Vec<Lost>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
struct Lost {
    at: u64,
    granted: usize,
    refused: usize,
}

/// One lock and its release, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) program: usize,
    /// Before the call's first attempt: no thread of the program that came before has released the
    /// lock yet.
    pub(crate) begun: u64,
    /// Since when a quorum of nodes had the ticket of the call, to its end; or never.
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
    pub(crate) place_lease: Duration,
}

/// An observer that keeps the lost attempts of its thread.
fn keep_lost(event: &Event) {
    if let &Event::AttemptLost {
        granted, refused, ..
    } = event
    {
        LOST.with_borrow_mut(|all| {
            all.push(Lost {
                at: now(),
                granted,
                refused,
            })
        });
    }
}

impl Game {
    /// Lets programs compete, one for each builder, while something else is done. Returns the turns
    /// of these and of all other programs that write into the directory, which is empty at first.
    pub(crate) fn play(
        self,
        builders: &[Builder],
        directory: &Path,
        mutex: MakeMutex,
        meanwhile: impl FnOnce(),
    ) -> Vec<Turn> {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir(directory).unwrap();
        let programs = builders.iter().enumerate();
        let mut children: Vec<_> = programs
            .map(|(number, builder)| self.fork(builder, mutex, directory, number))
            .collect();
        children
            .iter_mut()
            .for_each(|child| assert_eq!(child.receive(), '.'));
        children.iter_mut().for_each(Child::let_continue);
        meanwhile();
        children
            .into_iter()
            .for_each(|child| _ = child.end(self.lasts + SOON * 2));
        turns(directory)
    }

    /// Plays in a child process, which logs each turn as one by the program with this number.
    pub(crate) fn fork(
        self,
        builder: &Builder,
        mutex: MakeMutex,
        directory: &Path,
        program: usize,
    ) -> Child {
        Child::fork(End::Vanish, |parent| {
            let builder = builder.clone().place_lease(self.place_lease);
            let client = builder.observer(keep_lost).build().unwrap();
            drop(
                client
                    .mutex(format!("warm-up/{}", std::process::id()))
                    .fair()
                    .lock(),
            );
            parent.send(".");
            parent.wait();
            let end = now() + self.lasts.as_nanos() as u64;
            let log = Log::open(directory, program);
            thread::scope(|scope| {
                let compete = || self.compete(&mutex(&client), end, program, &log);
                (0..self.threads).for_each(|_| _ = scope.spawn(compete));
            });
        })
    }

    fn compete(self, mutex: &Mutex, end: u64, process: usize, log: &Log) {
        while now() < end {
            LOST.take();
            let wanted = now();
            let guard = mutex.lock().unwrap();
            let since = now();
            let settled = LOST
                .with_borrow(|lost| self.settled(lost))
                .filter(|settled| *settled < since)
                .unwrap_or(0);
            thread::sleep(self.held);
            let until = now();
            // The lease may have ended while the process did not run. What is noted is noted before
            // the release: the thread behind begins after it.
            if !guard.remaining().is_zero() {
                log.done(Stay::new(process, [wanted, since, until], settled));
            }
            drop(guard.unlock());
        }
    }

    /// Since when a call had its ticket on a quorum of nodes, to its end. The first attempt that a
    /// quorum has refused fixes it, and one command stores it where nodes have another one. Behind
    /// an attempt that too few nodes have answered, another one asks for a ticket, if there was
    /// none, and stores it again.
    fn settled(self, lost: &[Lost]) -> Option<u64> {
        let cut = lost
            .iter()
            .rposition(|lost| lost.granted + lost.refused < self.quorum);
        let mut stored = lost[cut.map_or(0, |cut| cut + 1)..]
            .iter()
            .filter(|lost| lost.refused >= self.quorum);
        stored
            .next()
            .map(|lost| lost.at + AT_ONCE.as_nanos() as u64)
    }
}

/// The turns of all programs, in their order. No two overlap.
fn turns(directory: &Path) -> Vec<Turn> {
    let story = Story::read(directory);
    assert!(
        judge::most_at_once(&story.done) <= 1,
        "two have the lock at once"
    );
    let mut free_at = BTreeMap::new();
    let turn = |stay: Stay| {
        let free_at = free_at.insert(stay.process, stay.until).unwrap_or(0);
        Turn {
            program: stay.process,
            begun: stay.wanted.max(free_at),
            settled: (stay.value > 0).then_some(stay.value),
            had: stay.since,
            released: stay.until,
        }
    };
    story.done.into_iter().map(turn).collect()
}

/// The pairs of which the second one had its ticket when the first one began, and the first one had
/// the lock before it.
pub(crate) fn overtakes(turns: &[Turn]) -> Vec<(Turn, Turn)> {
    let mut found = Vec::new();
    for (index, &early) in turns.iter().enumerate() {
        let was_waiting = |late: &&Turn| late.settled.is_some_and(|settled| settled <= early.begun);
        found.extend(
            turns[index + 1..]
                .iter()
                .take(1000)
                .filter(was_waiting)
                .map(|&late| (early, late)),
        );
    }
    found
}
