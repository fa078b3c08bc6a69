//! The steps of an acquisition, each from the counts of its attempts: mostly as stories, of which
//! each line has what happens, and what the call wants then.

use super::super::backoff::Backoff;
use super::super::fence::{Fences, FencingToken};
use super::super::holder::HolderTag;
use super::super::kind::EntryKind;
use super::super::lease::{MAX_TTL, Ttl};
use super::super::queue::{Entry, QueueReply, Setup, Slots, Storage, latest_ticket};
use super::super::{node::NodeId, time::LeaseTime, vote::Vote};
use super::*;
use crate::fault::{Cause, Fault, Phase};

mod deadlines;
mod queued;

const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const CLOCK: u64 = 1_700_000_000_000_000;
/// The clocks have different origins.
const LEASE_ORIGIN: LeaseTime = LeaseTime::from_nanos(7_000_000_000_000);

fn at(millis: u64) -> Timestamp {
    Timestamp::ORIGIN.after(Duration::from_millis(millis))
}

fn clocks(millis: u64) -> Readings {
    Readings {
        steady: at(millis),
        lease: lease_at(millis),
    }
}

fn lease_at(millis: u64) -> LeaseTime {
    LEASE_ORIGIN.after(Duration::from_millis(millis))
}

fn acquire(wait_limit: WaitLimit) -> Acquire {
    let ttl = Ttl::new(Duration::from_secs(1), 0.01, MAX_TTL).unwrap();
    let backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(250));
    let config = AcquireConfig {
        ttl,
        node_timeout: NODE_TIMEOUT,
        wait_limit,
        backoff,
        permanent_fault_limit: Duration::from_secs(1),
        queues: false,
        first_in_turn: None,
    };
    Acquire::new(config, at(0))
}

fn tally(row: &str) -> (Tally, NodeSet) {
    let mut tally = Tally::new(row.len());
    for (index, letter) in row.chars().enumerate() {
        let vote = match letter {
            'g' => Vote::Granted,
            'r' => Vote::Refused,
            's' => Vote::Partial,
            'x' => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
            'p' => Vote::Fault(Fault::new(Phase::Handshake, Cause::Auth)),
            _ => continue,
        };
        tally.record(NodeId::new(index), vote);
    }
    (tally, (0..row.len()).map(NodeId::new).collect())
}

/// Plays a story. What happens is
/// - `0-1 gr_`: the attempt that the call wants begins at 0 and is decided at 1, with a letter for
///   each node;
/// - `0-1 grr 5:2`: the same in turn, where each node that refuses has the call at ticket 5, behind
///   two others; `5:0:a` on a lock that the program `a` of another library holds; or `-`, where
///   these nodes have no queue;
/// - `7`: the call is woken at 7; or `retry 7`, by what ends its delay early;
/// - `turn 0 7`, `next 0 7`, `confirmed 0 7`: the node 0 sends this message;
/// - `enter 7`, into the queues of the lock; `free 7`: the holder's key ends then; or `cancel`.
#[track_caller]
fn plays(machine: &mut Acquire, story: &str) {
    let lines = story.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let (events, expected) = line.split_once(" => ").unwrap();
        for event in events.split("; ") {
            happens(machine, event);
        }
        assert_eq!(wants(machine), expected, "{line}");
    }
}

fn happens(machine: &mut Acquire, event: &str) {
    let time = |millis: &str| {
        let nanos = millis.parse::<f64>().unwrap() * 1e6;
        Duration::from_nanos(nanos.round() as u64)
    };
    let at = |millis: &str| Timestamp::ORIGIN.after(time(millis));
    let node = |index: &str| NodeId::new(index.parse().unwrap());
    match event.split(' ').collect::<Vec<_>>()[..] {
        ["cancel"] => machine.cancelled(),
        ["enter", now] => enter(machine, at(now)),
        ["free", free_at] => machine.set_wait_bounds(WaitBounds {
            free_at: at(free_at),
            ..machine.bounds
        }),
        ["retry", now] => machine.retry_now(at(now)),
        ["turn", from, now] => machine.on_message(node(from), Message::Turn(None), at(now)),
        ["next", from, now] => machine.on_message(node(from), Message::Next, at(now)),
        ["confirmed", from, now] => machine.on_message(node(from), Message::Confirmed, at(now)),
        [now] => machine.woken(at(now)),
        [times, row, ref in_turn @ ..] => {
            let [t0, now] = times
                .split_once('-')
                .map(|(t0, now)| [t0, now])
                .unwrap()
                .map(|it| Readings {
                    steady: at(it),
                    lease: LEASE_ORIGIN.after(time(it)),
                });
            assert_eq!(machine.poll(), Output::Attempt);
            let (tally, reached) = tally(row);
            if let [answer] = in_turn {
                let queue = machine.queue().unwrap();
                queue.ask(t0.steady);
                let round = QueueRound::new(queue.ticket, latest_ticket(CLOCK));
                let round = answered(round, answer, tally.refused());
                machine.answered_in_turn(Box::new(round), tally.granted());
            }
            machine.attempted(t0, &tally, reached, now, u64::MAX);
        }
        _ => panic!("{event}"),
    }
}

fn answered(mut round: QueueRound, answer: &str, refused: NodeSet) -> QueueRound {
    let [ticket, rank, ref holder @ ..] = answer.split(':').collect::<Vec<_>>()[..] else {
        round.on_refusals(refused);
        return round;
    };
    let mut reply = reply(ticket.parse().unwrap(), rank.parse().unwrap());
    if let [holder] = holder {
        reply.is_other_library = true;
        reply.holder = Some(HolderTag::of(holder.as_bytes()));
    }
    refused
        .iter()
        .for_each(|node| round.on_refused(node, reply));
    round
}

/// What the call wants, until something else happens.
fn wants(machine: &mut Acquire) -> String {
    let list = |nodes: NodeSet| {
        nodes
            .iter()
            .map(|node| format!(" {}", node.index()))
            .collect()
    };
    let list = |nodes| -> String { list(nodes) };
    let mut words = String::new();
    loop {
        let output = machine.poll();
        words += &match output {
            Output::Attempt => "attempt".to_owned(),
            Output::Done(Verdict::Acquired(lease)) => {
                format!(
                    "acquired until {}",
                    lease.end().since(LEASE_ORIGIN).as_millis()
                )
            }
            Output::Done(verdict) => format!("{verdict:?}"),
            Output::Enqueue => "enqueue".to_owned(),
            Output::Raise(agreement) => {
                format!(
                    "raise{} to {}",
                    list(agreement.behind()),
                    agreement.fence().get()
                )
            }
            Output::Store(nodes) => format!("store{}, ", list(nodes)),
            Output::Undo(nodes) => format!("undo{}, ", list(nodes)),
            Output::Wait(until) => format!("wait {}", until.as_nanos() as f64 / 1e6),
        };
        if !matches!(output, Output::Store(_) | Output::Undo(_)) {
            return words;
        }
    }
}

/// Attempts of a millisecond, each of which begins when the one before has been waited for: with
/// these rows and replies, and what is wanted before the wait, which gets longer and longer.
#[track_caller]
fn waits_longer_and_longer(machine: &mut Acquire, from: u64, row: &str, undo: &str) {
    let mut now = from;
    for delay in [6, 18, 54, 162, 250, 250] {
        let end = now + 1;
        now = end + delay;
        plays(
            machine,
            &format!(
                "{}-{end} {row} => {undo}wait {now}
                {now} => attempt",
                end - 1
            ),
        );
    }
}

const fn while_available(seconds: u64) -> WaitLimit {
    WaitLimit::WhileAvailable(Duration::from_secs(seconds))
}

fn nodes(indices: &[usize]) -> NodeSet {
    indices.iter().copied().map(NodeId::new).collect()
}

fn entry() -> Entry {
    Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number: 1,
    }
}

fn enter(machine: &mut Acquire, now: Timestamp) {
    assert_eq!(machine.poll(), Output::Enqueue);
    let setup = Setup {
        nodes: 3,
        place_lease: Duration::from_secs(1),
    };
    machine.enter(QueuedCall::new(setup, entry(), now), now);
}

/// The reply of a node that has the call behind so many others on a lock that is held.
fn reply(ticket: u64, rank: u32) -> QueueReply {
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank,
        held: Some(Duration::from_millis(500)),
        holder: Some(HolderTag::of(b"holder")),
        is_other_library: false,
        slots: Slots::default(),
        head: None,
    }
}

/// Attempts every 100 ms, until the call is done. Returns when, and how. The rows of the attempts
/// are `rrx/ggx`, in turn, or `rrx 500 ggx`, another one from a time on.
fn ends(wait_limit: WaitLimit, is_endless: bool, rows: &str) -> (u64, String) {
    let mut machine = acquire(wait_limit);
    machine.set_wait_bounds(WaitBounds {
        is_endless,
        ..WaitBounds::NONE
    });
    let mut rows = rows.split(' ');
    let mut row = rows.next().unwrap();
    let mut next = rows.next();
    for time in (0..100_000_u64).step_by(100) {
        if next.is_some_and(|next| next.parse() == Ok(time)) {
            row = rows.next().unwrap();
            next = rows.next();
        }
        let turns: Vec<&str> = row.split('/').collect();
        let row = turns[time as usize / 100 % turns.len()];
        happens(&mut machine, &format!("{time}-{} {row}", time + 1));
        let mut wanted = wants(&mut machine);
        let mut end = time;
        if wanted.contains("wait") {
            end = time + 100;
            machine.retry_now(at(end));
            wanted = wants(&mut machine);
        }
        if wanted != "attempt" {
            return (end, wanted.rsplit(' ').next().unwrap().to_owned());
        }
    }
    panic!("it goes on for ever")
}

#[test]
fn permanent_faults_that_leave_no_quorum_end_every_wait() {
    let long = WaitLimit::Until(at(50_000));
    for (wait_limit, rows, end) in [
        (long, "ppx", 1000),
        (long, "ppg", 1000),
        (WaitLimit::Once, "ppx", 0),
        (while_available(2), "ppx", 1000),
        (WaitLimit::Until(at(500)), "ppx", 500),
        // Other faults may pass, and so may these when they have passed once.
        (long, "pxx", 50_000),
        (long, "ppx 900 pxx 1000 ppx", 2000),
        (long, "rrx 30000 ppx", 31_000),
    ] {
        let found = ends(wait_limit, false, rows);
        assert_eq!(found, (end, "Unavailable".to_owned()), "{rows}");
    }
}

#[test]
fn permanent_faults_count_from_when_another_call_of_the_client_met_them() {
    let mut machine = acquire(WaitLimit::Until(at(50_000)));
    machine.early_end().was_quorum_impossible(at(0));
    plays(&mut machine, "999-1000 ppx => undo 0 1 2, Unavailable");
}

#[test]
fn a_key_that_never_expires_ends_a_wait_when_it_was_seen_twice() {
    let long = WaitLimit::Until(at(50_000));
    for (wait_limit, is_endless, rows, end, verdict) in [
        (long, true, "rrx", 100, "NoExpiry"),
        (while_available(2), true, "rrx", 100, "NoExpiry"),
        (long, true, "rrx/grx", 100, "NoExpiry"),
        (long, true, "rrx/gxx", 50_000, "Unavailable"),
        (long, false, "rrx", 50_000, "Held"),
        (WaitLimit::Once, true, "rrx", 0, "Held"),
    ] {
        let found = ends(wait_limit, is_endless, rows);
        assert_eq!(found, (end, verdict.to_owned()), "{rows}");
    }
}

#[test]
fn a_quorum_in_time_wins_and_the_lease_counts_from_the_start() {
    plays(
        &mut acquire(WaitLimit::Once),
        "100-140 ggg__ => acquired until 1088",
    );
}

#[test]
fn a_quorum_after_the_lease_has_ended_is_undone() {
    for story in [
        "100-1087 ggr => acquired until 1088",
        "100-1088 ggr => undo 0 1, TooLate",
        "100-5000 ggr => undo 0 1, TooLate",
    ] {
        plays(&mut acquire(WaitLimit::Once), story);
    }
}

/// A wall clock set forward between the attempt's start and its end ends the lease, and neither the
/// wait nor the nodes' time.
#[test]
fn a_wall_clock_set_forward_ends_the_lease_and_not_the_wait() {
    let mut machine = acquire(WaitLimit::Until(at(1000)));
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally("ggg");
    let now = Readings {
        steady: at(1),
        lease: lease_at(988),
    };
    machine.attempted(clocks(0), &tally, reached, now, u64::MAX);
    assert_eq!(wants(&mut machine), "undo 0 1 2, wait 7");
    machine.woken(at(7));
    assert_eq!(machine.attempt_deadline(at(7), false), at(57));
    plays(&mut machine, "7-8 ggg => acquired until 995");
    assert!(!machine.is_lost());
}

#[test]
fn a_loss_is_undone_wherever_it_was_not_definitely_refused() {
    for story in [
        "0-50 grx_r => undo 0 2 3, Held",
        "0-1 rrr => Held",
        // Some keys of a set were set there.
        "0-1 rss => undo 1 2, Held",
    ] {
        plays(&mut acquire(WaitLimit::Once), story);
    }
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(machine.poll(), Output::Attempt);
    machine.attempted(clocks(0), &tally("xxg").0, nodes(&[2]), clocks(1), 0);
    assert_eq!(wants(&mut machine), "undo 2, Unavailable");
}

#[test]
fn while_held_it_waits_longer_and_longer_and_tries_again() {
    let mut machine = acquire(while_available(3));
    waits_longer_and_longer(&mut machine, 0, "rrr", "");
    assert_eq!(machine.attempts(), 6);
    plays(
        &mut machine,
        "
        1000-1001 rrr => wait 1251
        1250 => wait 1251
        1251 => attempt
    ",
    );
}

#[test]
fn it_gives_up_when_no_quorum_has_answered_for_long_enough() {
    // When a quorum answers, the time starts anew.
    plays(
        &mut acquire(while_available(3)),
        "
        0-50 xx_ => undo 0 1 2, wait 200
        retry 100 => attempt
        1000-1001 rr_ => undo 2, wait 1007
        retry 1100 => attempt
        1950-2000 xx_ => undo 0 1 2, wait 2150
        retry 2000 => attempt
        3950-4000 xx_ => undo 0 1 2, wait 4150
        retry 4000 => attempt
        3951-4001 xx_ => undo 0 1 2, Unavailable
    ",
    );
}

#[test]
fn a_hopelessly_short_lease_does_not_retry_for_ever() {
    plays(
        &mut acquire(while_available(3)),
        "0-5000 ggg => undo 0 1 2, TooLate",
    );
}

#[test]
fn a_cancelled_wait_ends() {
    plays(
        &mut acquire(while_available(3)),
        "
        0-1 rrr => wait 7
        cancel => Cancelled
    ",
    );
}

#[test]
fn a_cancelled_call_undoes_what_it_left_behind() {
    plays(
        &mut acquire(while_available(3)),
        "0-1 grr; cancel => undo 0, Cancelled",
    );
}

#[test]
fn cancelling_does_not_take_a_won_lock_away() {
    plays(
        &mut acquire(WaitLimit::Once),
        "
        0-1 ggg => acquired until 988
        cancel => acquired until 988
    ",
    );
}

#[test]
fn without_a_queue_no_wait_lasts_past_the_end_of_the_holders_key() {
    // At 100, another client has tried at the same time: short delays again. At 107 it has ended
    // already.
    plays(
        &mut acquire(while_available(3)),
        "
        free 3; 0-1 rrr => wait 3
        2 => wait 3
        3 => attempt
        free 5000; 100-101 rrr => wait 107
        107 => attempt
        free 108; 107-108 rrr => wait 126
    ",
    );
}

#[test]
fn a_wait_that_is_ended_early_is_followed_by_short_delays() {
    plays(
        &mut acquire(while_available(3)),
        "
        0-1 rrr => wait 7
        7 => attempt
        10-11 rrr => wait 29
        29 => attempt
        50-51 rrr => wait 105
        retry 60 => attempt
        60-61 rrr => wait 67
    ",
    );
}

#[test]
fn those_who_split_a_lock_come_back_further_apart_than_an_attempt_lasts() {
    for story in [
        "0-20 grr => undo 0, wait 80",
        "0-20 rx_ => undo 1 2, wait 80",
        "0-20 rr_ => undo 2, wait 26",
        "0-20 rrr => wait 26",
    ] {
        plays(&mut acquire(while_available(3)), story);
    }
}

#[test]
fn a_call_that_no_node_was_asked_for_waits_as_one_that_was_refused() {
    let mut machine = acquire(WaitLimit::Until(at(100)));
    machine.refused_here(at(0), u64::MAX);
    assert_eq!(wants(&mut machine), "wait 6");
    assert_eq!((machine.is_held(), machine.attempts()), (true, 0));
    // A call does not end without one attempt.
    plays(&mut machine, "100 => attempt");
}

/// One attempt on a fenced lock that begins at 0 and is decided then, with these fences of the
/// first nodes.
fn fenced(row: &str, answers: &[u64], decided: u64) -> Acquire {
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally(row);
    let mut fences = Fences::default();
    for (index, &fence) in answers.iter().enumerate() {
        fences.record(NodeId::new(index), FencingToken::saturating(fence));
    }
    let agreement = fences.agreement().unwrap();
    machine.attempted_fenced(clocks(0), &tally, agreement, reached, clocks(decided), 0);
    machine
}

#[test]
fn a_quorum_with_one_fence_wins_at_once() {
    let mut machine = fenced("gg_", &[7, 7], 1);
    assert_eq!(wants(&mut machine), "acquired until 988");
    assert_eq!(machine.attempts(), 1);
}

#[test]
fn who_is_behind_is_raised_and_must_say_so_in_time() {
    for (row, now, expected) in [
        ("gg_", 987, "acquired until 988"),
        ("gg_", 988, "undo 0 1, TooLate"),
        ("rg_", 5, "undo 0 1, Held"),
        ("xg_", 5, "undo 0 1, Unavailable"),
        ("_g_", 5, "undo 0 1, Unavailable"),
        // A node that was not counted cannot make up for it.
        ("xgg", 5, "undo 0 1, Unavailable"),
    ] {
        let mut machine = fenced("ggr", &[6, 7], 1);
        assert_eq!(wants(&mut machine), "raise 0 to 7");
        // The node timeout anew, and the end of the lease.
        assert_eq!(
            [40, 980].map(|now| machine.raise_deadline(at(now))),
            [90, 988].map(at)
        );
        machine.raised(&tally(row).0, clocks(now), 0);
        assert_eq!(machine.attempts(), 1, "the raise is a part of the attempt");
        assert_eq!(wants(&mut machine), expected, "{row}");
    }
}

#[test]
fn a_raise_that_is_cancelled_is_undone() {
    let mut machine = fenced("ggr", &[6, 7], 1);
    assert_eq!(wants(&mut machine), "raise 0 to 7");
    assert!(!machine.is_lost());
    plays(&mut machine, "cancel => undo 0 1, Cancelled");
}

#[test]
fn a_fenced_attempt_is_lost_as_any_other() {
    assert_eq!(wants(&mut fenced("grr", &[7], 1)), "undo 0, Held");
    // Too late to raise.
    assert_eq!(
        wants(&mut fenced("gg_", &[6, 7], 988)),
        "undo 0 1 2, TooLate"
    );
}
