//! Fair locks in storms: programs queue up, over and over, while waiters are killed, nodes hang or
//! forget what they have, and the network falls apart.
//!
//! What is judged is what the programs write down, by the one clock of the machine: no two have the
//! lock at once, and none that begins when another one has its ticket on a quorum of nodes acquires
//! it before that one.
//!
//! The runs are short by default. `QUORUMLOCK_FAIR_STORM_SECONDS` makes them longer.

use super::game::{Game, Turn};
use super::*;
use crate::storm::now;

const PROGRAMS: usize = 8;
const SERVERS: usize = 5;
const HELD: Duration = Duration::from_millis(1);
/// What a lock costs whose holder was killed, or has released it on the other side of a partition.
const TTL: Duration = Duration::from_millis(500);
/// What a challenge costs, or a call that was not told.
const PLACE_LEASE: Duration = Duration::from_secs(1);
/// How late a thread may be.
const LATE: Duration = Duration::from_millis(300);
const WAYS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

/// Plays games for as long as the variable sets, each up to three times: the machine may pause. The
/// parameter is how long a game lasts, and the result whether it was a good one.
fn for_a_while(default: u64, mut is_good: impl FnMut(u64) -> bool) {
    let mut seconds = storm::number("QUORUMLOCK_FAIR_STORM_SECONDS").unwrap_or(default);
    while seconds > 0 {
        let lasts = seconds.min(LONGEST_GAME);
        seconds -= lasts;
        assert!((0..3).any(|_| is_good(lasts)), "three times");
    }
}

fn game(seconds: u64) -> Game {
    Game {
        quorum: SERVERS / 2 + 1,
        threads: 1,
        held: HELD,
        lasts: Duration::from_secs(seconds),
        place_lease: PLACE_LEASE,
    }
}

fn fair(client: &Redlock) -> Mutex {
    client.mutex("k").ttl(TTL).fair()
}

fn turns_of(servers: &[Server]) -> PathBuf {
    servers[0].directory().join("turns")
}

/// What a game has come to.
fn figures(turns: &[Turn]) -> Figures {
    let figures = Figures::of(turns, PROGRAMS, HELD);
    println!("{figures}");
    figures
}

/// Whether most calls of a game were settled, so that they could be judged, and no more of them
/// overtaken than that.
fn are_in_order(figures: &Figures, overtakes: usize) -> bool {
    figures.settled * 2 > figures.acquisitions && figures.overtakes <= overtakes
}

#[test]
fn the_order_stays_while_one_node_hangs_and_another_one_forgets() {
    alone(|| {
        let mut servers = Server::several(SERVERS).unwrap();
        // A node that was restarted counts again soon.
        let builder = builder(&servers).ttl(TTL).max_ttl(TTL);
        let directory = turns_of(&servers);
        let mut hung = 0;
        for_a_while(2, |seconds| {
            let game = game(seconds);
            let turns = game.play(&vec![builder.clone(); PROGRAMS], &directory, fair, || {
                let begun = Instant::now();
                while begun.elapsed() + PLACE_LEASE < game.lasts {
                    servers[hung].pause().unwrap();
                    let lost = &mut servers[(hung + 2) % SERVERS];
                    lost.restart().or_else(|_| lost.wait_ready()).unwrap();
                    thread::sleep(TTL / 2);
                    servers[hung].resume().unwrap();
                    // The node counts again after a time to live. Those that wait store their
                    // tickets there again when they are subscribed again: before the next one
                    // forgets.
                    thread::sleep(PLACE_LEASE * 2);
                    hung = (hung + 1) % SERVERS;
                }
            });
            no_entry_stays(&servers);
            let figures = figures(&turns);
            let hand_off = PLACE_LEASE / 3;
            let is_prompt = Duration::from_micros(figures.hand_off_us) < hand_off;
            let longest_wait = (hand_off * PROGRAMS as u32).as_secs_f64() * 1000.0;
            are_in_order(&figures, 0) && is_prompt && figures.longest_wait_ms < longest_wait
        });
    });
}

/// Proxies before some servers, in a process of their own, since this one must not have threads
/// when it forks. It cuts them off and connects them again when it is let continue.
fn proxies(servers: &[Server]) -> (Child, Vec<String>) {
    let mut child = Child::fork(End::Vanish, |parent| {
        let proxies = Proxy::before_each(servers);
        proxies
            .iter()
            .for_each(|proxy| parent.send(&format!("{} ", proxy.url())));
        parent.send("\n");
        parent.wait();
        proxies
            .iter()
            .for_each(|proxy| WAYS.into_iter().for_each(|way| proxy.stall(way)));
        parent.wait();
        proxies
            .iter()
            .for_each(|proxy| WAYS.into_iter().for_each(|way| proxy.flow(way)));
        parent.wait();
    });
    let text: String = std::iter::repeat_with(|| child.receive())
        .take_while(|&letter| letter != '\n')
        .collect();
    (child, text.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn of_two_sides_of_a_partition_the_larger_one_goes_on_in_order() {
    alone(|| {
        let servers = Server::several(SERVERS).unwrap();
        for_a_while(4, |seconds| {
            let game = game(seconds);
            let (mut proxies, urls) = proxies(&servers);
            let side = |nodes: Range<usize>| {
                let url = |node| {
                    if nodes.contains(&node) {
                        servers[node].url()
                    } else {
                        urls[node].clone()
                    }
                };
                let builder = Redlock::builder()
                    .nodes((0..SERVERS).map(url))
                    .ttl(TTL)
                    .max_ttl(TTL);
                vec![
                    builder
                        .node_timeout(Duration::from_millis(100))
                        .unavailable_after(SOON * 6);
                    PROGRAMS / 2
                ]
            };
            let mut cut = 0..0;
            let turns = game.play(
                &[side(0..2), side(2..SERVERS)].concat(),
                &turns_of(&servers),
                fair,
                || {
                    thread::sleep(game.lasts / 8);
                    proxies.let_continue();
                    cut.start = now() + LATE.as_nanos() as u64;
                    thread::sleep(game.lasts * 5 / 8);
                    cut.end = now();
                    proxies.let_continue();
                },
            );
            no_entry_stays(&servers);
            let count = |is_small: bool, time: Range<u64>| {
                let turns = turns.iter().filter(|turn| time.contains(&turn.had));
                turns
                    .filter(|turn| (turn.program < PROGRAMS / 2) == is_small)
                    .count()
            };
            let [before, cut, after] = [0..cut.start, cut.clone(), cut.end..u64::MAX]
                .map(|time| [true, false].map(|is_small| count(is_small, time.clone())));
            println!(
                "turns of the two sides before, during and after the partition: {before:?}, {cut:?}, {after:?}"
            );
            let pauses = turns
                .windows(2)
                .map(|two| Duration::from_nanos(two[1].had - two[0].released));
            let longest_pause = pauses.max().unwrap_or_default();
            println!("longest time without a turn: {longest_pause:?}");
            let go_on = cut[1] > 0 && after[0] > 0;
            // Those that are cut off are challenged, and the lock of one that has released it
            // on its side only ends. All that are behind those store their tickets again after
            // a challenge, and not at once. If none of the larger side was next, each asks
            // after the place lease, and sees then which entry it challenges after another one.
            are_in_order(&figures(&turns), PROGRAMS)
                && go_on
                && cut[0] == 0
                && longest_pause < PLACE_LEASE * 2 + LATE
        });
    });
}
