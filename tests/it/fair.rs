//! Fair locks: the order among programs.

#![allow(clippy::print_stdout, reason = "the figures of a run")]

mod faults;
mod fenced;
mod game;
mod hand_offs;
mod storms;

use crate::prelude::*;
use game::{Game, MakeMutex, Turn, overtakes};

const FENCED_KEY: &str = "quorumlock-fence:k";
/// How long programs compete at a stretch, in seconds. Children have an alarm.
const LONGEST_GAME: u64 = 20;

fn fair(client: &Redlock) -> Mutex {
    long_lock(client, "k").fair()
}

/// How many entries a server has, for the lock and for the one that is fenced as well.
fn places(server: &Server) -> usize {
    count(server, "k") + count(server, FENCED_KEY)
}

/// Waits until each server has so many.
#[track_caller]
fn has_places(servers: &[Server], expected: usize) {
    assert_soon!(
        servers.all(|server| places(server) == expected),
        "not {expected} entries"
    );
}

/// Lets calls begin to wait one after the other, each when the one before it has its entry on all
/// nodes, and then releases the lock. Returns the order in which they acquired it.
fn order<K: Kind + Send + Sync>(
    locks: &[Mutex<K>],
    servers: &[Server],
    held: MutexGuard<K>,
) -> Vec<usize> {
    let order = Guarded::new(Vec::new());
    thread::scope(|scope| {
        for (number, lock) in locks.iter().enumerate() {
            let order = &order;
            scope.spawn(move || {
                let guard = lock.lock().unwrap();
                order.lock().unwrap().push(number);
                drop(guard.unlock());
            });
            has_places(servers, number + 1);
            // A second command stores the ticket where it differs.
            thread::sleep(Duration::from_millis(20));
        }
        drop(held.unlock());
    });
    order.into_inner().unwrap()
}

/// One that is not fair has a ticket as well, once it was refused.
#[test]
fn plain_and_fair_calls_wait_in_one_queue() {
    for is_fenced in [false, true] {
        let servers = Server::several(3).unwrap();
        let clients: Vec<Redlock> = (0..6)
            .map(|_| builder(&servers).place_lease(SOON).build().unwrap())
            .collect();
        let lock = |(number, client): (usize, &Redlock)| {
            let lock = if number % 2 == 0 {
                fair(client)
            } else {
                long_lock(client, "k")
            };
            fenced_if(is_fenced, lock)
        };
        let locks: Vec<Mutex<Any>> = clients.iter().enumerate().map(lock).collect();
        let held = take(&lock((1, &client(&servers))));
        assert_eq!(
            order(&locks, &servers, held),
            [0, 1, 2, 3, 4, 5],
            "fenced: {is_fenced}"
        );
        no_entry_stays(&servers);
    }
}

/// What a game of programs has come to.
#[derive(Default)]
struct Figures {
    acquisitions: usize,
    settled: usize,
    overtakes: usize,
    /// How many of the turns were had while all programs competed, and the shares of those.
    common: usize,
    least_share: f64,
    most_share: f64,
    longest_wait_ms: f64,
    /// The longest wait, in multiples of as many hand-offs as there are programs.
    longest_of_turns: f64,
    hand_off_us: u64,
}

impl Figures {
    /// The figures of the programs with the first numbers.
    fn of(all: &[Turn], programs: usize, held: Duration) -> Figures {
        let own = || all.iter().filter(|turn| turn.program < programs);
        // A program begins and ends when the machine lets it.
        let times = |program| {
            own()
                .filter(move |turn| turn.program == program)
                .map(|turn| turn.had)
        };
        let first = (0..programs)
            .filter_map(|program| times(program).min())
            .max();
        let last = (0..programs)
            .filter_map(|program| times(program).max())
            .min();
        let first = first.unwrap_or(0);
        let last = last.unwrap_or(0);
        let shares = (0..programs).map(|program| {
            times(program)
                .filter(|had| (first..=last).contains(had))
                .count()
        });
        let shares: Vec<usize> = shares.collect();
        let common = shares.iter().sum::<usize>();
        let mean = common as f64 / programs as f64;
        let mut gaps: Vec<u64> = all
            .windows(2)
            .map(|two| two[1].had.saturating_sub(two[0].released))
            .collect();
        gaps.sort_unstable();
        let longest = own().map(|turn| turn.had - turn.begun).max().unwrap();
        let turn = held.as_nanos() as u64 + gaps[gaps.len() / 2];
        Figures {
            acquisitions: own().count(),
            settled: own().filter(|turn| turn.settled.is_some()).count(),
            overtakes: overtakes(all).len(),
            common,
            least_share: *shares.iter().min().unwrap() as f64 / mean,
            most_share: *shares.iter().max().unwrap() as f64 / mean,
            longest_wait_ms: longest as f64 / 1e6,
            longest_of_turns: longest as f64 / (programs as u64 * turn) as f64,
            hand_off_us: gaps[gaps.len() / 2] / 1000,
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures {
            acquisitions,
            settled,
            overtakes,
            least_share,
            most_share,
            ..
        } = self;
        let Figures {
            longest_wait_ms,
            longest_of_turns,
            hand_off_us,
            ..
        } = self;
        write!(
            f,
            "{acquisitions} acquisitions, {settled} of them settled, {overtakes} overtakes, shares {least_share:.3} to \
             {most_share:.3} of the mean, longest wait {longest_wait_ms:.1} ms, {longest_of_turns:.2} of the time in \
             which all have a turn, hand-off of {hand_off_us} µs (median)"
        )
    }
}

/// How many commands clients have sent to a server: the rest is what scripts run, and what asks for
/// this.
fn commands(server: &Server, is_fair: bool) -> u64 {
    let sent: &[&str] = if is_fair {
        &[]
    } else {
        &["set", "pttl", "getrange"]
    };
    ["eval", "evalsha", "subscribe", "unsubscribe"]
        .iter()
        .chain(sent)
        .map(|command| calls(server, command))
        .sum()
}

/// Lets programs compete for a lock that is fair or not, where no node fails.
fn calm(servers: &[Server], programs: usize, game: Game, is_fair: bool) -> (Vec<Turn>, Figures) {
    // One that is not fair has a ticket, but for its first attempt, unless it polls.
    let builder = builder(servers).release_notifications(is_fair);
    let mutex: MakeMutex = if is_fair {
        fair
    } else {
        |client| long_lock(client, "k")
    };
    let all = || {
        servers
            .iter()
            .map(|server| commands(server, is_fair))
            .sum::<u64>()
    };
    let before = all();
    let turns = game.play(
        &vec![builder; programs],
        &servers[0].directory().join("turns"),
        mutex,
        || {},
    );
    let sent = (all() - before) as f64;
    let figures = Figures::of(&turns, programs, game.held);
    let commands = sent / turns.len() as f64 / servers.len() as f64;
    println!(
        "{commands:.2} commands an acquisition and node, {} a second",
        turns.len() as u64 / game.lasts.as_secs()
    );
    (turns, figures)
}

#[test]
fn no_settled_waiter_is_overtaken_and_shares_are_equal() {
    alone(|| {
        const PROGRAMS: usize = 8;
        let servers = Server::several(3).unwrap();
        let mut seconds = storm::number("QUORUMLOCK_FAIR_SECONDS").unwrap_or(2);
        let held = Duration::from_millis(1);
        let mut total = 0;
        // No machine pauses for so long that a challenge is made.
        let game = |seconds| Game {
            quorum: 2,
            threads: 4,
            held,
            lasts: Duration::from_secs(seconds),
            place_lease: SOON,
        };
        while seconds > 0 {
            let lasts = seconds.min(LONGEST_GAME);
            seconds -= lasts;
            // The machine may pause between an attempt and the next one, and nothing shows that
            // outside.
            let figures = (0..3).map(|_| calm(&servers, PROGRAMS, game(lasts), true).1);
            let figures = figures.inspect(|figures| println!("{figures}"));
            let is_good = |figures: &Figures| {
                let slack = 2.0 * PROGRAMS as f64 / figures.common as f64 + 0.02;
                let is_equal = figures.most_share - figures.least_share <= slack;
                assert!(
                    figures.common * 2 > figures.acquisitions,
                    "they did not compete for most of the time"
                );
                assert!(
                    figures.settled * 2 > figures.acquisitions,
                    "nothing is judged"
                );
                figures.overtakes == 0 && is_equal
            };
            let Some(figures) = figures.into_iter().find(is_good) else {
                panic!("three times")
            };
            total += figures.acquisitions;
        }
        println!("{total} acquisitions in all");
        // The judge sees overtakes where there are some.
        let (turns, figures) = calm(&servers, PROGRAMS, game(1), false);
        println!("plain: {figures}");
        assert!(!overtakes(&turns).is_empty());
    });
}

#[test]
fn a_lock_that_is_free_takes_one_round_and_no_entry() {
    let (servers, client) = deployment(3);
    let mutex = fair(&client);
    drop(mutex.lock().unwrap().unlock());
    let scripts = || servers.iter().map(scripts_run).sum::<u64>();
    let before = scripts();
    for _ in 0..10 {
        assert!(take(&mutex).unlock().is_ok());
        assert!(mutex.lock().unwrap().unlock().is_ok());
    }
    assert_soon!(
        scripts() - before == 2 * 2 * 10 * 3,
        "{} scripts",
        scripts() - before
    );
    no_entry_stays(&servers);
}

#[test]
fn a_free_lock_goes_to_the_one_that_waits_while_that_is_subscribed() {
    const OTHER: &str = "00000000000000ab";
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).place_lease(SOON * 60).build().unwrap();
    let strangers: Vec<Stranger> = servers.each(|server| Stranger::on_channel_of(server, OTHER));
    servers
        .iter()
        .for_each(|server| forge(server, "k", OTHER, "7"));
    assert!(is_held(&fair(&client)), "another one is first");
    assert!(
        servers.all(|server| entries(server, "k").len() == 1),
        "a call that does not wait has no entry"
    );
    assert!(
        take(&long_lock(&client, "k")).unlock().is_ok(),
        "the first attempt of a plain client does not queue up"
    );
    drop(strangers);
    // A server counts the receivers of a closed connection until it has read that it is closed.
    has_channels(&servers, 0);
    drop(wait_for(&fair(&client)));
    no_entry_stays(&servers);
}

#[test]
fn the_event_of_an_acquisition_has_the_position() {
    let servers = Server::several(3).unwrap();
    let seen = Seen::nothing();
    let position = picked!(Event::Acquired { position, .. } => *position);
    let clients =
        [(); 2].map(|()| client_with(&servers, |builder| builder.observer(seen.by(position))));
    let locks = clients.each_ref().map(fair);
    order(&locks, &servers, take(&fair(&client(&servers))));
    unlock(take(&locks[0]));
    assert_eq!(seen.all(), [Some(1), Some(2), None]);
}

#[test]
fn what_a_fair_lock_cannot_do_without_is_an_error() {
    let node = EmbeddedNode::builder().without_scripts().start().unwrap();
    let error = failure(&fair(&plain_client([node.url()])));
    assert_eq!(error.causes()[0].cause(), Cause::NoScripts);
    let node = EmbeddedNode::start().unwrap();
    let silent = client_at([node.url()], |builder| builder.release_notifications(false));
    for lock in [fair(&silent).erase(), fair(&silent).fenced().erase()] {
        let errors = [
            lock.try_lock().map(drop),
            lock.lock().map(drop),
            lock.lock_timeout(SOON).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            shows(&error, "release_notifications(false)");
        }
    }
    assert!(take(&long_lock(&silent, "k")).unlock().is_ok());
}

#[test]
fn names_of_queues_are_no_names_of_locks() {
    let client = plain_client(["redis://127.0.0.1:1"]);
    let of_queue = client.mutex("quorumlock-queue:k");
    fails(of_queue.try_lock(), ErrorKind::Config);
    let fair = client.mutex("k").fair();
    fails(fair.try_lock(), ErrorKind::Unavailable);
    fails(fair.fenced().try_lock(), ErrorKind::Unavailable);
}
