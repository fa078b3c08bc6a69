//! `examples/c/workers.c` in Rust: the same work, measured in the same way. `rustc` compiles it for
//! the tests.
//!
//!     twin THREADS PAIRS URL...

use quorumlock::{Mutex, Redlock, ReleaseOutcome};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const RESOURCES: usize = 8;

static NUMBERS: [AtomicU64; RESOURCES] = [const { AtomicU64::new(0) }; RESOURCES];

fn work(client: &Redlock, number: usize, pairs: usize) -> Vec<f64> {
    let mutexes: Vec<Mutex> = (0..RESOURCES).map(|index| client.mutex(format!("workers/{index}"))).collect();
    let mut times = vec![0.0; pairs];
    for (index, time) in times.iter_mut().enumerate() {
        let resource = (number + index) % RESOURCES;
        let start = Instant::now();
        let guard = mutexes[resource].lock().unwrap();
        NUMBERS[resource].store(NUMBERS[resource].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        *time = start.elapsed().as_nanos() as f64;
    }
    times
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().unwrap().parse::<usize>().unwrap();
    let threads = number();
    let pairs = number();
    let client = Redlock::builder().nodes(arguments).node_timeout(Duration::from_secs(5)).build().unwrap();
    let mut times: Vec<f64> = thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(client, number, pairs))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let sum: u64 = NUMBERS.iter().map(|number| number.load(Ordering::Relaxed)).sum();
    times.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| times[times.len() * part / 100] / 1e3;
    println!("{} pairs, {sum} counted, 0 failures, p50 {:.1} us, p99 {:.1} us", times.len(), at(50), at(99));
}
