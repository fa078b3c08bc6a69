//! `bench`: how many pairs of lock and unlock a second, and how long each takes.

use crate::arguments::{Arguments, unexpected};
use crate::exit::{Exit, Failure};
use crate::json::Object;
use crate::report::{self, Progress};
use crate::settings;
use quorumlock::{Human, Redlock};
use std::thread;
use std::time::{Duration, Instant};

/// How long it runs, unless `--duration` says otherwise.
const DURATION: Duration = Duration::from_secs(5);
/// Most threads.
const MOST_THREADS: usize = 1024;

pub(crate) fn bench(mut arguments: Arguments) -> Result<Exit, Failure> {
    let (mut options, mut is_json) = (settings::Options::default(), false);
    let (mut duration, mut threads) = (DURATION, 1_usize);
    while let Some(word) = arguments.next()? {
        match &word {
            _ if options.take(&word, &mut arguments)? => {}
            word if word.is("--json") => is_json = true,
            word if word.is("--duration") => duration = arguments.duration("--duration")?,
            word if word.is("--threads") => threads = arguments.number("--threads")?,
            word => return Err(unexpected("bench", word)),
        }
    }
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(Failure::usage(format!("--threads takes 1 to {MOST_THREADS}")));
    }
    let redlock = options.settings()?.client()?;
    redlock.connect(Duration::from_secs(1))?;
    let run = random_name("")?;
    let begun = Instant::now();
    let result = Progress::during("locking and unlocking", || {
        thread::scope(|scope| {
            let spawn = |number| {
                let (redlock, name) = (&redlock, format!("{run}-{number}"));
                scope.spawn(move || pairs(redlock, &name, duration))
            };
            let workers: Vec<_> = (0..threads).map(spawn).collect();
            let join = |panicked| std::panic::resume_unwind(panicked);
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(join)).collect::<Result<Vec<_>, _>>()
        })
    });
    let mut times: Vec<Duration> = result?.into_iter().flatten().collect();
    times.sort_unstable();
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| quantile(&times, part));
    if is_json {
        let micros = |time: Duration| time.as_micros();
        let object =
            Object::new().raw("threads", threads).raw("pairs", times.len()).raw("pairs_per_second", rate as u64);
        let object = object.raw("p50_us", micros(p50)).raw("p99_us", micros(p99)).raw("p999_us", micros(p999));
        report::line(format_args!("{object}"));
    } else {
        let (count, p50, p99, p999) = (times.len(), Human(p50), Human(p99), Human(p999));
        report::line(format_args!("{count} pairs by {threads} threads: {rate:.0} a second"));
        report::line(format_args!("a pair takes {p50} (median), {p99} (p99), {p999} (p99.9)"));
    }
    Ok(Exit::OK)
}

/// Locks and unlocks for so long. How long each pair took.
fn pairs(redlock: &Redlock, name: &str, duration: Duration) -> quorumlock::Result<Vec<Duration>> {
    let mutex = redlock.mutex(name);
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < duration {
        let start = Instant::now();
        let _ = mutex.lock()?.unlock()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// The time that this part of all did not exceed.
pub(crate) fn quantile(sorted: &[Duration], part: f64) -> Duration {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// A name that no program locks, with this in front.
pub(crate) fn random_name(begin: &str) -> Result<String, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::system("get random bytes", error))?;
    Ok(format!("{begin}quorumlock-trial-{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_times_that_were_measured() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        let millis = |part| quantile(&times, part).as_millis();
        assert_eq!((millis(0.5), millis(0.99), millis(0.999), millis(1.0)), (50, 99, 100, 100));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
