//! An agenda: many numbered entries, each with its moment, the earliest always at hand.
//!
//! A binary heap that knows where each entry stands, so that an entry can be moved or struck off as cheaply as it was
//! made: in logarithmic time. Nothing stale is left in it, and its memory is kept: an agenda that is no longer than it has
//! been before allocates nothing.

use super::time::LeaseTime;

/// The place of an entry that is not on the agenda.
const NOWHERE: u32 = u32::MAX;

/// Entries in the order of their moments.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    /// Moment and number. Each is no later than the two at twice its place and one or two more.
    entries: Vec<(LeaseTime, u32)>,
    /// By number: the place among the entries.
    places: Vec<u32>,
}

impl Agenda {
    /// The earliest entry; of several, the one with the lowest number.
    pub(super) fn first(&self) -> Option<(LeaseTime, u32)> {
        self.entries.first().copied()
    }

    /// Puts an entry on the agenda, or moves it. Numbers are to be small: there is a place for each below the highest.
    pub(super) fn plan(&mut self, number: u32, at: LeaseTime) {
        let index = number as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
        }
        let place = match self.places[index] {
            NOWHERE => {
                self.entries.push((at, number));
                self.entries.len() - 1
            }
            place => {
                self.entries[place as usize] = (at, number);
                place as usize
            }
        };
        self.settle(place);
    }

    /// Takes an entry off the agenda, if it is on it.
    pub(super) fn strike(&mut self, number: u32) {
        let place = self.places.get(number as usize).copied().unwrap_or(NOWHERE);
        if place == NOWHERE {
            return;
        }
        self.places[number as usize] = NOWHERE;
        self.entries.swap_remove(place as usize);
        if (place as usize) < self.entries.len() {
            self.settle(place as usize);
        }
    }

    /// Moves the entry at this place to where it belongs, up or down. All others are in order.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.entries[place] < self.entries[(place - 1) / 2] {
            place = self.swap(place, (place - 1) / 2);
        }
        loop {
            let below = 2 * place + 1..(2 * place + 3).min(self.entries.len());
            let Some(earlier) = below.min_by_key(|&place| self.entries[place]) else { break };
            if self.entries[place] <= self.entries[earlier] {
                break;
            }
            place = self.swap(place, earlier);
        }
        self.places[self.entries[place].1 as usize] = place as u32;
    }

    /// Moves an entry to another place, and the one that is there to the entry's.
    fn swap(&mut self, place: usize, other: usize) -> usize {
        self.entries.swap(place, other);
        self.places[self.entries[place].1 as usize] = place as u32;
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn entries_come_in_order_however_they_were_moved() {
        let mut agenda = Agenda::default();
        let at = LeaseTime::from_nanos;
        for (number, moment) in [(3, 30), (1, 10), (2, 20), (0, 20)] {
            agenda.plan(number, at(moment));
        }
        agenda.plan(3, at(5));
        agenda.strike(1);
        agenda.strike(1);
        agenda.strike(99);
        let mut order = Vec::new();
        while let Some((moment, number)) = agenda.first() {
            order.push((moment.as_nanos(), number));
            agenda.strike(number);
        }
        assert_eq!(order, [(5, 3), (20, 0), (20, 2)]);
    }

    /// Whatever is planned, moved and struck off, the first entry is the first, and each knows its place.
    #[test]
    fn the_first_is_the_first() {
        let (mut agenda, mut model) = (Agenda::default(), BTreeMap::new());
        // Multiples of an odd number near 2^64 / 1.618 are spread over all of the range.
        for step in (0..50_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let (number, moment, choice) = ((step >> 40) as u32 % 20, (step >> 20) % 9, (step >> 50) % 10);
            if choice < 6 {
                agenda.plan(number, LeaseTime::from_nanos(moment));
                model.insert(number, LeaseTime::from_nanos(moment));
            } else {
                agenda.strike(number);
                model.remove(&number);
            }
            let first = model.iter().map(|(&number, &moment)| (moment, number)).min();
            assert_eq!(agenda.first(), first);
            assert_eq!(agenda.entries.len(), model.len());
            for (place, &(_, number)) in agenda.entries.iter().enumerate() {
                assert_eq!(agenda.places[number as usize] as usize, place);
            }
        }
    }
}
