//! Read-write locks: what readers gain by sharing, against a plain lock that each of them takes
//! alone.

use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use quorumlock::Redlock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Programs that want the lock, each with a client of its own.
const PROGRAMS: usize = 8;
/// One of so many acquisitions writes.
const WRITES: u32 = 10;
const HELD: Duration = Duration::from_millis(1);

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let rounds = setting.choose(5, 1);
    let length = Duration::from_millis(setting.choose(2000, 200));
    let servers = Servers::start(setting, 3);
    let addresses = servers.addresses(3);
    [("9 reads to a write", WRITES), ("reads only", u32::MAX)]
        .map(|(what, writes)| {
            let rounds: Vec<[f64; 2]> = (0..rounds)
                .map(|_| {
                    [shared, plain].map(|inside| reads_a_second(&addresses, length, writes, inside))
                })
                .collect();
            let column = |index: usize| rounds.iter().map(|round| round[index]).collect::<Vec<_>>();
            Row::ratio(
                format!("{PROGRAMS} programs, {HELD:?} held, {what}: reads/s"),
                "",
                &column(0),
                ("plain", &column(1)),
                |rate| *rate,
            )
            .ratio_at_least(3.0)
        })
        .into()
}

/// How many reads a second all programs come to.
fn reads_a_second(
    addresses: &[SocketAddr],
    length: Duration,
    writes: u32,
    inside: fn(&Redlock, bool),
) -> f64 {
    let reads = AtomicU32::new(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..PROGRAMS {
            scope.spawn(|| {
                let client = library::client(addresses);
                for turn in 1_u32.. {
                    if begun.elapsed() >= length {
                        break;
                    }
                    let is_read = !turn.is_multiple_of(writes);
                    inside(&client, is_read);
                    reads.fetch_add(u32::from(is_read), Ordering::Relaxed);
                }
            });
        }
    });
    f64::from(reads.into_inner()) / begun.elapsed().as_secs_f64()
}

fn shared(client: &Redlock, is_read: bool) {
    let ttl = Duration::from_secs(60);
    let side = if is_read {
        client.read_mutex("readers").ttl(ttl).erase()
    } else {
        client.write_mutex("readers").ttl(ttl).erase()
    };
    let guard = side.lock().expect("enough nodes answer");
    thread::sleep(HELD);
    drop(guard);
}

fn plain(client: &Redlock, _: bool) {
    let guard = library::lock(&library::mutex(client, "readers"));
    thread::sleep(HELD);
    drop(guard);
}
