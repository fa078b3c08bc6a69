//! A client process: threads that take the lock, and increment a number that nothing else protects.
//!
//! A thread writes down the time before it reads the number and after it has written it, as one line of a file of its
//! own, at once: what a killed process did until then is known. Now and then a thread takes longer than the lock's time to live;
//! some threads rely on a watchdog for that, the others on what the guard says is left.

use super::faults::Random;
use super::text;
use quorumlock::{ErrorKind, Redlock, Release, Watchdog};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) const RESOURCE: &str = "the number";
pub(crate) const TTL: Duration = Duration::from_secs(2);

const THREADS: usize = 3;
/// Whoever has less time left does not write: far more than a write takes on a machine that is busy.
const NEEDED: Duration = Duration::from_millis(700);

/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_NEMESIS_WORKER";
/// When this file is there, workers end.
const STOP: &str = "stop";

/// What one thread wrote down.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) done: Vec<Interval>,
    /// How often a release was told to come too late.
    pub(crate) expired: usize,
    /// How often too little time was left.
    pub(crate) given_up: usize,
    pub(crate) released: usize,
    pub(crate) timed_out: usize,
    pub(crate) unavailable: usize,
    /// How often too few servers confirmed a release.
    pub(crate) unconfirmed: usize,
}

/// A time during which somebody relied on the lock, in nanoseconds, and what was written meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) value: u64,
}

/// Starts one more process.
pub(crate) fn start(number: usize, directory: &Path, urls: &[String]) -> Child {
    let binary = std::env::current_exe().expect("the path of this test binary");
    let output = File::create(directory.join(format!("output.{number}"))).expect("a file for what it says");
    Command::new(binary)
        .args([super::TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{number} {} {}", directory.display(), urls.join(" ")))
        .stdout(output.try_clone().expect("the same file"))
        .stderr(Stdio::from(output))
        .spawn()
        .expect("this test binary runs")
}

/// Lets all processes end.
pub(crate) fn stop(directory: &Path) {
    fs::write(directory.join(STOP), "").expect("a writable directory");
}

/// Whether this process is a worker.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// What a worker process does.
pub(crate) fn run() {
    let order = std::env::var(VARIABLE).unwrap();
    let mut words = order.split(' ');
    let (number, directory) = (words.next().unwrap(), PathBuf::from(words.next().unwrap()));
    let client = Redlock::builder().nodes(words).build().unwrap();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (client, directory) = (client.clone(), &directory);
            let log = directory.join(format!("log.{number}.{index}"));
            let random = Random::from_seed(number.parse::<u64>().unwrap() * 1000 + index as u64);
            scope.spawn(move || work(&client, directory, &log, index % 2 == 0, random));
        }
    });
}

fn work(client: &Redlock, directory: &Path, log: &Path, is_watched: bool, mut random: Random) {
    let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    let mut say = |line: String| log.write_all(line.as_bytes()).unwrap();
    let mutex = client.mutex(RESOURCE).ttl(TTL);
    let mutex = if is_watched { mutex.watchdog(Watchdog::new()) } else { mutex };
    // The directory goes with the test that started this process, however that ends.
    while directory.exists() && !directory.join(STOP).exists() {
        let guard = match mutex.lock_timeout(Duration::from_secs(1)) {
            Ok(Some(guard)) => guard,
            Ok(None) => {
                say("timed out\n".into());
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                say("unavailable\n".into());
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let start = now();
        let value = counter(directory) + 1;
        // Longer than the lock lasts: what is watched goes on, and the rest must notice.
        let longer = if random.below(60) == 0 { TTL * 5 / 4 } else { Duration::ZERO };
        thread::sleep(longer + Duration::from_micros(random.below(3000)));
        if guard.remaining() < NEEDED {
            say("given up\n".into());
            continue;
        }
        fs::write(directory.join("new"), value.to_string()).unwrap();
        fs::rename(directory.join("new"), directory.join("counter")).unwrap();
        let end = now();
        say(format!("done {start} {end} {value}\n"));
        if random.below(2) == 0 {
            drop(guard);
        } else {
            say(match guard.unlock() {
                Ok(Release::Released) => "released\n".into(),
                Ok(Release::Expired) => "expired\n".into(),
                Err(_) => "unconfirmed\n".into(),
            });
        }
    }
}

/// What all processes wrote down, thread by thread.
pub(crate) fn logs(directory: &Path) -> Vec<Log> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
    paths.filter(is_log).map(|path| read(&text(&path))).collect()
}

/// The number, zero when nobody has written it.
pub(crate) fn counter(directory: &Path) -> u64 {
    match text(&directory.join("counter")).as_str() {
        "" => 0,
        number => number.parse().unwrap(),
    }
}

fn read(text: &str) -> Log {
    let mut log = Log::default();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        match line {
            "expired" => log.expired += 1,
            "given up" => log.given_up += 1,
            "released" => log.released += 1,
            "timed out" => log.timed_out += 1,
            "unavailable" => log.unavailable += 1,
            "unconfirmed" => log.unconfirmed += 1,
            _ => {
                let numbers: Vec<u64> =
                    line.strip_prefix("done ").unwrap().split(' ').map(|number| number.parse().unwrap()).collect();
                log.done.push(Interval { start: numbers[0], end: numbers[1], value: numbers[2] });
            }
        }
    }
    log
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
