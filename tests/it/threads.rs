//! Many threads on one client: nothing is lost, one connection per node is enough, and nothing
//! stays behind.
//!
//! Each lock protects a counter that is read, then written, with a chance for others in between.
//! Two holders at once would sooner or later write the same number, and the sum would be short.

use crate::prelude::*;
use crate::support::handler;
use crate::support::process;
use nix::sys::pthread::pthread_self;

const THREADS: usize = 64;
const RESOURCES: usize = 8;
/// Lock and unlock pairs of each thread.
const PAIRS: usize = if cfg!(debug_assertions) { 100 } else { 2000 };
/// Sets another number of pairs for each thread.
const PAIRS_VARIABLE: &str = "QUORUMLOCK_TEST_PAIRS";

#[derive(Default)]
struct Counter {
    value: AtomicU64,
    holders: AtomicU64,
}

impl Counter {
    /// Loses an update if another thread is here.
    fn increment(&self) {
        assert_eq!(
            self.holders.fetch_add(1, Ordering::Relaxed),
            0,
            "two holders of one lock"
        );
        let value = self.value.load(Ordering::Relaxed);
        thread::yield_now();
        self.value.store(value + 1, Ordering::Relaxed);
        self.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
#[allow(clippy::print_stdout)]
fn sixty_four_threads_lose_nothing_and_leave_nothing() {
    alone(|| {
        let pairs = std::env::var(PAIRS_VARIABLE).map_or(PAIRS, |pairs| pairs.parse().unwrap());
        let servers = Server::several(5).unwrap();
        let ports: Vec<u16> = servers.each(Server::port);
        let before = (process::threads().len(), process::descriptors().len());

        // Time enough for a busy machine: nothing is shown here about how fast a node answers.
        let client = builder(&servers).node_timeout(SOON).build().unwrap();
        let counters: Vec<Counter> = (0..RESOURCES).map(|_| Counter::default()).collect();
        let start = Instant::now();
        let connections = run(&client, &counters, pairs, &ports);
        let rate = (THREADS * pairs) as f64 / start.elapsed().as_secs_f64();
        println!(
            "{THREADS} threads, {pairs} pairs each: {:.1?}, {rate:.0} pairs a second",
            start.elapsed()
        );

        let total: u64 = counters
            .iter()
            .map(|counter| counter.value.load(Ordering::Relaxed))
            .sum();
        assert_eq!(total, (THREADS * pairs) as u64);
        assert_eq!(
            connections,
            ports.len(),
            "one connection per node, never more"
        );
        let empty = |server: &Server| server.keys().unwrap().is_empty();
        assert_soon!(servers.all(empty), "keys were left behind");
        // The client is still here, and its connections are, but nothing runs.
        assert_soon!(
            connections_to(&ports).len() == ports.len(),
            "{:?}",
            connections_to(&ports)
        );
        assert_soon!(
            process::threads().len() == before.0,
            "{:?}",
            process::threads()
        );
        drop(client);
        assert_eq!(connections_to(&ports), []);
        assert_eq!(
            process::descriptors().len(),
            before.1,
            "{:?}",
            process::descriptors()
        );
    });
}

/// Lets the threads run, and returns the most connections that were seen meanwhile.
fn run(client: &Redlock, counters: &[Counter], pairs: usize, ports: &[u16]) -> usize {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(connections_to(ports).len());
                thread::sleep(Duration::from_millis(20));
            }
            most
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    for pair in 0..pairs {
                        let resource = (thread + pair) % counters.len();
                        let guard = client.mutex(name(resource)).lock().unwrap();
                        counters[resource].increment();
                        // Every way to release in turn.
                        if pair % 2 == 0 {
                            unlock(guard)
                        } else {
                            drop(guard)
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a thread failed");
        watching.join().unwrap()
    })
}

fn name(resource: usize) -> String {
    format!("resource/{resource}")
}

/// A signal handler of the program takes two seconds, on the thread that polls for all.
#[test]
fn a_thread_that_does_not_come_back_from_its_poll_holds_up_no_other() {
    const STUCK: Duration = Duration::from_secs(2);
    alone(|| {
        let servers = Server::several(3).unwrap();
        let client = builder(&servers).node_timeout(SOON).build().unwrap();
        let held = take(&long_lock(&crate::clients::client(&servers), "held"));
        let (send, receive) = std::sync::mpsc::channel();
        let mutex = long_lock(&client, "held");
        let waiter = thread::spawn(move || {
            send.send(pthread_self()).unwrap();
            mutex.lock_timeout(SOON)
        });
        let driver = receive.recv().unwrap();
        // It polls by then, and no other thread does.
        thread::sleep(Duration::from_millis(200));
        handler::hang(driver, STUCK);
        let begun = Instant::now();
        while begun.elapsed() < STUCK / 2 {
            let begun = Instant::now();
            assert!(take(&long_lock(&client, "k")).unlock().is_ok());
            let taken = begun.elapsed();
            assert!(taken < STUCK / 4, "{taken:?}");
        }
        let _ = held.unlock().unwrap();
        assert!(waiter.join().unwrap().unwrap().is_some());
    });
}
