//! How much the sections measure, and on which cores.

use crate::comparison::Plan;
use crate::machine::Cores;
use std::time::Duration;

/// The settings of all sections.
pub(crate) struct Setting {
    pub(crate) cores: Cores,
    pub(crate) quick: bool,
}

impl Setting {
    /// How much is measured of one thread, unless a section needs more.
    pub(crate) fn plan(&self) -> Plan {
        self.unless_quick(Plan {
            rounds: 9,
            turns: 12,
            operations: 50,
        })
    }

    /// This plan, or one that shows that the section runs.
    pub(crate) fn unless_quick(&self, plan: Plan) -> Plan {
        let quick = Plan {
            rounds: 2,
            turns: 2,
            operations: 25,
        };
        self.choose(plan, quick)
    }

    /// Rounds, and turns in each.
    pub(crate) fn turns(&self) -> (usize, usize) {
        self.choose((5, 1), (2, 1))
    }

    /// How long a turn of threads is that repeat pairs.
    pub(crate) fn turn_time(&self) -> Duration {
        Duration::from_millis(self.choose(300, 50))
    }

    /// As many as a figure needs, or as few as show that the section runs.
    pub(crate) fn choose<T>(&self, thorough: T, quick: T) -> T {
        if self.quick { quick } else { thorough }
    }
}
