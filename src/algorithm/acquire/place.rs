//! Until when a waiter leaves the lock to those in front of it.
//!
//! Each announced release begins the waiter's delay anew. Where the lock passes from hand to hand, its turn comes by
//! itself. If fewer leave than should, the waiter asks in between: twice the time is enough in which all would have had
//! the lock, at the pace of those that have had it.

use crate::algorithm::time::Timestamp;
use crate::algorithm::turns::SHORT_DELAY;

/// The place of a waiter since it last asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    since: Timestamp,
    /// How many were in front then, and are now.
    first: u8,
    in_front: u8,
    /// When to ask at the latest.
    latest: Timestamp,
}

impl Place {
    /// The place behind so many.
    fn begin(in_front: u8, now: Timestamp) -> Place {
        let latest = now.after(SHORT_DELAY * 2 * u32::from(in_front));
        Place { since: now, first: in_front, in_front, latest }
    }

    /// A release was announced, with so many in front now. Gives when to ask at the latest.
    pub(super) fn announced(place: &mut Option<Place>, in_front: u8, now: Timestamp) -> Timestamp {
        let place = place.get_or_insert_with(|| Place::begin(in_front, now));
        if in_front > place.in_front {
            *place = Place::begin(in_front, now);
        } else if in_front < place.in_front {
            let pace = now.since(place.since) / u32::from(place.first - in_front);
            place.latest = place.since.after(pace.max(SHORT_DELAY) * 2 * u32::from(place.first));
            place.in_front = in_front;
        }
        place.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    #[test]
    fn a_waiter_asks_in_between_when_those_in_front_stay() {
        let mut place = None;
        let mut latest = |in_front, now| Place::announced(&mut place, in_front, at(now));
        assert_eq!([latest(10, 100), latest(10, 130)], [at(140), at(140)], "none has left");
        assert_eq!(latest(9, 110), at(300), "10 ms each, and twice that for all ten");
        assert_eq!([latest(5, 150), latest(5, 900)], [at(300), at(300)]);
        assert_eq!(latest(4, 160), at(300));
        assert_eq!(latest(2, 161), at(100).after(Duration::from_micros(7_625) * 20), "quicker");
        assert_eq!(latest(20, 170), at(250), "others are known of");
    }
}
