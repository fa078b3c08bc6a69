//! This library.

use compare::{Order, TTL, WARM_UP, order, print_rate, turns};
use quorumlock::Redlock;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let (order, urls) = order();
    let client = Redlock::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(1))
        .build()
        .expect("a client");
    match order {
        Order::Turns => {
            let mutex = client.mutex("compare").ttl(TTL);
            turns(
                || mutex.lock().expect("a lock"),
                |guard| drop(guard.unlock()),
            );
        }
        Order::Rate { threads, length } => {
            let work = |thread: usize| {
                let mutex = client.mutex(format!("compare/{thread}")).ttl(TTL);
                let pair = || {
                    let _ = mutex.lock().expect("a lock").unlock().expect("its release");
                };
                (0..WARM_UP).for_each(|_| pair());
                let mut times = Vec::new();
                let end = Instant::now() + length;
                while Instant::now() < end {
                    let begin = Instant::now();
                    pair();
                    times.push(begin.elapsed());
                }
                times
            };
            let times = thread::scope(|scope| {
                let all: Vec<_> = (0..threads)
                    .map(|thread| scope.spawn(move || work(thread)))
                    .collect();
                all.into_iter()
                    .flat_map(|thread| thread.join().expect("its times"))
                    .collect()
            });
            print_rate(times, length);
        }
    }
}
