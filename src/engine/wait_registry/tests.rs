//! Announcements, confirmations and losses, and the waiters that they wake.

use super::*;

const HINT: Hint = Hint { crowd: 1, has_waited: false };
const RELEASED: Option<WakeReason> = Some(WakeReason::Released(WakeOrder::Overdue));

fn key() -> Key {
    Key::from(b"k".as_slice())
}

/// The reason to wake after a release that these nodes announce.
fn reason(registry: &mut WaitRegistry, nodes: &[usize]) -> Option<WakeReason> {
    for &node in nodes {
        registry.announced(&key(), NodeId::new(node), HINT, Timestamp::ORIGIN.after(Duration::from_millis(1)));
    }
    registry.waiters_by_key.get_mut(&key()).and_then(|waiters| waiters.reason.take())
}

fn of(nodes: usize) -> WaitRegistry {
    let mut registry = WaitRegistry::new(nodes, true);
    assert!(registry.enter(&key(), true));
    registry
}

#[test]
fn a_release_wakes_when_it_is_announced_first_and_by_a_quorum() {
    let mut registry = of(5);
    let reasons = [3, 1, 0, 2].map(|node| reason(&mut registry, &[node]));
    assert_eq!(reasons, [RELEASED, None, RELEASED, None]);
}

#[test]
fn a_release_of_a_fair_lock_wakes_the_call_that_is_first() {
    let [own, other] = [1, 2].map(PlaceId::new);
    let mut registry = of(3);
    let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
    let mut passed = |is_first, node, first: Option<PlaceId>, millis| {
        registry.set_place(&key(), (own, is_first));
        let node = NodeId::new(node);
        match first {
            Some(first) => _ = registry.passed(&key(), node, (HINT, first), at(millis)),
            None => _ = registry.announced(&key(), node, HINT, at(millis)),
        }
        registry.waiters_by_key.get_mut(&key()).and_then(|waiters| waiters.reason.take())
    };
    let early = Some(WakeReason::Released(WakeOrder::Early));
    assert_eq!(passed(true, 0, Some(other), 1), None, "it is the turn of another one, whatever was known");
    assert_eq!(passed(false, 0, Some(own), 100), early);
    assert_eq!(passed(false, 1, Some(own), 101), RELEASED, "a quorum has announced it");
    assert_eq!(passed(false, 2, Some(own), 102), early, "the attempt may have come before its release");
    assert_eq!(passed(false, 0, None, 200), None, "a plain client has released it");
    assert_eq!(passed(true, 0, None, 300), early);
    // What one node has announced, and the call has followed too early, is no reason to ignore it, if it names the call.
    assert!(registry.passed(&key(), NodeId::new(2), (HINT, own), at(310)).is_some());
    assert!((311..319).all(|millis| !registry.followed(&key(), true, at(millis))));
    assert!(registry.announced(&key(), NodeId::new(2), HINT, at(320)).is_some());
    (321..329).for_each(|millis| _ = registry.followed(&key(), true, at(millis)));
    assert!(registry.announced(&key(), NodeId::new(2), HINT, at(330)).is_none(), "a stranger");
    assert!(registry.passed(&key(), NodeId::new(2), (HINT, own), at(331)).is_some());
}

#[test]
fn an_attempt_finds_out_about_what_was_announced_before_it() {
    let mut registry = of(3);
    registry.announced(&key(), NodeId::new(0), HINT, Timestamp::ORIGIN);
    registry.look_into(&key());
    assert_eq!(reason(&mut registry, &[]), None);
    assert_eq!(reason(&mut registry, &[0]), RELEASED);
}

#[test]
fn a_waiter_that_enough_nodes_have_confirmed_to_or_one_that_was_lost_is_woken() {
    for (nodes, enough) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        let mut registry = of(nodes);
        for node in 0..nodes {
            let is_woken = registry.confirmed(&key(), NodeId::new(node)).is_some();
            assert_eq!(is_woken, node + 1 == enough, "node {node} of {nodes}");
            assert_eq!(registry.is_attentive(&key()), node + 1 >= enough);
        }
        for node in (0..nodes).rev() {
            let is_woken = !registry.lost(NodeId::new(node)).is_empty();
            assert_eq!(is_woken, node + 1 == enough, "{node} of {nodes} are left");
        }
        assert!(registry.confirmed(&key(), NodeId::new(0)).is_some());
    }
}

#[test]
fn a_release_may_be_ignored_where_a_single_node_that_is_distrusted_would_announce_it() {
    for (nodes, live, may_ignore) in [(1, 1, true), (3, 2, true), (3, 3, false), (2, 1, true), (2, 2, false)] {
        let mut registry = of(nodes);
        for node in 0..live {
            let _ = registry.confirmed(&key(), NodeId::new(node));
        }
        let now = Timestamp::ORIGIN.after(Duration::from_secs(1));
        for _ in 0..4 {
            assert!(!registry.may_ignore(&key(), now));
            registry.announced(&key(), NodeId::new(0), HINT, now);
            registry.followed(&key(), true, now);
            if nodes > 1 && registry.may_ignore(&key(), now) {
                break;
            }
        }
        assert_eq!(registry.may_ignore(&key(), now), may_ignore, "{live} of {nodes}");
        assert!(!registry.may_ignore(&key(), now.after(Duration::from_secs(11))));
    }
}

#[test]
fn the_flag_says_whether_any_lock_is_contended() {
    let mut registry = of(3);
    let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
    let is_crowded = Arc::clone(&registry.is_crowded);
    registry.note_crowd(b"k", 1, at(10));
    assert!(registry.defers_to(b"k", false, at(11)) == 1 && is_crowded.load(Ordering::Relaxed));
    assert!(registry.defers_to(b"k", false, at(3000)) == 0 && !is_crowded.load(Ordering::Relaxed));
}

#[test]
fn what_is_announced_between_two_calls_is_kept_for_the_one_that_has_a_place() {
    let [first, next, other] = [1, 2, 3].map(PlaceId::new);
    let mut registry = of(3);
    let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
    let nodes = [0, 1, 2].map(NodeId::new);
    nodes.iter().for_each(|&node| _ = registry.confirmed(&key(), node));
    registry.set_place(&key(), (first, true));
    assert_eq!(registry.leave(&key(), (true, Some(next)), at(1)), None, "it is still subscribed to");
    assert!(registry.passed(&key(), nodes[2], (HINT, first), at(2)).is_none());
    assert!(!registry.has_heard_of_others(&key()), "a node that is late");
    assert!(registry.passed(&key(), nodes[0], (HINT, other), at(3)).is_none());
    assert!(registry.has_heard_of_others(&key()));
    assert!(registry.passed(&key(), nodes[0], (HINT, next), at(4)).is_some());
    assert!(!registry.enter(&key(), true) && registry.is_attentive(&key()));
    assert_eq!(reason(&mut registry, &[]), Some(WakeReason::Released(WakeOrder::Early)));
    assert!(!registry.forget_successor(&key()), "a thread waits");
    assert_eq!(registry.leave(&key(), (true, Some(next)), at(5)), None);
    assert!(registry.forget_successor(&key()) && registry.waiters_by_key.is_empty());
}

#[test]
fn what_the_last_node_announces_of_a_fair_lock_does_not_delay_the_attempt_that_is_due() {
    let own = PlaceId::new(1);
    let mut registry = of(3);
    registry.set_place(&key(), (own, true));
    for node in 0..3 {
        registry.passed(&key(), NodeId::new(node), (HINT, own), Timestamp::ORIGIN.after(Duration::from_millis(1)));
    }
    assert_eq!(reason(&mut registry, &[]), RELEASED, "no waiter has woken in between");
}
