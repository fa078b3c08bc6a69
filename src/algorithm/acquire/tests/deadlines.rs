//! Until when an attempt may last, and what one that is cut short shows.

use super::*;

#[test]
fn a_deadline_bounds_attempts_and_waits() {
    let mut machine = acquire(WaitLimit::Until(at(100)));
    assert_eq!(machine.attempt_deadline(at(0), false), at(50));
    assert_eq!(machine.attempt_deadline(at(70), false), at(100));
    let mut now = 0;
    let mut attempts = Vec::new();
    let verdict = loop {
        attempts.push(now);
        match attempt(&mut machine, "rrr", now, now) {
            Output::Wait(until) => {
                assert!(until <= at(100));
                now = until.since(at(0)).as_millis() as u64;
                machine.woken(until);
                if let Output::Done(verdict) = machine.poll() {
                    break verdict;
                }
            }
            Output::Done(verdict) => break verdict,
            output => panic!("{output:?}"),
        }
    };
    assert_eq!(verdict, Verdict::Held);
    assert_eq!(attempts, [0, 6, 24, 62, 81, 90, 95, 97, 99]);
}

#[test]
fn an_attempt_that_came_too_late_says_nothing_against_the_one_before() {
    let mut machine = acquire(WaitLimit::Until(at(100)));
    assert_is_wait(attempt(&mut machine, "rrr", 0, 1));
    machine.woken(Timestamp::from_nanos(99_999_000));
    assert_eq!(machine.poll(), Output::Attempt);
    assert_eq!(
        machine.attempt_deadline(at(100), false),
        at(100),
        "no time for any node to answer"
    );
    let (tally, reached) = tally("xxx");
    machine.attempted(clocks(100), &tally, reached, clocks(100), 0);
    while let Output::Undo(_) = machine.poll() {}
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));
}

#[test]
fn an_attempt_that_the_deadline_cut_short_does_not_turn_held_into_unavailable() {
    for (first, verdict) in [("rrr", Verdict::Held), ("xxx", Verdict::Unavailable)] {
        let mut machine = acquire(WaitLimit::Until(at(100)));
        let mut output = attempt(&mut machine, first, 0, 50);
        if let Output::Undo(_) = output {
            output = machine.poll();
        }
        assert!(matches!(output, Output::Wait(_)), "{output:?}");
        machine.woken(at(98));
        assert_eq!(attempt(&mut machine, "xxx", 98, 100), undo(&[0, 1, 2]));
        assert_eq!(machine.poll(), Output::Done(verdict));
    }
}

/// It ends when the limit comes, and the nodes had all the time that an attempt has.
#[test]
fn an_attempt_that_has_its_full_time_until_the_limit_is_not_cut_short() {
    let full = u64::try_from(NODE_TIMEOUT.as_millis()).unwrap();
    let mut machine = acquire(WaitLimit::Until(at(100 + full)));
    assert_is_wait(attempt(&mut machine, "rrr", 0, 1));
    assert!(machine.is_lost());
    machine.woken(at(100));
    assert_eq!(
        attempt(&mut machine, "xxx", 100, 100 + full),
        undo(&[0, 1, 2])
    );
    assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
}

#[test]
fn nor_does_it_contradict_what_another_call_found_before_this_one() {
    for (was_held, until, verdict) in [
        (true, 5, Verdict::Held),
        (false, 5, Verdict::Unavailable),
        (true, 500, Verdict::Unavailable),
    ] {
        let mut machine = acquire(WaitLimit::Until(at(until)));
        if was_held {
            machine.was_held();
        }
        let end = until.min(50);
        assert_eq!(attempt(&mut machine, "xxx", 0, end), undo(&[0, 1, 2]));
        match machine.poll() {
            Output::Done(found) => assert_eq!(found, verdict),
            Output::Wait(_) => {
                assert_eq!((machine.is_held(), verdict), (false, Verdict::Unavailable))
            }
            output => panic!("{output:?}"),
        }
    }
}

/// A node is not expected to answer so soon: nothing failed but the time to try.
#[test]
fn an_attempt_that_has_hardly_begun_at_the_deadline_has_timed_out() {
    for (micros, verdict) in [
        (24, Verdict::Held),
        (999, Verdict::Held),
        (1000, Verdict::Unavailable),
    ] {
        let t0 = at(0);
        let until = Timestamp::ORIGIN.after(Duration::from_micros(micros));
        let mut machine = acquire(WaitLimit::Until(until));
        assert_eq!(
            (machine.poll(), machine.attempt_deadline(t0, false)),
            (Output::Attempt, until)
        );
        let (tally, reached) = tally("x__");
        let end = Readings {
            steady: until,
            lease: lease_at(1),
        };
        machine.attempted(clocks(0), &tally, reached, end, 0);
        assert_is_undo(machine.poll());
        assert_eq!(machine.poll(), Output::Done(verdict), "{micros} µs");
    }
}

#[test]
fn an_earlier_failure_outlasts_an_attempt_that_has_hardly_begun() {
    for failed_before in [false, true] {
        let mut machine = acquire(WaitLimit::Until(at(100)));
        if failed_before {
            machine.was_unavailable();
        } else {
            assert!(matches!(
                attempt(&mut machine, "ppp", 0, 1),
                Output::Undo(_) | Output::Wait(_)
            ));
            while !matches!(machine.poll(), Output::Wait(_)) {}
            machine.woken(at(99));
        }
        assert_eq!(machine.poll(), Output::Attempt);
        let (tally, reached) = tally("xxx");
        let t0 = Readings {
            steady: Timestamp::from_nanos(99_976_000),
            lease: lease_at(99),
        };
        assert_eq!(machine.attempt_deadline(t0.steady, false), at(100));
        machine.attempted(t0, &tally, reached, clocks(100), 0);
        assert!(machine.is_cut_short() && matches!(machine.poll(), Output::Undo(_)));
        assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
    }
}

/// The limit of the call is shorter than the time of an attempt, and all nodes refuse at once.
#[test]
fn an_attempt_that_fails_before_the_limit_is_not_cut_short_by_it() {
    let mut machine = acquire(WaitLimit::Until(at(30)));
    assert_is_undo(attempt(&mut machine, "xxx", 0, 1));
    assert!(!machine.is_cut_short());
    assert_is_wait(machine.poll());
    machine.woken(at(29));
    assert_eq!(machine.poll(), Output::Attempt);
    let t0 = Readings {
        steady: Timestamp::from_nanos(29_976_000),
        lease: lease_at(29),
    };
    let (tally, reached) = tally("xxx");
    machine.attempted(t0, &tally, reached, clocks(30), 0);
    assert!(machine.is_cut_short() && matches!(machine.poll(), Output::Undo(_)));
    assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
}

#[test]
fn a_deadline_in_the_past_still_buys_one_whole_attempt() {
    let mut machine = acquire(WaitLimit::Until(at(0)));
    assert_eq!(machine.attempt_deadline(at(10), false), at(60));
    assert_eq!(
        attempt(&mut machine, "rrr", 10, 11),
        Output::Done(Verdict::Held)
    );
    // It had its whole time, and so the nodes have failed.
    let mut machine = acquire(WaitLimit::Until(at(0)));
    assert_is_undo(attempt(&mut machine, "xxx", 10, 60));
    assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
}

#[test]
fn an_attempt_that_has_to_connect_has_as_much_time_again() {
    let mut machine = acquire(WaitLimit::Until(at(1000)));
    assert_eq!(machine.attempt_deadline(at(0), true), at(100));
    assert_eq!(machine.attempt_deadline(at(0), false), at(50));
    assert_eq!(
        machine.attempt_deadline(at(950), true),
        at(1000),
        "but no longer than its caller waits"
    );
    // The reason why such an attempt is cut short does not contradict what was found before.
    assert_is_wait(attempt(&mut machine, "rrr", 0, 1));
    machine.woken(at(920));
    assert_eq!(machine.attempt_deadline(at(920), true), at(1000));
    assert_eq!(attempt(&mut machine, "xxx", 920, 1000), undo(&[0, 1, 2]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));
}

#[test]
fn an_answer_after_the_lease_would_be_of_no_use() {
    for (millis, nanos) in [(10, 7_900_000), (3, 970_000)] {
        let ttl = Ttl::new(Duration::from_millis(millis), 0.01, MAX_TTL).unwrap();
        let config = AcquireConfig {
            ttl,
            ..acquire(WaitLimit::Once).config
        };
        let mut machine = Acquire::new(config, at(0));
        assert_eq!(
            machine.attempt_deadline(at(0), false),
            Timestamp::from_nanos(nanos)
        );
    }
}

/// Nothing overflows where the clocks end, and no lease is won that could not end.
#[test]
fn at_the_end_of_the_clocks_all_times_are_their_last_one() {
    let end = Readings {
        steady: Timestamp::NEVER,
        lease: LeaseTime::NEVER,
    };
    let long = while_available(3);
    for (wait_limit, row, expected) in [
        (WaitLimit::Once, "ggg", Output::Done(Verdict::TooLate)),
        (WaitLimit::Once, "rrr", Output::Done(Verdict::Held)),
        (long, "rrr", Output::Wait(end.steady)),
        (
            WaitLimit::Until(end.steady),
            "xxx",
            Output::Done(Verdict::Unavailable),
        ),
    ] {
        let mut machine = Acquire::new(acquire(wait_limit).config, end.steady);
        assert_eq!(machine.poll(), Output::Attempt);
        assert_eq!(machine.attempt_deadline(end.steady, true), end.steady);
        let (tally, reached) = tally(row);
        machine.attempted(end, &tally, reached, end, u64::MAX);
        let mut output = machine.poll();
        while let Output::Undo(_) = output {
            output = machine.poll();
        }
        assert_eq!(output, expected, "{row}");
    }
}
