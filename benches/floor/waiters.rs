//! One program that waits: for many locks at once, for a short time again and again, beside a
//! stranger's messages.

use crate::library::{self, client};
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use quorumlock::{CancelHandle, ErrorKind, Wait};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A time between two messages that makes a thousand of them in a second, with what it takes to
/// send one.
const PAUSE: Duration = Duration::from_micros(940);

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let addresses = servers.addresses(5);
    let mut rows = many_locks(setting, &servers, &addresses);
    rows.push(fair_clients(setting, &servers));
    rows.push(short_waits(setting, &servers, &addresses));
    rows.push(stranger(setting, &servers, &addresses));
    rows
}

/// Many threads of one client, each of which waits for a lock of its own that stays held.
fn many_locks(setting: &Setting, servers: &Servers, addresses: &[SocketAddr]) -> Vec<Row> {
    let number = setting.choose(1000, 100);
    // The sleep doubles until it is 10 s long.
    let warm_up = Duration::from_secs(setting.choose(16, 1));
    let length = Duration::from_secs(setting.choose(10, 1));
    let mine = client(addresses);
    let held = library::hold(&client(addresses), number, "waiters/waited");
    let unavailable = AtomicU32::new(0);
    let handle = CancelHandle::new();
    let mut sets = 0.0;
    let mut busy = 0.0;
    thread::scope(|scope| {
        for index in 0..number {
            let mutex = library::mutex(&mine, &format!("waiters/waited/{index}"));
            let unavailable = &unavailable;
            let wait = Wait::unlimited().cancelled_by(&handle);
            library::spawn_waiting(scope, move || {
                let found = mutex.lock_with(&wait);
                if found.is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
                    unavailable.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(warm_up);
        let sets_before = servers.calls("set");
        let busy_before = busy_time();
        thread::sleep(length);
        sets = servers.calls("set") - sets_before;
        busy = (busy_time() - busy_before).as_secs_f64();
        handle.cancel();
    });
    drop(held);
    let seconds = length.as_secs_f64();
    let sets = sets / (addresses.len() * number) as f64;
    let unavailable = f64::from(unavailable.into_inner());
    let row = |what: &str, unit, value| {
        let what = format!("{number} waiters of {number} held locks: {what}");
        Row::value(what, unit, value)
    };
    vec![
        row("attempts/s of each", "", sets / seconds).value_at_most(0.2),
        row("processor time", "%", busy / seconds * 100.0).value_at_most(5.0),
        row("that end as unavailable", "", unavailable).value_at_most(0.0),
    ]
}

/// Many clients that wait for one fair lock, which stays held: the processor time of a node.
fn fair_clients(setting: &Setting, servers: &Servers) -> Row {
    let number = setting.choose(1000, 50);
    let warm_up = Duration::from_secs(setting.choose(5, 1));
    let length = Duration::from_secs(setting.choose(10, 1));
    let addresses = servers.addresses(3);
    let name = "waiters/fair";
    let held = library::lock(&library::mutex(&client(&addresses), name));
    let handle = CancelHandle::new();
    let mut busy = 0.0;
    thread::scope(|scope| {
        for _ in 0..number {
            let wait = Wait::unlimited().cancelled_by(&handle);
            let mutex = library::mutex(&client(&addresses), name).fair();
            library::spawn_waiting(scope, move || drop(mutex.lock_with(&wait)));
        }
        thread::sleep(warm_up);
        let before = servers.busy_time();
        thread::sleep(length);
        busy = servers.busy_time() - before;
        handle.cancel();
    });
    drop(held);
    let load = busy / length.as_secs_f64() / addresses.len() as f64 * 100.0;
    Row::value(
        format!("{number} clients wait for a fair lock: load of a node"),
        "%",
        load,
    )
    .value_at_most(2.0)
}

/// The processor time of this process.
fn busy_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `lock_timeout(5 ms)` in a loop, of a lock that stays held.
fn short_waits(setting: &Setting, servers: &Servers, addresses: &[SocketAddr]) -> Row {
    let mine = client(addresses);
    let theirs = client(addresses);
    let held = library::lock(&library::mutex(&theirs, "waiters/short"));
    library::pair(&library::mutex(&mine, "waiters/warm"));
    let mutex = library::mutex(&mine, "waiters/short");
    let length = Duration::from_millis(setting.choose(3000, 300));
    let before = connections(servers);
    let start = Instant::now();
    let mut waits = 0;
    while start.elapsed() < length {
        // On a busy machine it may not find out in so short a time.
        drop(mutex.lock_timeout(Duration::from_millis(5)));
        waits += 1;
    }
    let made = (connections(servers) - before) / addresses.len() as f64 - 1.0;
    drop(held);
    Row::value(
        "waits of 5 ms in a row: subscriber connections/s of a node",
        "",
        made / length.as_secs_f64(),
    )
    .note(format!("{made} in {waits} waits"))
    .value_at_most(1.0)
}

/// How many connections the servers have accepted. To ask takes one of each.
fn connections(servers: &Servers) -> f64 {
    servers.info_sum(&["total_connections_received"])
}

/// One waiter, with and without a stranger that publishes a thousand messages a second at one node.
fn stranger(setting: &Setting, servers: &Servers, addresses: &[SocketAddr]) -> Row {
    let length = Duration::from_secs(setting.choose(10, 1));
    let mine = client(addresses);
    let theirs = client(addresses);
    let held = library::lock(&library::mutex(&theirs, "waiters/stranger"));
    let mutex = library::mutex(&mine, "waiters/stranger");
    let mut sets = [false, true].map(|is_disturbed| {
        let before = servers.calls("set");
        let end = Instant::now() + length;
        thread::scope(|scope| {
            scope.spawn(|| drop(mutex.lock_with(&Wait::deadline(end))));
            if is_disturbed {
                publish(addresses[0], end);
            }
        });
        (servers.calls("set") - before) / addresses.len() as f64
    });
    drop(held);
    sets.reverse();
    Row::value(
        format!("a waiter and a stranger with 1000 PUBLISH/s, {length:?}: SETs a node"),
        "",
        sets[0],
    )
    .against("without", sets[1])
    .ratio_at_most(2.0)
}

fn publish(address: SocketAddr, end: Instant) {
    let mut stream = TcpStream::connect(address).expect("a connection to a server");
    stream.set_nonblocking(true).expect("a socket");
    let mut buffer = [0; 4096];
    while Instant::now() < end {
        stream
            .write_all(b"*3\r\n$7\r\nPUBLISH\r\n$27\r\nquorumlock:waiters/stranger\r\n$1\r\n1\r\n")
            .expect("a server that reads");
        let _ = stream.read(&mut buffer);
        thread::sleep(PAUSE);
    }
}
