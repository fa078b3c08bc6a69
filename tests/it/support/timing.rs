//! What must be done in time, on a machine that may be busy.

use crate::prelude::*;

/// A lock whose holder is killed is acquired when its time to live is over: not before, and in time
/// in one of three tries. The holder is a child of this process, and prepares before it acquires.
pub(crate) fn is_free_in_time<Held, Next, Acquire: FnOnce() -> Held>(
    ttl: Duration,
    holder: impl Fn() -> Acquire,
    next: impl Fn() -> Next,
) {
    let late: Vec<_> = (0..3).map(|_| lateness(ttl, &holder, &next)).collect();
    let is_in_time = |late: &Duration| *late < Duration::from_millis(50);
    assert!(late.iter().any(is_in_time), "late by {late:?}");
}

/// How much later than its time to live it is acquired.
fn lateness<Held, Next, Acquire: FnOnce() -> Held>(
    ttl: Duration,
    holder: impl FnOnce() -> Acquire,
    next: impl FnOnce() -> Next,
) -> Duration {
    let mut holder = Child::fork(End::Vanish, |parent| {
        let acquire = holder();
        parent.send("r");
        parent.wait();
        let _held = acquire();
        parent.send("h");
        parent.wait();
    });
    assert_eq!(holder.receive(), 'r');
    let begun = Instant::now();
    holder.let_continue();
    assert_eq!(holder.receive(), 'h');
    let taken = Instant::now();
    holder.kill();
    let next = next();
    let acquired = Instant::now();
    assert!(
        acquired >= begun + ttl,
        "{:?} too early",
        begun + ttl - acquired
    );
    drop(next);
    acquired.saturating_duration_since(taken + ttl)
}

pub(crate) fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable_by(|one, other| one.partial_cmp(other).expect("numbers"));
    values[values.len() / 2]
}

/// How often something is tried that must be done in time. A busy machine holds threads up, so that
/// one try in time is enough. What the library holds up is late every time.
pub(crate) const TRIES: usize = 12;

/// Runs something that must be done within a limit, in one of [`TRIES`].
#[track_caller]
pub(crate) fn promptly<R>(limit: Duration, mut action: impl FnMut() -> R) -> R {
    promptly_from(limit, || (), |()| action())
}

/// [`promptly`], with preparations for each try that do not count.
#[track_caller]
pub(crate) fn promptly_from<P, R>(
    limit: Duration,
    mut prepare: impl FnMut() -> P,
    mut action: impl FnMut(P) -> R,
) -> R {
    let mut taken = Vec::new();
    for _ in 0..TRIES {
        let prepared = prepare();
        let start = Instant::now();
        let result = action(prepared);
        let time = start.elapsed();
        if time <= limit {
            return result;
        }
        taken.push(time);
    }
    panic!("not within {limit:?}: {taken:?}");
}
