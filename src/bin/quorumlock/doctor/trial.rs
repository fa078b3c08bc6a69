//! A lock of all nodes, by the library: taken, extended, fenced and released, and how long that
//! takes.

use super::findings::Findings;
use super::findings::Level::Warning;
use crate::deployment::Deployment;
use crate::exit::Failure;
use crate::json::{Object, maybe, object, quoted};
use crate::report::write_line;
use crate::times::Times;
use quorumlock::event::{Event, Mismatch};
use quorumlock::protocol::kinds::fenced;
use quorumlock::{ExtendOutcome, Mutex, MutexGuard, NodeStatus, ReleaseOutcome};
use std::sync::mpsc;
use std::time::Duration;

/// Pairs of lock and unlock that are measured, unless they take longer than this.
const PAIRS: usize = 100;
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(2);
/// How long the trial's locks last at most.
const TTL: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Default)]
pub(super) struct Trial {
    /// Why no lock can be taken.
    pub(super) error: Option<String>,
    pub(super) findings: Findings,
    /// How long each pair took.
    times: Times,
    /// What the client knows of each node afterwards.
    pub(super) nodes: Vec<NodeStatus>,
    /// What did not fit the client, by address: also what it has put right itself.
    pub(super) mismatches: Vec<(String, Mismatch)>,
}

/// Connects, for which a node has that long, and tries a lock. A setting that cannot be used is a
/// failure; everything else is a finding.
pub(super) fn run(deployment: &Deployment, name: &str) -> Result<Trial, Failure> {
    let (reported, mismatches) = mpsc::channel();
    let observer = move |event: &Event| {
        if let Event::NodeMismatched { node, mismatch, .. } = event {
            // Nothing is read after the trial.
            let _ = reported.send((node.to_string(), *mismatch));
        }
    };
    // The fence of a name that is never used again is kept for no longer than must be.
    let builder = deployment.builder.clone().fence_retention(Duration::ZERO);
    let redlock = builder.observer(observer).build()?;
    let mut trial = Trial::default();
    // Nodes report then what they may evict. That too few answer shows in the trial.
    drop(redlock.connect(deployment.settings().node_timeout));
    let ttl = deployment.trial_ttl(TTL);
    let mutex = redlock.mutex(name).ttl(ttl);
    if let Err(error) = trial.plain(&mutex, ttl) {
        trial.error = Some(error.to_string());
    } else if let Err(error) = mutex
        .fenced()
        .lock()
        .and_then(|guard| guard.unlock().map(drop))
    {
        let remedy = "fenced locks do not work; other locks do";
        trial
            .findings
            .add(Warning, "no-fencing", error.to_string(), remedy);
    }
    trial.nodes = redlock.nodes()?;
    trial.mismatches = mismatches.try_iter().collect();
    forget(deployment, name);
    Ok(trial)
}

/// Releases a lock. That a majority does not confirm it is no reason for which none could be taken.
fn release(findings: &mut Findings, guard: MutexGuard) {
    let what = match guard.unlock() {
        Ok(ReleaseOutcome::Released) => return,
        Ok(_) => "a lock was not there at its release".to_owned(),
        Err(error) => error.to_string(),
    };
    if findings.worst().is_none() {
        findings.add(Warning, "no-release", what, "see the nodes");
    }
}

/// Deletes the fence of the trial, where the user may.
fn forget(deployment: &Deployment, name: &str) {
    let key = fenced::KEYS.key(deployment.prefix(), name);
    deployment.ask(|connection| connection.ask(&[b"DEL", key.as_bytes()]));
}

impl Trial {
    fn plain(&mut self, mutex: &Mutex, ttl: Duration) -> quorumlock::Result<()> {
        let guard = mutex.lock()?;
        if guard.extend(ttl)? != ExtendOutcome::Extended {
            self.findings.add(
                Warning,
                "no-extension",
                "a lock could not be extended",
                "see the nodes",
            );
        }
        release(&mut self.findings, guard);
        let Trial {
            times, findings, ..
        } = self;
        times.measure(PAIRS, LONGEST_MEASUREMENT, || {
            release(findings, mutex.lock()?);
            Ok(())
        })
    }

    pub(super) fn show(&self) {
        match &self.error {
            Some(error) => write_line!("a lock of all nodes: {error}"),
            None => write_line!("a lock of all nodes: taken and released in {}", self.times),
        }
        self.findings.show();
    }

    pub(super) fn json(&self) -> Object {
        object! {
            "error": maybe(self.error.as_ref().map(quoted)),
            _: self.times.json(),
            "findings": self.findings.json(),
        }
    }
}
