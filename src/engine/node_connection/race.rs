//! The addresses of one node, and which of them is connected to: one after the other, the next
//! without waiting for the one before to give up (RFC 8305).
//!
//! ```text
//!   begin ──► first address ── refused ──► next address, at once
//!                  │  └─────── no answer for a while ──► next address beside it
//!                  └─────────► made: the others are dropped, and this address is the first from now on
//! ```
//!
//! How to drive it: [`begin`](Race::begin), then [`advance`](Race::advance) whenever the newest
//! connection is ready or [`due`](Race::due) has come, until a connection is made or all have
//! failed; [`stop`](Race::stop) when it is abandoned.

use crate::algorithm::time::Timestamp;
use crate::fault::{Cause, Fault, Phase};
use crate::os::stream::{self, Stream};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long an address may keep the next one waiting at most: RFC 8305's Connection Attempt Delay.
const LONGEST_HEADSTART: Duration = Duration::from_millis(250);
/// Most connections that are being made at once: a name that leads to hundreds of addresses which
/// all hang takes no descriptors from the rest of the program. Beyond that, the oldest is given up
/// for the next: it had all of its time.
const MOST_AT_ONCE: usize = 8;
/// How often the older ones of several connections are checked. The newest one is polled.
const LOOK: Duration = Duration::from_millis(5);

/// Where a connection may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A connection that is being made.
pub(super) trait Attempt: Sized {
    /// Begins to connect.
    fn begin(place: &Place) -> io::Result<Self>;
    /// Whether it is made, or has failed.
    fn is_settled(&self) -> bool;
    /// Which of the two.
    fn outcome(&self) -> io::Result<()>;
}

impl Attempt for Stream {
    fn begin(place: &Place) -> io::Result<Stream> {
        match place {
            Place::Tcp(address) => Stream::connect_tcp(*address),
            Place::Unix(path) => Stream::connect_unix(path),
        }
    }

    fn is_settled(&self) -> bool {
        Stream::is_settled(self)
    }

    fn outcome(&self) -> io::Result<()> {
        self.finish_connecting()
    }
}

/// A node's addresses, and the connections that are being made to them.
pub(super) struct Race<S = Stream> {
    /// What the name was last found to lead to. The first is tried first.
    places: VecDeque<Place>,
    untried: VecDeque<Place>,
    /// The newest last.
    attempts: Vec<(Place, Arc<S>)>,
    headstart: Duration,
    next_at: Timestamp,
}

/// How far a race has come.
pub(super) enum Progress<S = Stream> {
    Made(Arc<S>),
    /// This is the newest connection, to be polled.
    Making(Arc<S>),
}

impl<S: Attempt> Race<S> {
    pub(super) fn new() -> Race<S> {
        Race {
            places: VecDeque::new(),
            untried: VecDeque::new(),
            attempts: Vec::new(),
            headstart: LONGEST_HEADSTART,
            next_at: Timestamp::NEVER,
        }
    }

    /// The address to be tried first, if the name has been looked up.
    pub(super) fn first(&self) -> Option<&Place> {
        self.places.front()
    }

    /// Takes what a name leads to. Places that are known keep their order.
    pub(super) fn learn(&mut self, places: impl IntoIterator<Item = Place>) {
        let found: Vec<Place> = places.into_iter().collect();
        self.places.retain(|known| found.contains(known));
        for place in found {
            if !self.places.contains(&place) {
                self.places.push_back(place);
            }
        }
    }

    /// Begins to connect to the addresses that are known. They share `time`; if they are many, each
    /// has so long.
    ///
    /// # Errors
    /// No connection can be begun.
    pub(super) fn begin(&mut self, time: Duration, now: Timestamp) -> Result<Arc<S>, Fault> {
        self.untried = self.places.clone();
        let share = time / self.untried.len().clamp(1, MOST_AT_ONCE) as u32;
        self.headstart = share.min(LONGEST_HEADSTART);
        self.start_next(now, Fault::new(Phase::Resolve, Cause::UnknownHost))
    }

    /// Goes on as far as that is possible without waiting.
    ///
    /// # Errors
    /// All addresses have failed, the last one so.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<Progress<S>, Fault> {
        loop {
            let settled = self
                .attempts
                .iter()
                .position(|(_, attempt)| attempt.is_settled());
            let fault = match settled.map(|index| self.attempts.remove(index)) {
                Some((place, attempt)) => match attempt.outcome() {
                    Ok(()) => {
                        self.stop();
                        self.places.retain(|other| *other != place);
                        self.places.push_front(place);
                        return Ok(Progress::Made(attempt));
                    }
                    Err(error) => failed(&error),
                },
                None if now >= self.next_at && !self.untried.is_empty() => {
                    Fault::new(Phase::Connect, Cause::TimedOut)
                }
                None => {
                    let newest = self.attempts.last().map(|(_, attempt)| Arc::clone(attempt));
                    return newest
                        .map(Progress::Making)
                        .ok_or(Fault::new(Phase::Connect, Cause::TimedOut));
                }
            };
            self.start_next(now, fault)?;
        }
    }

    /// When to [`advance`](Race::advance) though nothing is ready.
    pub(super) fn due(&self, now: Timestamp) -> Timestamp {
        let next_at = if self.untried.is_empty() {
            Timestamp::NEVER
        } else {
            self.next_at
        };
        if self.attempts.len() > 1 {
            next_at.min(now.after(LOOK))
        } else {
            next_at
        }
    }

    /// Drops the connections that are being made.
    pub(super) fn stop(&mut self) {
        self.attempts.clear();
        self.untried.clear();
    }

    /// The first address led to a server that cannot be used: another is tried next time.
    pub(super) fn skip_first(&mut self) {
        if let Some(first) = self.places.pop_front() {
            self.places.push_back(first);
        }
    }

    /// Begins to connect to the next address that it can be begun with, and returns the newest
    /// connection.
    ///
    /// # Errors
    /// There is none, and `fault` or what happened after it is the reason.
    fn start_next(&mut self, now: Timestamp, mut fault: Fault) -> Result<Arc<S>, Fault> {
        while let Some(place) = self.untried.pop_front() {
            match S::begin(&place) {
                Ok(attempt) => {
                    if self.attempts.len() == MOST_AT_ONCE {
                        self.attempts.remove(0);
                    }
                    self.attempts.push((place, Arc::new(attempt)));
                    self.next_at = now.after(self.headstart);
                    break;
                }
                Err(error) => fault = failed(&error),
            }
        }
        self.attempts
            .last()
            .map(|(_, attempt)| Arc::clone(attempt))
            .ok_or(fault)
    }
}

/// The fault of a connection that could not be made.
pub(super) fn failed(error: &io::Error) -> Fault {
    Fault::new(Phase::Connect, stream::cause_of(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::io::ErrorKind;

    thread_local! {
        /// The ports that were tried, and what becomes of a connection to each.
        static TRIED: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
        static HANGING: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
    }

    /// By its port: below 10 it is made, below 20 refused, below 30 not even begun, otherwise it
    /// hangs.
    struct Fake(u16);

    impl Attempt for Fake {
        fn begin(place: &Place) -> io::Result<Fake> {
            let Place::Tcp(address) = place else {
                panic!("{place:?}")
            };
            TRIED.with_borrow_mut(|tried| tried.push(address.port()));
            if (20..30).contains(&address.port()) {
                return Err(ErrorKind::NetworkUnreachable.into());
            }
            Ok(Fake(address.port()))
        }

        fn is_settled(&self) -> bool {
            self.0 < 20 && !HANGING.with_borrow(|hanging| hanging.contains(&self.0))
        }

        fn outcome(&self) -> io::Result<()> {
            if self.0 < 10 {
                Ok(())
            } else {
                Err(ErrorKind::ConnectionRefused.into())
            }
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    fn place(port: u16) -> Place {
        Place::Tcp(([127, 0, 0, 1], port).into())
    }

    /// A race to these ports in 100 ms, as far as it gets at once.
    fn race(ports: &[u16]) -> (Race<Fake>, Result<Option<u16>, Cause>) {
        TRIED.with_borrow_mut(Vec::clear);
        let mut race = Race::new();
        race.learn(ports.iter().copied().map(place));
        let begun = race.begin(Duration::from_millis(100), at(0));
        let result = begun
            .map_err(|fault| fault.cause)
            .and_then(|_| made(&mut race, 0));
        (race, result)
    }

    /// The port that a connection is made to, if one is.
    fn made(race: &mut Race<Fake>, millis: u64) -> Result<Option<u16>, Cause> {
        match race.advance(at(millis)) {
            Ok(Progress::Made(attempt)) => Ok(Some(attempt.0)),
            Ok(Progress::Making(_)) => Ok(None),
            Err(fault) => Err(fault.cause),
        }
    }

    fn tried() -> Vec<u16> {
        TRIED.with_borrow(Clone::clone)
    }

    #[test]
    fn an_address_that_fails_is_followed_by_the_next_at_once() {
        for (ports, result, expected) in [
            (&[1, 2][..], Ok(Some(1)), &[1][..]),
            (&[10, 1], Ok(Some(1)), &[10, 1]),
            (&[20, 11, 1, 2], Ok(Some(1)), &[20, 11, 1]),
            (&[10, 20], Err(Cause::Unreachable), &[10, 20]),
            (&[20, 10], Err(Cause::Refused), &[20, 10]),
            (&[], Err(Cause::UnknownHost), &[]),
        ] {
            assert_eq!(race(ports).1, result, "{ports:?}");
            assert_eq!(tried(), expected);
        }
    }

    #[test]
    fn an_address_that_hangs_keeps_the_next_waiting_for_its_share_of_the_time() {
        let (mut race, result) = race(&[30, 31, 10, 1]);
        assert_eq!((result, race.due(at(0))), (Ok(None), at(25)));
        assert_eq!((made(&mut race, 24), tried()), (Ok(None), vec![30]));
        assert_eq!((made(&mut race, 25), tried()), (Ok(None), vec![30, 31]));
        assert_eq!(race.due(at(26)), at(31), "the older one is not polled");
        assert_eq!(
            (made(&mut race, 50), tried()),
            (Ok(Some(1)), vec![30, 31, 10, 1])
        );
    }

    #[test]
    fn of_many_addresses_that_hang_a_few_are_tried_at_once_and_each_has_its_time() {
        let mut ports: Vec<u16> = (30..630).collect();
        ports[100] = 1;
        let (mut race, mut result) = race(&ports);
        let mut now = 0;
        let mut most = 0;
        while result == Ok(None) && now < 10_000 {
            now += 1;
            result = made(&mut race, now);
            most = most.max(race.attempts.len());
        }
        assert_eq!(
            (result, tried().len(), most),
            (Ok(Some(1)), 101, MOST_AT_ONCE)
        );
        // Eight at a time, for 100 ms each.
        assert!((1200..=1300).contains(&now), "{now}");
    }

    #[test]
    fn an_address_that_is_slow_wins_all_the_same_and_is_the_first_next_time() {
        HANGING.with_borrow_mut(|hanging| *hanging = vec![5]);
        let (mut race, result) = race(&[6, 5, 30].map(|port| if port == 6 { 40 } else { port }));
        assert_eq!(result, Ok(None));
        assert_eq!(made(&mut race, 34), Ok(None));
        assert_eq!((made(&mut race, 68), tried()), (Ok(None), vec![40, 5, 30]));
        assert_eq!(race.due(at(70)), at(75));
        HANGING.with_borrow_mut(Vec::clear);
        assert_eq!(made(&mut race, 75), Ok(Some(5)));
        assert_eq!(
            (race.first(), race.due(at(76))),
            (Some(&place(5)), Timestamp::NEVER)
        );
        race.begin(Duration::from_millis(100), at(80)).unwrap();
        assert_eq!(tried(), [40, 5, 30, 5]);
        race.skip_first();
        assert_eq!(race.first(), Some(&place(40)));
    }
}
