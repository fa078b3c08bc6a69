//! The order of calls: which entries are kept while later calls begin and win.

use crate::call::Phase;
use crate::node::{CALLS, Kind, bit};
use crate::search::{Outcome, Won, Wrong, name};
use crate::world::{Call, Life, World};

impl World {
    /// Notes that the entry of a call is kept, if it has its ticket here.
    pub(crate) fn keep(&mut self, earlier: usize, later: usize, n: usize) {
        let call = self.calls[earlier];
        let is_waiting =
            matches!(call.queued.phase, Phase::Asking | Phase::Waiting) && call.life != Life::Idle;
        let node = &self.nodes[n].node;
        let is_stored =
            call.queued.ticket == Some(node.scores[earlier].into()) && node.scores[earlier] > 0;
        if is_waiting && (is_stored || node.granted_away & bit(earlier) != 0) {
            self.nodes[n].kept |= pair(earlier, later);
        }
    }

    pub(crate) fn forget_removed(&mut self, n: usize) {
        let removed = std::mem::take(&mut self.nodes[n].node.removed);
        for c in (0..CALLS).filter(|&c| removed & bit(c) != 0) {
            self.nodes[n].kept &= !(0..CALLS).fold(0, |pairs, later| pairs | pair(c, later));
        }
    }

    pub(crate) fn forget(&mut self, c: usize) {
        let pairs = (0..CALLS).fold(0, |pairs, other| pairs | pair(c, other) | pair(other, c));
        self.nodes.iter_mut().for_each(|state| state.kept &= !pairs);
    }

    /// No call wins that began while a quorum kept the ticket of an earlier one, and still does.
    pub(crate) fn win(&mut self, c: usize) -> Outcome {
        let holds =
            |other: &Call| other.life == Life::Alive && other.queued.phase == Phase::Holding;
        let holders: Vec<usize> = (0..CALLS)
            .filter(|&other| holds(&self.calls[other]))
            .collect();
        let most = match self.nodes[0].node.kind {
            Kind::Permits(permits) => permits.into(),
            kind @ Kind::ReadWrite(_) if !holders.iter().any(|&holder| kind.writes(holder)) => {
                CALLS
            }
            Kind::Mutex | Kind::ReadWrite(_) => 1,
        };
        if holders.len() > most {
            return Err(Wrong(format!("{} wins beside another one", name(c))));
        }
        if self.nodes[0].node.kind != Kind::Mutex {
            return Ok(Some(Won(format!("{} wins", name(c)), false)));
        }
        for earlier in 0..CALLS {
            let kept = self
                .nodes
                .iter()
                .filter(|state| state.kept & pair(earlier, c) != 0)
                .count();
            if kept >= self.quorum() {
                let message = format!(
                    "{} wins, and began when {} had its entry",
                    name(c),
                    name(earlier)
                );
                return Err(Wrong(message));
            }
        }
        self.forget(c);
        Ok(Some(Won(format!("{} wins", name(c)), false)))
    }
}

fn pair(earlier: usize, later: usize) -> u16 {
    1 << (earlier * CALLS + later)
}
