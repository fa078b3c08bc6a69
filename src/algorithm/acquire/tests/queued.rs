//! Attempts of a call that has a place in the queue of a fair lock.

use super::super::super::place::{PlaceAnswer, PlaceId};
use super::*;

/// Those that do not queue up may have got one node each. That they undo it is not announced.
#[test]
fn the_first_call_asks_once_more_behind_a_release_that_was_not_for_it() {
    let waits = |position| {
        let mut machine = acquire(WaitLimit::WhileAvailable(Duration::from_secs(3)));
        machine.keep_place(PlaceKeeper::new(PlaceId::new(1), Duration::from_secs(1), true));
        [0, 10, 20].map(|t0| {
            machine.keeper().unwrap().answered(true, Some(PlaceAnswer::new(5, position)), at(9999));
            let Output::Wait(until) = refused(&mut machine, at(9999), t0) else { panic!() };
            if t0 == 0 {
                machine.released(WakeOrder::Overdue, at(10), u64::MAX);
            } else {
                machine.woken(at(20));
            }
            until.since(at(t0 + 1)).as_millis()
        })
    };
    // It refreshes its place otherwise.
    assert_eq!(waits(1), [312, 3, 312]);
    assert_eq!(waits(2), [312, 312, 312], "it is not for this one");
}

/// Its place would last for as long if the process were killed then.
#[test]
fn a_process_that_stood_still_is_not_one_that_is_far_from_its_nodes() {
    let node_timeout = u32::try_from(NODE_TIMEOUT.as_millis()).unwrap();
    for (took, lasts) in [(1, 10), (u64::from(node_timeout / 2), node_timeout), (1_000_000, 2 * node_timeout)] {
        let mut machine = acquire(WaitLimit::WhileAvailable(Duration::from_secs(3)));
        machine.keep_place(PlaceKeeper::new(PlaceId::new(1), Duration::from_millis(10), true));
        machine.attempt_deadline(at(0), false);
        attempt(&mut machine, "rrr", 0, took);
        assert_eq!(machine.keeper().unwrap().request().lasts_millis, Some(lasts), "{took}");
    }
}
