//! `bench`: how many pairs of lock and unlock a second, and how long each takes.

use crate::arguments::Arguments;
use crate::deployment::at_once;
use crate::exit::{Exit, Failure};
use crate::json::Object;
use crate::report::{self, Progress};
use crate::settings::Options;
use crate::times::Times;
use quorumlock::Redlock;
use quorumlock::algorithm::time::Human;
use std::time::{Duration, Instant};

/// How long it runs, unless `--duration` says otherwise.
const DURATION: Duration = Duration::from_secs(5);
/// Most threads.
const MOST_THREADS: usize = 1024;

pub(crate) fn bench(arguments: Arguments) -> Result<Exit, Failure> {
    let (mut duration, mut threads) = (DURATION, 1_usize);
    let (options, is_json) = Options::read(arguments, "bench", |word, arguments| {
        match word {
            word if word.is("--duration") => duration = arguments.duration("--duration")?,
            word if word.is("--threads") => threads = arguments.number("--threads")?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(Failure::usage(format!("--threads takes 1 to {MOST_THREADS}")));
    }
    let redlock = options.settings()?.client()?;
    redlock.connect(Duration::from_secs(1))?;
    let run = random_name("")?;
    let begun = Instant::now();
    let pairs = |number| pairs(&redlock, &format!("{run}-{number}"), duration);
    let result = Progress::during("locking and unlocking", || at_once(0..threads, pairs));
    let times = Times::of(result.into_iter().collect::<Result<_, _>>()?);
    let (count, p999) = (times.count(), times.quantile(0.999));
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    if is_json {
        let object = Object::new().raw("threads", threads).raw("pairs", count).raw("pairs_per_second", rate as u64);
        report::line(times.json(object).raw("p999_us", p999.as_micros()));
    } else {
        report::line(format_args!("{count} pairs by {threads} threads: {rate:.0} a second"));
        report::line(format_args!("a pair takes {times}, {} (p99.9)", Human(p999)));
    }
    Ok(Exit::OK)
}

/// Locks and unlocks for so long. How long each pair took.
fn pairs(redlock: &Redlock, name: &str, duration: Duration) -> quorumlock::Result<Times> {
    let (mutex, mut times) = (redlock.mutex(name), Times::default());
    times.measure(usize::MAX, duration, || mutex.lock()?.unlock().map(drop))?;
    Ok(times)
}

/// A name that no program locks, with this in front.
pub(crate) fn random_name(begin: &str) -> Result<String, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::system("get random bytes", error))?;
    Ok(format!("{begin}quorumlock-trial-{:016x}", u64::from_ne_bytes(bytes)))
}
