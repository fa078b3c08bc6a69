//! What a call has seen at the head of a node's queue, in two bytes. Times are left out: all are
//! [`NOW`], or `place_lease` before it.

use crate::node::Lock;
use crate::world::NOW;
use quorumlock::algorithm::queue::HeadWatch;
use quorumlock::algorithm::time::Timestamp;

/// A [`HeadWatch`], or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Watch(u16);

impl Watch {
    pub(crate) fn of(watch: Option<HeadWatch<u8, Lock>>) -> Watch {
        watch.map_or(
            Watch(0),
            |HeadWatch {
                 head,
                 since,
                 holder,
                 is_passed,
             }| {
                let holder: u16 = match holder.unwrap_or_default() {
                    Lock::Free => 0,
                    Lock::Newcomer => 1,
                    Lock::Late => 2,
                    Lock::Leaked => 3,
                    Lock::Call(c) => 4 + u16::from(c),
                };
                let flags = u16::from(is_passed) << 3 | u16::from(since < NOW) << 8;
                Watch(u16::from(head + 1) | flags | holder << 4)
            },
        )
    }

    pub(crate) fn get(self) -> Option<HeadWatch<u8, Lock>> {
        let holder = match self.0 >> 4 & 15 {
            0 => None,
            1 => Some(Lock::Newcomer),
            2 => Some(Lock::Late),
            3 => Some(Lock::Leaked),
            call => Some(Lock::Call((call - 4) as u8)),
        };
        let since = if self.0 & 256 == 0 {
            NOW
        } else {
            Timestamp::ORIGIN
        };
        (self.0 != 0).then(|| HeadWatch {
            head: (self.0 & 7) as u8 - 1,
            since,
            holder,
            is_passed: self.0 & 8 != 0,
        })
    }

    /// `place_lease` passes.
    pub(crate) fn aged(self) -> Watch {
        Watch::of(self.get().map(|watch| HeadWatch {
            since: Timestamp::ORIGIN,
            ..watch
        }))
    }
}
