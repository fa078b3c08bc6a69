//! `bench`: how many pairs of lock and unlock a second, and how long each takes.

use crate::deployment::at_once;
use crate::exit::{self, Exit, Failure};
use crate::json::object;
use crate::report::{self, write_line};
use crate::settings::{CommonOptions, duration};
use crate::times::Times;
use clap::Args;
use quorumlock::Redlock;
use quorumlock::algorithm::time::Human;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// how long to run
    #[arg(long, value_name = "D", value_parser = duration, default_value = "5s")]
    duration: Duration,
    /// how many threads, each with a lock of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), default_value = "1")]
    threads: u16,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn bench(options: Options) -> Result<Exit, Failure> {
    let Options {
        duration,
        threads,
        common,
    } = options;
    let redlock = common.settings.read()?.client;
    redlock.connect(Duration::from_secs(1))?;
    let run = random_name("")?;
    let begun = Instant::now();
    let pairs = |number| pairs(&redlock, &format!("{run}-{number}"), duration);
    let result = report::during("locking and unlocking", || at_once(0..threads, pairs));
    let times = Times::of(result.into_iter().collect::<Result<_, _>>()?);
    let count = times.count();
    let p999 = times.quantile(0.999);
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    if common.json {
        let result = object! {
            "threads": threads,
            "pairs": count,
            "pairs_per_second": rate as u64,
            _: times.json(),
            "p999_us": p999.as_micros(),
        };
        report::line(result);
    } else {
        write_line!("{rate:.0} pairs a second, {count} in all; threads: {threads}");
        write_line!("a pair takes {times}, {} (p99.9)", Human(p999));
    }
    Ok(exit::OK)
}

/// Locks and unlocks for so long. How long each pair took.
fn pairs(redlock: &Redlock, name: &str, duration: Duration) -> quorumlock::Result<Times> {
    let mutex = redlock.mutex(name);
    let mut times = Times::default();
    times.measure(usize::MAX, duration, || mutex.lock()?.unlock().map(drop))?;
    Ok(times)
}

/// A name that no program locks, with this in front.
pub(crate) fn random_name(begin: &str) -> Result<String, Failure> {
    let number = getrandom::u64().map_err(Failure::system("get random bytes"))?;
    Ok(format!("{begin}quorumlock-trial-{number:016x}"))
}
