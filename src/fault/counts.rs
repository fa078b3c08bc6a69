//! How often one node has failed, by phase and cause.

use super::{Cause, Fault, Phase};

/// Counters of one node's faults. There are as many as kinds have occurred: none of a node that
/// never failed.
#[derive(Clone, Debug, Default)]
pub struct FaultCounts {
    counts: Vec<(Phase, Cause, u64)>,
}

impl FaultCounts {
    /// A fault has cost the node a vote.
    pub fn record(&mut self, fault: Fault) {
        self.add_to(fault.phase, fault.cause, 1);
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &FaultCounts) {
        other
            .iter()
            .for_each(|(phase, cause, number)| self.add_to(phase, cause, number));
    }

    fn add_to(&mut self, phase: Phase, cause: Cause, number: u64) {
        match self
            .counts
            .iter_mut()
            .find(|count| (count.0, count.1) == (phase, cause))
        {
            Some(count) => count.2 += number,
            None => self.counts.push((phase, cause, number)),
        }
    }

    /// Each kind with its number, in the order of their first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Cause, u64)> + '_ {
        self.counts.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted_by_phase_and_cause() {
        let mut counts = FaultCounts::default();
        let faults = [
            (Phase::Reply, Cause::TimedOut),
            (Phase::Connect, Cause::Refused),
            (Phase::Connect, Cause::TimedOut),
        ];
        for (times, (phase, cause)) in (1..).zip(faults) {
            (0..times).for_each(|_| counts.record(Fault::new(phase, cause)));
        }
        let expected =
            [1, 2, 3].map(|times| (faults[times - 1].0, faults[times - 1].1, times as u64));
        assert_eq!(counts.iter().collect::<Vec<_>>(), expected);
    }
}
