//! What the programs in Rust have in common: their order, and what they print. The programs in
//! other languages do the same.
//!
//! ```text
//! PROGRAM rate THREADS SECONDS URL…   each thread takes and releases a lock of its own
//! PROGRAM turns URL…                  takes and releases one lock, as its input tells it to
//! ```
//!
//! `rate` prints the median of a pair in microseconds, and pairs per second. `turns` prints the
//! time, in nanoseconds since 1970, after `lock` and before `unlock`.

use std::io::{BufRead, Write};
use std::time::{Duration, SystemTime};

/// Pairs of each thread before the measurement: connections are made, scripts are loaded.
pub const WARM_UP: usize = 50;
/// Of every lock.
pub const TTL: Duration = Duration::from_secs(10);

pub enum Order {
    Rate { threads: usize, length: Duration },
    Turns,
}

pub fn order() -> (Order, Vec<String>) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rate", threads, seconds, urls @ ..] => {
            let threads = threads.parse().expect("a number of threads");
            let length = Duration::from_secs_f64(seconds.parse().expect("seconds"));
            let urls = urls.iter().map(ToString::to_string).collect();
            (Order::Rate { threads, length }, urls)
        }
        ["turns", urls @ ..] => (Order::Turns, urls.iter().map(ToString::to_string).collect()),
        _ => panic!("rate THREADS SECONDS URL… or turns URL…"),
    }
}

/// Prints the result of `rate`: the times of all pairs of all threads.
pub fn print_rate(mut times: Vec<Duration>, length: Duration) {
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1e6;
    println!("{median} {}", times.len() as f64 / length.as_secs_f64());
}

/// Takes turns until the input ends.
pub fn turns<G>(lock: impl Fn() -> G, unlock: impl Fn(G)) {
    let mut held = None;
    for line in std::io::stdin().lock().lines() {
        match line.expect("an order").as_str() {
            "lock" => {
                held = Some(lock());
                print_now();
            }
            _ => {
                print_now();
                unlock(held.take().expect("a held lock"));
            }
        }
    }
}

fn print_now() {
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock");
    println!("{}", now.as_nanos());
    std::io::stdout().flush().expect("an output");
}
