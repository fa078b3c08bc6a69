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
        happens(&mut machine, &format!("{now}-{now} rrr"));
        match machine.poll() {
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
    plays(
        &mut machine,
        "
        0-1 rrr => wait 7
        99.999 => attempt
    ",
    );
    let deadline = machine.attempt_deadline(at(100), false);
    assert_eq!(deadline, at(100), "no time for any node to answer");
    plays(&mut machine, "100-100 xxx => undo 0 1 2, Held");
}

#[test]
fn an_attempt_that_the_deadline_cut_short_does_not_turn_held_into_unavailable() {
    for (first, verdict) in [
        ("rrr => wait 56", "Held"),
        ("xxx => undo 0 1 2, wait 75", "Unavailable"),
    ] {
        plays(
            &mut acquire(WaitLimit::Until(at(100))),
            &format!(
                "
                0-50 {first}
                98 => attempt
                98-100 xxx => undo 0 1 2, {verdict}
            "
            ),
        );
    }
}

/// It ends when the limit comes, and the nodes had all the time that an attempt has.
#[test]
fn an_attempt_that_has_its_full_time_until_the_limit_is_not_cut_short() {
    let mut machine = acquire(WaitLimit::Until(at(150)));
    plays(&mut machine, "0-1 rrr => wait 7");
    assert!(machine.is_lost());
    plays(
        &mut machine,
        "
        100 => attempt
        100-150 xxx => undo 0 1 2, Unavailable
    ",
    );
}

#[test]
fn nor_does_it_contradict_what_another_call_found_before_this_one() {
    for (was_held, until, story) in [
        (true, 5, "0-5 xxx => undo 0 1 2, Held"),
        (false, 5, "0-5 xxx => undo 0 1 2, Unavailable"),
        (true, 500, "0-50 xxx => undo 0 1 2, wait 200"),
    ] {
        let mut machine = acquire(WaitLimit::Until(at(until)));
        if was_held {
            machine.was_held();
        }
        plays(&mut machine, story);
        assert!(until == 5 || !machine.is_held());
    }
}

/// A node is not expected to answer so soon: nothing failed but the time to try.
#[test]
fn an_attempt_that_has_hardly_begun_at_the_deadline_has_timed_out() {
    for (micros, story) in [
        (24, "0-0.024 x__ => undo 0 1 2, Held"),
        (999, "0-0.999 x__ => undo 0 1 2, Held"),
        (1000, "0-1 x__ => undo 0 1 2, Unavailable"),
    ] {
        let until = Timestamp::ORIGIN.after(Duration::from_micros(micros));
        let mut machine = acquire(WaitLimit::Until(until));
        assert_eq!(machine.attempt_deadline(at(0), false), until);
        plays(&mut machine, story);
    }
}

#[test]
fn an_earlier_failure_outlasts_an_attempt_that_has_hardly_begun() {
    for failed_before in [false, true] {
        let mut machine = acquire(WaitLimit::Until(at(100)));
        if failed_before {
            machine.was_unavailable();
        } else {
            plays(
                &mut machine,
                "
                0-1 ppp => undo 0 1 2, wait 7
                99 => attempt
            ",
            );
        }
        let t0 = Timestamp::from_nanos(99_976_000);
        assert_eq!(machine.attempt_deadline(t0, false), at(100));
        plays(&mut machine, "99.976-100 xxx => undo 0 1 2, Unavailable");
        assert!(machine.is_cut_short());
    }
}

/// The limit of the call is shorter than the time of an attempt, and all nodes refuse at once.
#[test]
fn an_attempt_that_fails_before_the_limit_is_not_cut_short_by_it() {
    let mut machine = acquire(WaitLimit::Until(at(30)));
    plays(&mut machine, "0-1 xxx => undo 0 1 2, wait 7");
    assert!(!machine.is_cut_short());
    plays(
        &mut machine,
        "
        29 => attempt
        29.976-30 xxx => undo 0 1 2, Unavailable
    ",
    );
    assert!(machine.is_cut_short());
}

#[test]
fn a_deadline_in_the_past_still_buys_one_whole_attempt() {
    let past = || acquire(WaitLimit::Until(at(0)));
    assert_eq!(past().attempt_deadline(at(10), false), at(60));
    plays(&mut past(), "10-11 rrr => Held");
    // It had its whole time, and so the nodes have failed.
    plays(&mut past(), "10-60 xxx => undo 0 1 2, Unavailable");
}

#[test]
fn an_attempt_that_has_to_connect_has_as_much_time_again() {
    let mut machine = acquire(WaitLimit::Until(at(1000)));
    assert_eq!(machine.attempt_deadline(at(0), true), at(100));
    assert_eq!(machine.attempt_deadline(at(0), false), at(50));
    let last = machine.attempt_deadline(at(950), true);
    assert_eq!(last, at(1000), "but no longer than its caller waits");
    // The reason why such an attempt is cut short does not contradict what was found before.
    plays(
        &mut machine,
        "
        0-1 rrr => wait 7
        920 => attempt
    ",
    );
    assert_eq!(machine.attempt_deadline(at(920), true), at(1000));
    plays(&mut machine, "920-1000 xxx => undo 0 1 2, Held");
}

#[test]
fn an_answer_after_the_lease_would_be_of_no_use() {
    for (millis, nanos) in [(10, 7_900_000), (3, 970_000)] {
        let config = AcquireConfig {
            ttl: Ttl::new(Duration::from_millis(millis), 0.01, MAX_TTL).unwrap(),
            ..acquire(WaitLimit::Once).config
        };
        let mut machine = Acquire::new(config, at(0));
        let deadline = machine.attempt_deadline(at(0), false);
        assert_eq!(deadline, Timestamp::from_nanos(nanos));
    }
}

/// Nothing overflows where the clocks end, and no lease is won that could not end.
#[test]
fn at_the_end_of_the_clocks_all_times_are_their_last_one() {
    let end = Readings {
        steady: Timestamp::NEVER,
        lease: LeaseTime::NEVER,
    };
    let until = WaitLimit::Until(end.steady);
    for (wait_limit, row, expected) in [
        (WaitLimit::Once, "ggg", Output::Done(Verdict::TooLate)),
        (WaitLimit::Once, "rrr", Output::Done(Verdict::Held)),
        (while_available(3), "rrr", Output::Wait(end.steady)),
        (until, "xxx", Output::Done(Verdict::Unavailable)),
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
