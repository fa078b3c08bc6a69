//! Programs of several threads that want one lock over and over, and what is judged of it by the clock that all
//! processes share.

use crate::clients::SOON;
use crate::support::child::{Child, End};
use quorumlock::event::Event;
use quorumlock::{Builder, Mutex, Observer, Redlock};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

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
    /// When the thread came to wait for it, in front of which others of its program may have waited.
    wanted: u64,
    /// Before the call's first attempt: no thread of the program that came before has released the lock yet.
    pub(crate) begun: u64,
    /// Since when a quorum of nodes had the place of the call, with its ticket, to its end; or never.
    pub(crate) settled: Option<u64>,
    /// How many of its attempts were lost.
    pub(crate) lost: u64,
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

struct Losses;

impl Observer for Losses {
    fn event(&self, event: &Event) {
        if let Event::AttemptLost(lost) = event {
            let lost = Lost { at: now(), granted: lost.granted(), refused: lost.refused() };
            LOST.with_borrow_mut(|all| all.push(lost));
        }
    }
}

impl Game {
    /// Lets programs compete, one for each builder, while something else is done. Gives the turns of these and of all
    /// other programs that write into the directory, which is empty at first.
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
        let mut children: Vec<_> =
            programs.map(|(number, builder)| self.fork(builder, mutex, &directory.join(number.to_string()))).collect();
        children.iter_mut().for_each(|child| assert_eq!(child.receive(), '.'));
        children.iter_mut().for_each(Child::let_continue);
        meanwhile();
        children.into_iter().for_each(|child| _ = child.end(self.lasts + SOON * 2));
        turns(directory)
    }

    /// Plays in a child process, and writes each turn into a file.
    pub(crate) fn fork(self, builder: &Builder, mutex: MakeMutex, file: &Path) -> Child {
        Child::fork(End::Vanish, |parent| {
            let builder = builder.clone().place_lease(self.place_lease);
            let client = builder.observer(Arc::new(Losses)).build().unwrap();
            drop(client.mutex(format!("warm-up/{}", std::process::id())).fair().lock());
            parent.send(".");
            parent.wait();
            let (end, turns) = (now() + self.lasts.as_nanos() as u64, File::create(file).unwrap());
            thread::scope(|scope| {
                (0..self.threads).for_each(|_| _ = scope.spawn(|| self.compete(&mutex(&client), end, &turns)));
            });
        })
    }

    fn compete(self, mutex: &Mutex, end: u64, mut turns: &File) {
        while now() < end {
            LOST.take();
            let wanted = now();
            let guard = mutex.lock().unwrap();
            let had = now();
            let lost = LOST.with_borrow(Vec::len);
            let settled = LOST.with_borrow(|lost| self.settled(wanted, lost, had)).unwrap_or(0);
            thread::sleep(self.held);
            let released = now();
            // The lease may have ended while the process did not run. What is noted is noted before the release: the
            // thread behind begins after it.
            if !guard.remaining().is_zero() {
                turns.write_all(format!("{wanted} {settled} {had} {released} {lost}\n").as_bytes()).unwrap();
            }
            drop(guard.unlock());
        }
    }

    /// Since when a call had its place to its end. The first attempt that a quorum has refused fixes the ticket. If the
    /// nodes did not have that already, the second one follows at once, and can be held up. Behind an attempt that too
    /// few nodes have answered, the next one stores no place, and fixes the ticket if there is none.
    fn settled(self, wanted: u64, lost: &[Lost], had: u64) -> Option<u64> {
        let cut = lost.iter().rposition(|lost| lost.granted + lost.refused < self.quorum);
        let stored: Vec<u64> = lost[cut.map_or(0, |cut| cut + 1)..]
            .iter()
            .filter(|lost| lost.refused >= self.quorum)
            .map(|lost| lost.at)
            .collect();
        // A place was stored after the attempt before had ended.
        let times: Vec<u64> = [wanted].into_iter().chain(stored.iter().copied()).chain([had]).collect();
        if times.windows(3).any(|times| times[2] - times[0] > self.place_lease.as_nanos() as u64) {
            return None;
        }
        match (&stored[..], cut) {
            (&[_, second, ..], Some(_)) => Some(second),
            // The next one is due at a third of the time for which places last.
            (&[first, second, ..], None) if second - first < self.place_lease.as_nanos() as u64 / 4 => Some(second),
            (&[first, ..], None) => Some(first + AT_ONCE.as_nanos() as u64),
            ([], _) | ([_], Some(_)) => None,
        }
    }
}

/// The turns of all programs, in their order. No two overlap.
fn turns(directory: &Path) -> Vec<Turn> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let program = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let mut free_at = 0;
        // The last line of a program that was killed may be half a line.
        let text = fs::read_to_string(path).unwrap();
        let lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines).lines();
        let mut own: Vec<Vec<u64>> =
            lines.map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
        own.sort_by_key(|turn| turn[2]);
        for turn in own {
            let [wanted, settled, had, released, lost] = turn[..] else { panic!() };
            let begun = wanted.max(free_at);
            free_at = released;
            all.push(Turn { program, wanted, begun, settled: (settled > 0).then_some(settled), lost, had, released });
        }
    }
    all.sort_by_key(|turn: &Turn| turn.had);
    for pair in all.windows(2) {
        assert!(pair[0].released <= pair[1].had, "two have the lock at once: {pair:?}");
    }
    all
}

/// Notes since when the calls had a place that were left one by the thread before them, where no node fails: since that
/// had the lock, if they waited by then. A call that has lost no attempt and was left none has found no other program
/// in front.
pub(crate) fn note_places_left(turns: &mut [Turn]) {
    let mut last_had = HashMap::new();
    for turn in turns {
        let last = last_had.insert(turn.program, turn.had).filter(|&last| turn.wanted < last);
        if let (Some(last), 0) = (last, turn.lost) {
            turn.settled = Some(last + AT_ONCE.as_nanos() as u64).filter(|settled| *settled < turn.had);
        }
    }
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
