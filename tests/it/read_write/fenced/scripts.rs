//! What the script does about the number of a key: when it is raised, how long it is kept, and what
//! bounds it.

use super::super::{KEY, ask, entries, is_marked, long, read, servers};
use super::{DAY, HOUR, fenced, is_free, micros, number, set, stored};
use crate::prelude::*;
use quorumlock::algorithm::fence::LEAD_LIMIT;

#[test]
fn the_number_stays_in_the_key_for_its_time_and_no_write_of_another_changes_that() {
    let is_kept = |server: &Server, time: Duration| {
        left(server, KEY)
            .is_some_and(|left| left > time - SOON && left <= time + Duration::from_millis(1))
    };
    for server in servers() {
        let mutex = fenced(&client([&server]));
        let guard = number(&mutex);
        let (last, until) = stored(&server).expect("it has a number");
        assert_eq!((last, entries(&server)), (guard.fence().get(), ('w', 1)));
        assert!(is_kept(&server, DAY));
        let handle = CancelHandle::new();
        let wait = Wait::unlimited().cancelled_by(&handle);
        thread::scope(|scope| {
            let waiting =
                scope.spawn(|| fenced(&client([&server])).write.lock_with(&wait).map(drop));
            assert_soon!(is_marked(&server), "a writer waits");
            assert_eq!(stored(&server), Some((last, until)));
            handle.cancel();
            fails(waiting.join().unwrap(), ErrorKind::Cancelled);
        });
        unlock(guard);
        assert_eq!(stored(&server), Some((last, until)));
        // Neither a reader nor a writer without a number takes it away or keeps it for longer.
        let plain = long(&client([&server]));
        let reader = wait_for(&plain.read);
        assert_eq!(
            (entries(&server), stored(&server)),
            (('r', 1), Some((last, until)))
        );
        drop(reader);
        drop(wait_for(&plain.write));
        assert_soon!(is_free(&server));
        assert!(stored(&server) == Some((last, until)) && is_kept(&server, DAY));
        // An extension of a writer with a number keeps it for longer.
        let kept = builder([&server]).fence_retention(2 * DAY).build().unwrap();
        let guard = number(&fenced(&kept));
        let before = stored(&server).unwrap();
        thread::sleep(Duration::from_millis(5));
        extend(&guard, LONG_TTL);
        let after = stored(&server).unwrap();
        assert!(
            before.0 == after.0 && before.1 < after.1 && is_kept(&server, 2 * DAY),
            "{before:?} {after:?}"
        );
        drop(guard);
        // One with a shorter time takes nothing away.
        assert_soon!(is_free(&server));
        drop(number(&mutex));
        assert!(eventually(SOON, || is_free(&server)) && is_kept(&server, 2 * DAY));
    }
}

#[test]
fn a_number_ends_with_its_time_and_not_with_readers() {
    for server in servers() {
        let now = micros() / 1000;
        set(&server, &format!("f {} {}", micros() + HOUR, now + 2000));
        let plain = long(&client([&server]));
        let reader = read(&plain);
        assert!(stored(&server).is_some() || micros() / 1000 >= now + 2000);
        // Readers that are there all the time do not keep it.
        let has_ended = || {
            drop(read(&long(&client([&server]))));
            value(&server, KEY).is_some() && stored(&server).is_none()
        };
        assert_soon!(has_ended());
        drop(reader);
        assert_soon!(value(&server, KEY).is_none(), "nothing is left of it");
    }
}

#[test]
fn a_raise_needs_the_entry_of_its_own_writer() {
    for server in servers() {
        let [ours, theirs] = ["1", "2"].map(|digit| digit.repeat(40));
        let acquire = |token: &str, access: &str| {
            let least = ["600000", "1"];
            ask(
                &server,
                &[
                    &["acquire", token, "60000", access],
                    &least[..if access == "w" { 2 } else { 0 }],
                ]
                .concat(),
            )
        };
        let raise = |token: &str, to: u64| {
            ask(
                &server,
                &["extend", token, "0", "w", "600000", &to.to_string()],
            )
        };
        let given = |answer: Answer| match answer {
            Answer::Text(number) => number.parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        let far = micros() + HOUR;
        // The entry is another writer's: its number was decided without us.
        assert_eq!(raise(&ours, far), Answer::Number(0));
        let first = given(acquire(&theirs, "w"));
        assert_eq!(raise(&ours, far), Answer::Number(-1));
        assert_eq!(given(acquire(&theirs, "w")), first, "it has not moved");
        // With its own entry, it is raised.
        assert_eq!(raise(&theirs, far), Answer::Number(1));
        assert_eq!(
            (given(acquire(&theirs, "w")), raise(&theirs, 1)),
            (far, Answer::Number(1)),
            "and not lowered"
        );
        assert_eq!(given(acquire(&theirs, "w")), far);
        // As a reader, it has no number any more.
        assert_eq!(
            ask(&server, &["extend", &theirs, "60000", "r"]),
            Answer::Number(1)
        );
        assert_eq!(raise(&theirs, far + 1), Answer::Number(-1));
        assert_eq!(acquire(&ours, "r"), Answer::Number(1));
        assert_eq!(
            [&ours, &theirs].map(|token| ask(&server, &["release", token])),
            [Answer::Number(1), Answer::Number(1)]
        );
        assert_eq!(raise(&theirs, far + 1), Answer::Number(0));
        assert_eq!(given(acquire(&ours, "w")), far + 1, "the next one");
        // An entry that has ended is no entry.
        set(
            &server,
            &format!("f {far} {} w 1 {ours}", micros() / 1000 + 60_000),
        );
        assert_eq!(raise(&ours, far + 1), Answer::Number(0));
        assert_eq!(stored(&server).map(|(last, _)| last), Some(far));
    }
}

/// A client treats it as the number of any other lock.
#[test]
fn a_number_that_a_node_issues_is_no_more_than_a_day_and_a_minute_ahead() {
    let server = Server::start().unwrap();
    for (lead, is_given) in [(LEAD_LIMIT, true), (LEAD_LIMIT + HOUR, false)] {
        let text = format!("f {} {}", micros() + lead, micros() / 1000 + 600_000);
        set(&server, &text);
        let words = ["acquire", &"1".repeat(40), "60000", "w", "600000", "1"];
        let answer = ask(&server, &words);
        assert_eq!(matches!(answer, Answer::Text(_)), is_given, "{answer:?}");
        if !is_given {
            assert_eq!(value(&server, KEY), Some(text));
        }
    }
}
