//! rslock, with a task for each thread that is asked for.

use compare::{Order, TTL, WARM_UP, order, print_rate, turns};
use rslock::LockManager;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

async fn pair(manager: &LockManager, name: &str) {
    let guard = manager.acquire(name, TTL).await.expect("a lock");
    guard.release().await;
}

async fn work(manager: LockManager, name: String, length: Duration) -> Vec<Duration> {
    for _ in 0..WARM_UP {
        pair(&manager, &name).await;
    }
    let mut times = Vec::new();
    let end = Instant::now() + length;
    while Instant::now() < end {
        let begin = Instant::now();
        pair(&manager, &name).await;
        times.push(begin.elapsed());
    }
    times
}

fn main() {
    let (order, urls) = order();
    let runtime = Runtime::new().expect("a runtime");
    let manager = LockManager::new(urls);
    match order {
        Order::Turns => turns(
            || {
                runtime
                    .block_on(manager.acquire("compare", TTL))
                    .expect("a lock")
            },
            |guard| runtime.block_on(guard.release()),
        ),
        Order::Rate { threads, length } => {
            let start = |thread: usize| {
                let name = format!("compare/{thread}");
                runtime.spawn(work(manager.clone(), name, length))
            };
            let tasks: Vec<_> = (0..threads).map(start).collect();
            let ends = tasks
                .into_iter()
                .map(|task| runtime.block_on(task).expect("its times"));
            print_rate(ends.flatten().collect(), length);
        }
    }
}
