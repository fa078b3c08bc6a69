//! A program that can be observed: it takes locks, and serves its counters to Prometheus.
//!
//! ```text
//! cargo run --example observe                                  on nodes inside the process
//! cargo run --example observe -- redis://10.0.0.1 redis://…    on yours
//! curl http://127.0.0.1:9187/metrics
//! ```
//!
//! `dashboard.json` in this folder is a dashboard for Grafana, and `alerts.yml` has alert rules for
//! Prometheus. A test checks that every series in them exists.

#![allow(clippy::print_stdout)]

mod endpoint;

use quorumlock::embedded::EmbeddedNode;
use quorumlock::{Counters, Redlock, Watchdog};
use std::error::Error;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Where the counters are served.
const ADDRESS: &str = "127.0.0.1:9187";
const THREADS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    let mut nodes = Vec::new();
    if urls.is_empty() {
        nodes = (0..3)
            .map(|_| EmbeddedNode::start())
            .collect::<Result<Vec<_>, _>>()?;
        urls = nodes.iter().map(EmbeddedNode::url).collect();
    }

    // All that a program needs: counters, given to its client, and written as text on request.
    let counters = Counters::by_prefix('/');
    let redlock = Redlock::builder().nodes(urls).counters(&counters).build()?;
    // So that the votes of all nodes are known from the beginning.
    redlock.connect(Duration::from_secs(3))?;

    for number in 0..THREADS {
        let redlock = redlock.clone();
        thread::spawn(move || work(&redlock, number));
    }
    let listener = TcpListener::bind(ADDRESS)?;
    println!("http://{ADDRESS}/metrics");
    endpoint::serve(&listener, &counters);
    drop(nodes);
    Ok(())
}

/// Takes one of a few locks, works for a moment, and releases it, again and again.
fn work(redlock: &Redlock, number: u64) {
    for round in 0_u64.. {
        let order = redlock.mutex(format!("orders/{}", round % 2));
        let report = redlock
            .mutex(format!("reports/{number}"))
            .watchdog(Watchdog::new());
        for (mutex, millis) in [(order, 20 + 10 * number), (report, 100)] {
            // A lock that is held for too long, or nodes that are down, show in the counters.
            if let Ok(Some(guard)) = mutex.lock_timeout(Duration::from_millis(500)) {
                thread::sleep(Duration::from_millis(millis));
                drop(guard);
            }
        }
    }
}
