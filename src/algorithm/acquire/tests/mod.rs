//! The steps of an acquisition, each from the counts of its attempts.

use super::super::backoff::Backoff;
use super::super::fence::{Fences, FencingToken};
use super::super::lease::{MAX_TTL, Ttl, Validity};
use super::super::{node::NodeId, time::LeaseTime, vote::Vote};
use super::*;
use crate::fault::{Cause, Fault, Phase};

mod deadlines;
mod queued;

const NODE_TIMEOUT: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Timestamp {
    Timestamp::ORIGIN.after(Duration::from_millis(millis))
}

/// The clocks have different origins.
fn clocks(millis: u64) -> Readings {
    Readings {
        steady: at(millis),
        lease: lease_at(millis),
    }
}

fn lease_at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(7_000_000 + millis))
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

/// One attempt that begins at `t0` and is decided at `now`.
fn attempt(machine: &mut Acquire, row: &str, t0: u64, now: u64) -> Output {
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally(row);
    machine.attempted(clocks(t0), &tally, reached, clocks(now), u64::MAX);
    machine.poll()
}

fn undo(indices: &[usize]) -> Output {
    Output::Undo(nodes(indices))
}

#[track_caller]
fn assert_is_undo(output: Output) {
    assert!(matches!(output, Output::Undo(_)), "{output:?}");
}

fn wait(millis: u64) -> Output {
    Output::Wait(at(millis))
}

#[track_caller]
fn assert_is_wait(output: Output) {
    assert!(matches!(output, Output::Wait(_)), "{output:?}");
}

const fn while_available(seconds: u64) -> WaitLimit {
    WaitLimit::WhileAvailable(Duration::from_secs(seconds))
}

fn nodes(indices: &[usize]) -> NodeSet {
    indices.iter().copied().map(NodeId::new).collect()
}

/// Attempts every 100 ms, each with the row of its time, until the machine is done. Returns when,
/// and the verdict.
fn ends(
    wait_limit: WaitLimit,
    is_endless: bool,
    row: impl Fn(u64) -> &'static str,
) -> (u64, Verdict) {
    let mut machine = acquire(wait_limit);
    for time in (0..100_000).step_by(100) {
        machine.set_wait_bounds(WaitBounds {
            is_endless,
            ..WaitBounds::NONE
        });
        let mut output = attempt(&mut machine, row(time), time, time + 1);
        while let Output::Undo(_) = output {
            output = machine.poll();
        }
        match output {
            Output::Done(verdict) => return (time, verdict),
            _ => machine.retry_now(at(time + 100)),
        }
        if let Output::Done(verdict) = machine.poll() {
            return (time + 100, verdict);
        }
    }
    panic!("it goes on for ever")
}

#[test]
fn permanent_faults_that_leave_no_quorum_end_every_wait() {
    let long = WaitLimit::Until(at(50_000));
    let unavailable = |time| (time, Verdict::Unavailable);
    assert_eq!(ends(long, false, |_| "ppx"), unavailable(1000));
    assert_eq!(ends(long, false, |_| "ppg"), unavailable(1000));
    assert_eq!(ends(WaitLimit::Once, false, |_| "ppx"), unavailable(0));
    assert_eq!(
        ends(while_available(2), false, |_| "ppx"),
        unavailable(1000)
    );
    assert_eq!(
        ends(WaitLimit::Until(at(500)), false, |_| "ppx"),
        unavailable(500)
    );
    // Other faults may pass, and so may these when they have passed once.
    assert_eq!(ends(long, false, |_| "pxx"), unavailable(50_000));
    assert_eq!(
        ends(long, false, |time| if time == 900 { "pxx" } else { "ppx" }),
        unavailable(2000)
    );
    assert_eq!(
        ends(long, false, |time| if time < 30_000 {
            "rrx"
        } else {
            "ppx"
        }),
        unavailable(31_000)
    );
}

#[test]
fn permanent_faults_count_from_when_another_call_of_the_client_met_them() {
    let mut machine = acquire(WaitLimit::Until(at(50_000)));
    machine.early_end().was_quorum_impossible(at(0));
    assert_eq!(attempt(&mut machine, "ppx", 999, 1000), undo(&[0, 1, 2]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
}

#[test]
fn a_key_that_never_expires_ends_a_wait_when_it_was_seen_twice() {
    let long = WaitLimit::Until(at(50_000));
    assert_eq!(ends(long, true, |_| "rrx"), (100, Verdict::NoExpiry));
    assert_eq!(
        ends(while_available(2), true, |_| "rrx"),
        (100, Verdict::NoExpiry)
    );
    assert_eq!(
        ends(long, true, |time| if time % 200 == 0 {
            "rrx"
        } else {
            "grx"
        })
        .1,
        Verdict::NoExpiry
    );
    assert_eq!(
        ends(long, true, |time| if time % 200 == 0 {
            "rrx"
        } else {
            "gxx"
        }),
        (50_000, Verdict::Unavailable)
    );
    assert_eq!(ends(long, false, |_| "rrx"), (50_000, Verdict::Held));
    assert_eq!(ends(WaitLimit::Once, true, |_| "rrx"), (0, Verdict::Held));
}

#[test]
fn a_quorum_in_time_wins_and_the_lease_counts_from_the_start() {
    let mut machine = acquire(WaitLimit::Once);
    let Output::Done(Verdict::Acquired(lease)) = attempt(&mut machine, "ggg__", 100, 140) else {
        panic!()
    };
    assert_eq!(lease.end(), lease_at(100 + 988));
}

#[test]
fn a_quorum_after_the_lease_has_ended_is_undone() {
    for (decided, won) in [(1087, true), (1088, false), (5000, false)] {
        let mut machine = acquire(WaitLimit::Once);
        let output = attempt(&mut machine, "ggr", 100, decided);
        if won {
            assert!(
                matches!(output, Output::Done(Verdict::Acquired(_))),
                "{decided}"
            );
        } else {
            assert_eq!(output, undo(&[0, 1]), "{decided}");
            assert_eq!(machine.poll(), Output::Done(Verdict::TooLate));
        }
    }
}

/// A wall clock set forward between the attempt's start and its end ends the lease, and neither the
/// wait nor the nodes' time.
#[test]
fn a_wall_clock_set_forward_ends_the_lease_and_not_the_wait() {
    let mut machine = acquire(WaitLimit::Until(at(1000)));
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally("ggg");
    machine.attempted(
        clocks(0),
        &tally,
        reached,
        Readings {
            steady: at(1),
            lease: lease_at(988),
        },
        u64::MAX,
    );
    assert_is_undo(machine.poll());
    assert_eq!(machine.poll(), wait(1 + 6));
    machine.woken(at(7));
    assert_eq!(machine.attempt_deadline(at(7), false), at(57));
    let Output::Done(Verdict::Acquired(_)) = attempt(&mut machine, "ggg", 7, 8) else {
        panic!()
    };
    assert!(!machine.is_lost());
}

#[test]
fn a_loss_is_undone_wherever_it_was_not_definitely_refused() {
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(attempt(&mut machine, "grx_r", 0, 50), undo(&[0, 2, 3]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));

    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(
        attempt(&mut machine, "rrr", 0, 1),
        Output::Done(Verdict::Held)
    );

    // Some keys of a set were set there.
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(attempt(&mut machine, "rss", 0, 1), undo(&[1, 2]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));

    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(machine.poll(), Output::Attempt);
    machine.attempted(clocks(0), &tally("xxg").0, nodes(&[2]), clocks(1), 0);
    assert_eq!(machine.poll(), undo(&[2]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
}

#[test]
fn while_held_it_waits_longer_and_longer_and_tries_again() {
    let mut machine = acquire(while_available(3));
    let mut now = 0;
    for delay in [6, 18, 54, 162, 250, 250] {
        assert_eq!(
            attempt(&mut machine, "rrr", now, now + 1),
            wait(now + 1 + delay)
        );
        machine.woken(at(now + delay));
        assert_eq!(machine.poll(), wait(now + 1 + delay), "not yet");
        machine.woken(at(now + 1 + delay));
        now += 1000;
    }
    assert_eq!(machine.attempts(), 6);
}

#[test]
fn it_gives_up_when_no_quorum_has_answered_for_long_enough() {
    let mut machine = acquire(while_available(3));
    assert_is_undo(attempt(&mut machine, "xx_", 0, 50));
    assert_is_wait(machine.poll());
    machine.retry_now(at(100));
    // A quorum answers: the time starts anew.
    assert_is_undo(attempt(&mut machine, "rr_", 1000, 1001));
    assert_is_wait(machine.poll());
    machine.retry_now(at(1100));
    for (now, gives_up) in [(2000, false), (4000, false), (4001, true)] {
        assert_is_undo(attempt(&mut machine, "xx_", now - 50, now));
        match machine.poll() {
            Output::Wait(_) => assert!(!gives_up),
            output => assert_eq!(
                (output, gives_up),
                (Output::Done(Verdict::Unavailable), true)
            ),
        }
        machine.retry_now(at(now));
    }
}

#[test]
fn a_hopelessly_short_lease_does_not_retry_for_ever() {
    let mut machine = acquire(while_available(3));
    assert_is_undo(attempt(&mut machine, "ggg", 0, 5000));
    assert_eq!(machine.poll(), Output::Done(Verdict::TooLate));
}

#[test]
fn a_cancelled_wait_ends() {
    let mut machine = acquire(while_available(3));
    assert_is_wait(attempt(&mut machine, "rrr", 0, 1));
    machine.cancelled();
    assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
}

#[test]
fn a_cancelled_call_undoes_what_it_left_behind() {
    let mut machine = acquire(while_available(3));
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally("grr");
    machine.attempted(clocks(0), &tally, reached, clocks(1), 0);
    machine.cancelled();
    assert_eq!(machine.poll(), undo(&[0]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
}

#[test]
fn cancelling_does_not_take_a_won_lock_away() {
    let mut machine = acquire(WaitLimit::Once);
    assert!(matches!(
        attempt(&mut machine, "ggg", 0, 1),
        Output::Done(Verdict::Acquired(_))
    ));
    machine.cancelled();
    assert!(matches!(machine.poll(), Output::Done(Verdict::Acquired(_))));
}

#[test]
fn without_a_queue_no_wait_lasts_past_the_end_of_the_holders_key() {
    let mut machine = acquire(while_available(3));
    let refused = |machine: &mut Acquire, free_at, t0| {
        machine.set_wait_bounds(WaitBounds {
            free_at,
            ..WaitBounds::NONE
        });
        attempt(machine, "rrr", t0, t0 + 1)
    };
    assert_eq!(refused(&mut machine, at(3), 0), wait(3));
    machine.woken(at(2));
    assert_eq!(machine.poll(), wait(3), "not yet");
    machine.woken(at(3));
    assert_eq!(machine.poll(), Output::Attempt);
    // Another client has tried at the same time: short delays again.
    assert_eq!(refused(&mut machine, at(5000), 100), wait(101 + 6));
    machine.woken(at(107));
    assert_eq!(
        refused(&mut machine, at(108), 107),
        wait(108 + 18),
        "it has ended already"
    );
}

#[test]
fn a_wait_that_is_ended_early_is_followed_by_short_delays() {
    let mut machine = acquire(while_available(3));
    for (t0, delay) in [(0, 6), (10, 18)] {
        assert_eq!(
            attempt(&mut machine, "rrr", t0, t0 + 1),
            wait(t0 + 1 + delay)
        );
        machine.woken(at(t0 + 1 + delay));
    }
    assert_eq!(attempt(&mut machine, "rrr", 50, 51), wait(51 + 54));
    machine.retry_now(at(60));
    assert_eq!(attempt(&mut machine, "rrr", 60, 61), wait(61 + 6));
}

#[test]
fn those_who_split_a_lock_come_back_further_apart_than_an_attempt_lasts() {
    for (row, delay) in [("grr", 60), ("rx_", 60), ("rr_", 6), ("rrr", 6)] {
        let mut machine = acquire(while_available(3));
        let mut output = attempt(&mut machine, row, 0, 20);
        if let Output::Undo(_) = output {
            output = machine.poll();
        }
        assert_eq!(output, wait(20 + delay), "{row}");
    }
}

#[test]
fn a_call_that_no_node_was_asked_for_waits_as_one_that_was_refused() {
    let mut machine = acquire(WaitLimit::Until(at(100)));
    machine.refused_here(at(0), u64::MAX);
    assert_eq!(
        (machine.poll(), machine.is_held(), machine.attempts()),
        (wait(6), true, 0)
    );
    machine.woken(at(100));
    assert_eq!(
        machine.poll(),
        Output::Attempt,
        "a call does not end without one attempt"
    );
}

/// One attempt on a fenced lock that begins at 0 and is decided at 1, with these fences of the
/// first nodes.
fn fenced(machine: &mut Acquire, row: &str, answers: &[u64]) -> Output {
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally(row);
    let mut fences = Fences::default();
    for (index, &fence) in answers.iter().enumerate() {
        fences.record(NodeId::new(index), FencingToken::saturating(fence));
    }
    machine.attempted_fenced(
        clocks(0),
        &tally,
        fences.agreement().unwrap(),
        reached,
        clocks(1),
        0,
    );
    machine.poll()
}

#[test]
fn a_quorum_with_one_fence_wins_at_once() {
    let mut machine = acquire(WaitLimit::Once);
    assert!(matches!(
        fenced(&mut machine, "gg_", &[7, 7]),
        Output::Done(Verdict::Acquired(_))
    ));
    assert_eq!(machine.attempts(), 1);
}

#[test]
fn who_is_behind_is_raised_and_must_say_so_in_time() {
    let table = [
        (
            "gg_",
            987,
            Verdict::Acquired(Validity::until(lease_at(988))),
        ),
        ("gg_", 988, Verdict::TooLate),
        ("rg_", 5, Verdict::Held),
        ("xg_", 5, Verdict::Unavailable),
        ("_g_", 5, Verdict::Unavailable),
        // A node that was not counted cannot make up for it.
        ("xgg", 5, Verdict::Unavailable),
    ];
    for (row, now, verdict) in table {
        let mut machine = acquire(WaitLimit::Once);
        let Output::Raise(agreement) = fenced(&mut machine, "ggr", &[6, 7]) else {
            panic!("{row}")
        };
        assert_eq!(
            (agreement.fence().get(), agreement.behind()),
            (7, nodes(&[0]))
        );
        assert_eq!(
            machine.raise_deadline(at(40)),
            at(90),
            "the node timeout anew"
        );
        assert_eq!(
            machine.raise_deadline(at(980)),
            at(988),
            "the end of the lease"
        );
        machine.raised(&tally(row).0, clocks(now), 0);
        assert_eq!(machine.attempts(), 1, "the raise is a part of the attempt");
        if !matches!(verdict, Verdict::Acquired(_)) {
            assert_eq!(
                machine.poll(),
                undo(&[0, 1]),
                "{row}: all but the node that refused"
            );
        }
        assert_eq!(machine.poll(), Output::Done(verdict), "{row}");
    }
}

#[test]
fn a_raise_that_is_cancelled_is_undone() {
    let mut machine = acquire(WaitLimit::Once);
    assert!(matches!(
        fenced(&mut machine, "ggr", &[6, 7]),
        Output::Raise(_)
    ));
    assert!(!machine.is_lost());
    machine.cancelled();
    assert_eq!(machine.poll(), undo(&[0, 1]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
}

#[test]
fn a_fenced_attempt_is_lost_as_any_other() {
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(fenced(&mut machine, "grr", &[7]), undo(&[0]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));
    let mut machine = acquire(WaitLimit::Once);
    assert_eq!(machine.poll(), Output::Attempt);
    let mut fences = Fences::default();
    for (node, fence) in [(0, 6), (1, 7)] {
        fences.record(NodeId::new(node), FencingToken::saturating(fence));
    }
    machine.attempted_fenced(
        clocks(0),
        &tally("gg_").0,
        fences.agreement().unwrap(),
        nodes(&[0, 1]),
        clocks(988),
        0,
    );
    assert_eq!(machine.poll(), undo(&[0, 1]), "too late to raise");
    assert_eq!(machine.poll(), Output::Done(Verdict::TooLate));
}
