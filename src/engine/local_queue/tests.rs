//! The positions in a queue, as threads come, hold, leave and give up.

use super::*;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::NodeSet;
use crate::engine::tests::{at, interrupt};
use crate::os::thread_number::ThreadNumber;
use std::time::Duration;

/// Both clocks go on alike here.
fn clocks(millis: u64) -> Readings {
    Readings {
        steady: at(millis),
        lease: lease_at(millis),
    }
}

fn lease_at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(millis))
}

fn held_by(number: u8) -> HoldId {
    HoldId::of(&OwnerToken::from_entropy([number * 2; OwnerToken::ENTROPY]))
}

fn one(key: &str) -> LocalLock {
    Queues::default().of(&LockKey::behind("", key))
}

#[test]
fn what_is_made_of_one_name_has_one_queue() {
    let queues = Queues::default();
    let [one, again, other] = ["k", "k", "l"].map(|key| queues.of(&LockKey::behind("", key)));
    let set = queues.of(&LockKey::of("", ["l", "k"]));
    assert!(Arc::ptr_eq(&one.queues()[0], &again.queues()[0]));
    assert!(
        Arc::ptr_eq(&one.queues()[0], &set.queues()[0])
            && Arc::ptr_eq(&other.queues()[0], &set.queues()[1])
    );
}

#[test]
fn the_queue_is_first_in_first_out_and_only_the_head_may_ask() {
    let local = one("k");
    let queue = &local.queues()[0];
    let tickets: Vec<_> = (0..3).map(|millis| queue.join(clocks(millis)).0).collect();
    assert_eq!(queue.calls(), 3);
    let channels: Vec<_> = tickets.iter().map(QueueTicket::notifications).collect();
    let positions = || -> Vec<_> {
        tickets
            .iter()
            .map(|ticket| ticket.position(lease_at(9)))
            .collect()
    };
    assert!(matches!(
        positions()[..],
        [
            QueuePosition::Head(_),
            QueuePosition::Behind(_),
            QueuePosition::Behind(_)
        ]
    ));
    assert!(channels.iter().all(|channel| channel.try_recv().is_err()));
    let mut tickets = tickets.into_iter();
    drop(tickets.next());
    assert!(channels[1].try_recv().is_ok() && channels[2].try_recv().is_err());
    assert!(matches!(
        tickets.next().unwrap().position(lease_at(9)),
        QueuePosition::Head(_)
    ));
}

#[test]
fn a_thread_that_gives_up_in_the_middle_notifies_and_blocks_no_other() {
    let local = one("k");
    let queue = &local.queues()[0];
    let first = queue.join(clocks(0)).0;
    let second = queue.join(clocks(0)).0;
    let third = queue.join(clocks(0)).0;
    let first_channel = first.notifications();
    let third_channel = third.notifications();
    drop(second);
    assert!(first_channel.try_recv().is_err() && third_channel.try_recv().is_err());
    drop(first);
    assert!(third_channel.try_recv().is_ok());
    drop(third);
    assert!(local.queues().iter().all(|queue| !queue.is_in_use()));
    assert_eq!(queue.calls(), 0);
}

#[test]
fn a_guard_is_known_to_the_thread_that_made_it_until_its_lease_ends_or_it_may_change_threads() {
    // In the simulator, where this is run too, threads of the system have no numbers.
    if ThreadNumber::current().short() == 0 {
        return;
    }
    let local = one("k");
    let queue = &local.queues()[0];
    let until = |millis| {
        let locks = std::slice::from_ref(&local);
        LocalLock::held_by_this_thread_until(locks, lease_at(millis))
    };
    let hold = held_by(1);
    assert!(until(0).is_none() && !queue.is_held());
    local.hold(hold, Validity::until(lease_at(100)), clocks(0));
    assert!(queue.is_held());
    assert_eq!(until(99), Some(lease_at(100)));
    assert_eq!(until(101), None);
    let of_another = std::thread::scope(|scope| scope.spawn(|| until(99)).join().unwrap());
    assert_eq!(of_another, None);
    local.forget_thread(held_by(2));
    assert!(until(99).is_some());
    local.forget_thread(hold);
    assert!(until(99).is_none() && queue.is_held());
    local.release(hold, at(50));
    assert!(!queue.is_held());
}

#[test]
fn the_head_waits_for_a_guard_of_its_own_process_but_not_past_its_lease() {
    let local = one("k");
    let queue = &local.queues()[0];
    let hold = held_by(1);
    local.hold(hold, Validity::until(lease_at(100)), clocks(0));
    let ticket = queue.join(clocks(5)).0;
    let channel = ticket.notifications();
    assert_eq!(
        ticket.position(lease_at(99)),
        QueuePosition::HeldHere(lease_at(100))
    );
    assert_eq!(ticket.position(lease_at(100)), QueuePosition::Head(at(5)));
    local.release(hold, at(50));
    assert!(channel.try_recv().is_ok());
    assert_eq!(ticket.position(lease_at(51)), QueuePosition::Head(at(50)));
}

#[test]
fn the_head_waits_for_an_extended_guard_and_is_notified_when_it_ends_sooner() {
    let local = one("k");
    let queue = &local.queues()[0];
    let hold = held_by(2);
    local.hold(hold, Validity::until(lease_at(100)), clocks(0));
    let ticket = queue.join(clocks(5)).0;
    let channel = ticket.notifications();
    local.hold_until(hold, lease_at(300), clocks(0));
    assert!(channel.try_recv().is_err());
    assert_eq!(
        ticket.position(lease_at(100)),
        QueuePosition::HeldHere(lease_at(300))
    );
    local.hold_until(hold, lease_at(150), clocks(0));
    assert!(channel.try_recv().is_ok());
    assert_eq!(ticket.position(lease_at(150)), QueuePosition::Head(at(5)));
    let next = held_by(3);
    local.hold(next, Validity::until(lease_at(400)), clocks(160));
    local.hold_until(hold, lease_at(900), clocks(0));
    assert_eq!(
        ticket.position(lease_at(399)),
        QueuePosition::HeldHere(lease_at(400)),
        "it is not the holder any more"
    );
    local.hold_until(next, lease_at(161), clocks(0));
    assert_eq!(ticket.position(lease_at(161)), QueuePosition::Head(at(160)));
}

#[test]
fn an_expired_guard_does_not_remove_its_successor() {
    let local = one("k");
    let queue = &local.queues()[0];
    let stale = held_by(4);
    local.hold(stale, Validity::until(lease_at(100)), clocks(0));
    let fresh = held_by(5);
    local.hold(fresh, Validity::until(lease_at(300)), clocks(200));
    let ticket = queue.join(clocks(210)).0;
    local.release(stale, at(220));
    assert_eq!(
        ticket.position(lease_at(230)),
        QueuePosition::HeldHere(lease_at(300))
    );
    local.release(fresh, at(240));
    drop(ticket);
    assert!(local.queues().iter().all(|queue| !queue.is_in_use()));
}

#[test]
fn a_guard_that_has_outlived_its_lease_is_known_beside_its_successor() {
    let local = one("k");
    let queue = &local.queues()[0];
    let [stale, fresh] = [1, 2].map(held_by);
    local.hold(stale, Validity::until(lease_at(100)), clocks(0));
    local.hold(fresh, Validity::until(lease_at(300)), clocks(200));
    local.release(fresh, at(210));
    assert!(queue.is_held(), "its guard is still there");
    local.release(stale, at(220));
    assert!(!queue.is_held());
    // One that holds again is not its own predecessor.
    local.hold(fresh, Validity::until(lease_at(400)), clocks(230));
    local.hold(fresh, Validity::until(lease_at(500)), clocks(240));
    local.release(fresh, at(250));
    assert!(!queue.is_held());
}

#[test]
fn a_thread_is_first_where_no_guard_and_no_other_thread_was_there() {
    let local = one("k");
    let queue = &local.queues()[0];
    let head = queue.join(clocks(0)).0;
    assert!(head.is_first());
    assert!(!queue.join(clocks(0)).0.is_first());
    drop(head);
    local.hold(held_by(1), Validity::until(lease_at(100)), clocks(0));
    assert!(!queue.join(clocks(1)).0.is_first());
}

#[test]
fn all_threads_in_all_queues_are_notified_and_the_queues_in_use_returned() {
    let queues = Queues::default();
    let [used, held, unused] = ["k", "l", "m"].map(|key| queues.of(&LockKey::behind("", key)));
    let tickets = [(); 2].map(|()| used.queues()[0].join(clocks(0)).0);
    let channels = tickets.each_ref().map(QueueTicket::notifications);
    held.hold(held_by(1), Validity::until(lease_at(9)), clocks(0));
    let mut keys: Vec<Arc<str>> = queues
        .notify_all()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    keys.sort();
    assert_eq!(
        keys.iter().map(|key| &**key).collect::<Vec<_>>(),
        ["k", "l"]
    );
    assert!(channels.iter().all(|channel| channel.try_recv().is_ok()));
    assert!(!unused.queues()[0].is_in_use());
}

/// One that waits for the nodes is told by them.
#[test]
fn a_head_that_waits_for_the_nodes_is_notified_of_what_they_have_told_only() {
    let local = one("k");
    let queue = &local.queues()[0];
    let ticket = queue.join(clocks(0)).0;
    let channel = ticket.notifications();
    queue.notify(false);
    assert!(channel.try_recv().is_ok());
    let interrupt = interrupt();
    ticket.notify_by_interrupt(&interrupt);
    queue.notify(false);
    assert!(!interrupt.take());
    queue.notify(true);
    assert!(interrupt.take());
}

#[test]
fn before_the_first_answer_no_thread_finds_the_lock_held() {
    let local = one("k");
    let queue = &local.queues()[0];
    let head = queue.join(clocks(0)).0;
    let behind = queue.join(clocks(0)).0;
    assert!(behind.is_known_held().is_err());
    let hold = held_by(9);
    local.hold(hold, Validity::until(lease_at(50)), clocks(5));
    drop(head);
    assert!(behind.is_known_held().is_ok());
    let last = queue.join(clocks(6)).0;
    assert_eq!(
        last.position(lease_at(7)),
        QueuePosition::Behind(at(50)),
        "no thread asks while the lock is held here"
    );
    local.release(hold, at(9));
    assert_eq!(last.position(lease_at(9)), QueuePosition::Behind(at(9)));
    drop((behind, last));
    // A guard that was taken without a queue.
    local.hold(hold, Validity::until(lease_at(99)), clocks(10));
    assert!(queue.join(clocks(11)).0.is_known_held().is_ok());
}

#[test]
fn unavailability_is_known_to_the_threads_behind_and_forgotten_when_a_quorum_answers() {
    let local = one("k");
    let queue = &local.queues()[0];
    let head = queue.join(clocks(0)).0;
    let behind = queue.join(clocks(0)).0;
    head.record_unavailability(Unavailability {
        answered: NodeSet::first(1),
        ..Unavailability::default()
    });
    assert_eq!(behind.is_known_held().unwrap_err().answered.len(), 1);
    head.record_answer(at(7));
    assert!(behind.is_known_held().is_ok());
    assert_eq!(behind.position(lease_at(8)), QueuePosition::Behind(at(7)));
    drop(head);
    assert_eq!(behind.position(lease_at(8)), QueuePosition::Head(at(7)));
}

#[test]
fn a_set_is_held_in_the_queue_of_each_of_its_keys() {
    let queues = Queues::default();
    let local = queues.of(&LockKey::of("", ["a", "b", "c"]));
    let [a, b, c] = local.queues() else { panic!() };
    let heads = [a, c].map(|queue| queue.join(clocks(0)).0);
    let hold = held_by(1);
    let channels = [&heads[0], &heads[1]].map(QueueTicket::notifications);
    let set = b.join(clocks(0)).0;
    assert_eq!(local.first_held(lease_at(1)), None);
    local.hold(hold, Validity::until(lease_at(100)), clocks(1));
    drop(set);
    assert_eq!(
        queues
            .of(&LockKey::of("", ["b", "d"]))
            .first_held(lease_at(1)),
        Some(0)
    );
    assert_eq!(local.first_held(lease_at(100)), None, "its lease has ended");
    assert!(
        heads
            .iter()
            .all(|head| head.position(lease_at(1)) == QueuePosition::HeldHere(lease_at(100)))
    );
    local.hold_until(hold, lease_at(50), clocks(1));
    queues
        .of(&LockKey::behind("", "a"))
        .release(held_by(2), at(2));
    assert_eq!(
        local.first_held(lease_at(49)),
        Some(0),
        "it is not the holder"
    );
    local.release(hold, at(3));
    assert_eq!(local.first_held(lease_at(3)), None);
    assert!(channels.iter().all(|channel| channel.try_recv().is_ok()));
    drop(heads);
    assert!(local.queues().iter().all(|queue| !queue.is_in_use()));
}

#[test]
fn a_thread_that_is_away_leaves_the_head_to_the_next_and_comes_back_to_its_place() {
    let local = one("k");
    let queue = &local.queues()[0];
    let tickets: Vec<_> = (0..3).map(|millis| queue.join(clocks(millis)).0).collect();
    let channels: Vec<_> = tickets.iter().map(QueueTicket::notifications).collect();
    let heads = || {
        let is_head = |ticket: &QueueTicket<'_>| {
            matches!(ticket.position(lease_at(9)), QueuePosition::Head(_))
        };
        tickets.iter().map(is_head).collect::<Vec<_>>()
    };
    let notified = || {
        channels
            .iter()
            .map(|channel| channel.try_recv().is_ok())
            .collect::<Vec<_>>()
    };
    tickets[0].set_away(true);
    assert_eq!(
        (&heads()[1..], notified()),
        (&[true, false][..], vec![false, true, false])
    );
    tickets[1].set_away(true);
    assert_eq!((heads()[2], notified()), (true, vec![false, false, true]));
    // What concerns the head is notified to the one that is at its place.
    queue.notify(true);
    assert_eq!(notified(), [false, false, true]);
    tickets[0].set_away(false);
    assert_eq!(
        (heads(), notified()),
        (vec![true, false, false], vec![false; 3])
    );
    queue.notify(false);
    assert_eq!(notified(), [true, false, false]);
    tickets[0].notify_by_interrupt(&interrupt());
    queue.notify(false);
    assert_eq!(notified(), [false; 3]);
}

/// The slots of a semaphore of three permits, and their locks.
fn three_slots() -> (Arc<slots::Slots>, Vec<LocalLock>) {
    let semaphores = slots::Semaphores::new(crate::os::fork::ForkEpoch::current().unwrap());
    let locks = ["s#0", "s#1", "s#2"].map(one).into();
    (semaphores.slots(&"s".into()), locks)
}

#[test]
fn a_slot_is_tried_by_one_thread_and_open_again_when_it_is_released_or_its_lease_has_ended() {
    let (slots, locks) = three_slots();
    let take = |slot, millis| slots.take(&locks, slot, lease_at(millis));
    let open = |start, millis| slots.open_slot(&locks, start, lease_at(millis));
    let first = take(0, 0).unwrap();
    assert!(take(0, 0).is_none() && !slots.is_open(&locks, 0, lease_at(0)));
    assert_eq!((open(0, 0), open(2, 0)), (Some(1), Some(2)));
    // Refused: nothing was released.
    drop(first);
    assert_eq!((open(0, 0), slots.last_released(&locks)), (Some(0), None));
    let [held, other] = [0, 2].map(|slot| take(slot, 1).unwrap());
    held.hold();
    locks[0].hold(held_by(1), Validity::until(lease_at(100)), clocks(1));
    assert_eq!((open(0, 99), open(2, 99)), (Some(1), Some(1)));
    // The lease has ended: the slot is another thread's, and the old permit opens it no more.
    let next = take(0, 100).unwrap();
    drop(held);
    assert!(!slots.is_open(&locks, 0, lease_at(101)));
    next.hold();
    drop(next);
    assert_eq!(slots.last_released(&locks), Some(0));
    other.hold();
    drop(other);
    assert_eq!(slots.last_released(&locks), Some(2));
    assert_eq!(slots.last_released(&locks[..2]), Some(0), "of these");
    let kept = take(2, 102).unwrap();
    assert_eq!(slots.last_released(&locks), Some(0), "it is tried");
    kept.hold();
    kept.leave();
    assert_eq!(
        slots.last_released(&locks),
        Some(0),
        "it was let go, and stays held"
    );
}

#[test]
#[cfg(not(feature = "simulated"))]
fn a_slot_that_one_thread_holds_is_tried_by_no_other() {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    let (slots, locks) = three_slots();
    locks[0].hold(held_by(1), Validity::until(lease_at(100)), clocks(0));
    let take = || slots.take(&locks, 0, lease_at(0));
    let [is_held, is_over] = [false; 2].map(AtomicBool::new);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut tries = 0;
            both.wait();
            while !is_over.load(Ordering::SeqCst) {
                let taken = take();
                tries += u32::from(taken.is_some() && is_held.load(Ordering::SeqCst));
            }
            tries
        });
        both.wait();
        for _ in 0..if cfg!(miri) { 10 } else { 2_000 } {
            if let Some(taken) = take() {
                taken.hold();
                is_held.store(true, Ordering::SeqCst);
                thread::yield_now();
                is_held.store(false, Ordering::SeqCst);
            }
        }
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(other.join().unwrap(), 0);
    });
}

#[test]
fn the_head_waits_for_the_first_of_the_permits_that_its_own_threads_have() {
    let (slots, locks) = three_slots();
    let until = |millis| slots.all_taken_until(&locks, lease_at(millis));
    let taken: Vec<_> = (0..3)
        .map(|slot| slots.take(&locks, slot, lease_at(0)).unwrap())
        .collect();
    for (slot, end) in [300, 200, 400].into_iter().enumerate() {
        assert_eq!(until(10), Some(lease_at(110)));
        taken[slot].hold();
        let hold = held_by(slot as u8 + 1);
        locks[slot].hold(hold, Validity::until(lease_at(end)), clocks(0));
    }
    assert_eq!(until(10), Some(lease_at(200)));
    assert_eq!(until(200), None, "a lease has ended");
    let ticket = slots.join(clocks(20)).0;
    let channel = ticket.notifications();
    drop(taken);
    assert!(channel.try_recv().is_ok());
    assert_eq!(until(20), None);
}

#[test]
fn a_slot_without_an_end_is_reported_once_when_two_replies_in_a_row_show_it() {
    let (slots, _) = three_slots();
    let apart = Duration::from_millis(50);
    for (millis, endless, reported) in [
        (0, &[0, 2][..], &[][..]),
        (10, &[0, 2], &[]),
        (60, &[2], &[2]),
        (70, &[0, 2], &[]),
        (119, &[0, 2], &[]),
        (120, &[0], &[0]),
        (300, &[0], &[]),
    ] {
        let found = slots.record_endless(endless, at(millis), apart);
        assert_eq!(found, reported, "{millis}");
    }
}
