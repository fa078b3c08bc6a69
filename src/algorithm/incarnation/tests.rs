//! Tests of the rules about incarnations: tables of what is found at the nodes, a letter or word
//! for each.

use super::mismatch::Mismatch;
use super::summary::NodeNote;
use super::*;

const TTL: Duration = Duration::from_secs(60);
const NOW: u64 = 1_000_000_000_000;

fn id(name: char) -> [u8; 40] {
    [name as u8; 40]
}

fn incarnation(run: char, current: char, former: char) -> Incarnation {
    Incarnation {
        run_id: RunId::new(&id(run)).unwrap(),
        replication: ReplicationIds::new(&id(current), &id(former)).unwrap(),
    }
}

fn present() -> Incarnation {
    incarnation('p', 'a', '0')
}

/// What was found, a word: `-` nothing, `!` damage; `f` or `s`, founder or since, and the age in
/// tenths of a second; in front, `o` a note of another process. Behind it, `x` the noted time to
/// live is 10 s, `X` 100 s. `?` is untold, `_` silent.
fn seen(word: &str) -> Seen {
    let found = match word {
        "?" => return Seen::Untold,
        "_" => return Seen::Silent,
        "-" => Found::Nothing,
        "!" => Found::Damage,
        word => {
            let (word, is_other) = word
                .strip_prefix('o')
                .map_or((word, false), |rest| (rest, true));
            let origin = if word.starts_with('f') {
                Origin::Founder
            } else {
                Origin::Since
            };
            let tenths: i64 = word[1..].trim_end_matches(['x', 'X']).parse().unwrap();
            let time = NOW.checked_add_signed(-tenths * 100_000).unwrap();
            let max_ttl = match word.chars().last().unwrap() {
                'x' => Duration::from_secs(10),
                'X' => Duration::from_secs(100),
                _ => TTL,
            };
            let incarnation = if is_other {
                incarnation('q', 'b', '0')
            } else {
                present()
            };
            Found::Note(Note {
                incarnation,
                origin,
                time,
                wall: time,
                max_ttl,
                nodes: 3,
            })
        }
    };
    Seen::Look(Look {
        found,
        present: present(),
        time: NOW,
        wall: NOW,
    })
}

fn all_seen(words: &str) -> Vec<Seen> {
    words.split(' ').map(seen).collect()
}

fn rules(policy: RestartPolicy) -> Rules {
    Rules {
        policy,
        max_ttl: TTL,
    }
}

/// What is written at each node: `f` or `s`, with `x` or `X` as in [`seen`], `=` where the note
/// keeps its times, `.` is nothing.
fn written(policy: RestartPolicy, words: &str) -> String {
    let seen = all_seen(words);
    let rules = rules(policy);
    let notes = rules.notes(&seen, rules.longest(&seen));
    let word = |index| {
        let Some((_, new)) = notes.iter().find(|(node, _)| node.index() == index) else {
            return ".".to_owned();
        };
        let keeps = if new.keeps_times { "=" } else { "" };
        let letter = if new.note.origin == Origin::Founder {
            "f"
        } else {
            "s"
        };
        format!(
            "{letter}{keeps}{}",
            if new.note.max_ttl == TTL { "" } else { "X" }
        )
    };
    (0..seen.len()).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_deployment_is_founded_where_a_quorum_has_nothing_old() {
    use RestartPolicy::*;
    for (found, observed, strict) in [
        ("-", "f", "s"),
        ("- - -", "f f f", "s s s"),
        ("- - _", "f f .", "s s ."),
        ("- _ _", ". . .", ". . ."),
        ("- _ ?", "f . .", "s . ."),
        ("- - ?", "f f .", "s s ."),
        // Another program founds it at the same time, also if it took some nodes for late.
        ("f5 - -", ". f f", ". s s"),
        ("s5 - -", ". s s", ". s s"),
        ("f10 - -", ". s s", ". s s"),
        ("s10 - -", ". s s", ". s s"),
        ("! - -", "s s s", "s s s"),
        ("of5 - -", "f f f", "s s s"),
        ("of600 - -", "s s s", "s s s"),
        // Known, and well.
        ("f600 f600 f600", ". . .", ". . ."),
        ("f600 f600 -", ". . s", ". . s"),
        ("f600 s5 s600", ". . .", ". . ."),
        // Times ahead.
        ("f600 f-9 f-11", ". . .", ". . s"),
        ("f600 s-9 s-11", ". . s", ". . s"),
        // A longer time to live, here or there.
        ("f600x f600 f600", "f= . .", "f= . ."),
        ("f600x s5x -", "f= s= s", "f= s= s"),
        ("f600X f600 -", ". . sX", ". . sX"),
    ] {
        assert_eq!(written(Observed, found), observed, "{found}");
        assert_eq!(written(Off, found), observed, "{found}");
        assert_eq!(written(Strict, found), strict, "{found}");
    }
}

#[test]
fn a_node_counts_as_a_founder_or_at_the_age_of_the_longest_time_to_live() {
    use RestartPolicy::*;
    use Standing::*;
    let waits = |tenths: u64| Waits(Duration::from_millis(100 * tenths));
    for (found, observed, strict) in [
        ("-", Unnoted, Unnoted),
        ("!", Unnoted, Unnoted),
        ("of600", Unnoted, Unnoted),
        ("f0", Counts, waits(600)),
        ("f600", Counts, Counts),
        ("f-10", Counts, waits(600)),
        ("f-11", Counts, Unnoted),
        ("s-11", Unnoted, Unnoted),
        ("s0", waits(600), waits(600)),
        ("s599", waits(1), waits(1)),
        ("s600", Counts, Counts),
        ("s600X", waits(400), waits(400)),
        ("s1000X", Counts, Counts),
        ("f600x", Unnoted, Unnoted),
    ] {
        let seen = all_seen(found);
        let standing = |policy| {
            let rules = rules(policy);
            rules.standing(seen[0].look().unwrap(), rules.longest(&seen))
        };
        assert_eq!(
            (standing(Observed), standing(Strict)),
            (observed, strict),
            "{found}"
        );
        assert_eq!(standing(Off), observed, "{found}");
    }
    // A note at another node knows of a longer one.
    let rules = rules(Observed);
    let seen = all_seen("s600 f600X _");
    assert_eq!(
        rules.standing(seen[0].look().unwrap(), rules.longest(&seen)),
        waits(400)
    );
}

#[test]
fn the_lesser_age_counts_whichever_clock_was_set() {
    let Seen::Look(mut look) = seen("s600") else {
        unreachable!()
    };
    let rules = rules(RestartPolicy::Observed);
    assert_eq!(rules.standing(&look, TTL), Standing::Counts);
    look.time += 3_600_000_000;
    look.wall -= 30_000_000;
    assert_eq!(
        rules.standing(&look, TTL),
        Standing::Waits(Duration::from_secs(30))
    );
    look.wall = 0;
    assert_eq!(
        rules.standing(&look, TTL),
        Standing::Unnoted,
        "the note's time is ahead"
    );
}

#[test]
fn no_vote_counts_before_a_longer_time_to_live_is_stored() {
    let is_longer = |words| rules(RestartPolicy::Observed).is_longer(&all_seen(words));
    for (found, longer) in [
        ("f600 f600X -", false),
        ("f600 f600x _", true),
        ("f600 s5x _", true),
        ("of600x - _", false),
    ] {
        assert_eq!(is_longer(found), longer, "{found}");
    }
}

#[test]
fn a_note_that_either_clock_calls_old_is_not_young() {
    let mut seen = all_seen("f600 - -");
    let rules = rules(RestartPolicy::Observed);
    for (time, wall) in [(NOW - 60_000_000, NOW), (NOW, NOW - 60_000_000)] {
        let Seen::Look(look) = &mut seen[0] else {
            unreachable!()
        };
        look.time = time;
        look.wall = wall;
        assert!(
            rules
                .notes(&seen, TTL)
                .iter()
                .all(|(_, new)| new.note.origin == Origin::Since),
            "{time} {wall}"
        );
    }
}

#[test]
fn a_node_that_was_noted_within_a_day_counts_when_all_have_replied() {
    let awaits = |policy, words| rules(policy).awaits_others(&all_seen(words));
    for (found, observed, strict) in [
        ("f600 f600 f600", false, true),
        ("f600 ? _", false, true),
        ("f864000 s864000 _", false, false),
        ("f600 s600 f600", true, true),
        ("f600 s863999 f600", true, true),
        // It waits anyway.
        ("f864000 s300 _", false, false),
        ("f864000 - _", false, false),
    ] {
        let awaited = (
            awaits(RestartPolicy::Observed, found),
            awaits(RestartPolicy::Strict, found),
        );
        assert_eq!(awaited, (observed, strict), "{found}");
    }
}

#[test]
fn nodes_are_judged_while_one_does_not_count_that_may() {
    let is_open = |policy, words| rules(policy).is_open(&all_seen(words));
    for (found, observed, strict) in [
        ("f600 f600 f600", false, false),
        ("f600 f600 _", false, false),
        ("f600 ? _", false, false),
        ("f600 s300 f600", false, false),
        ("f600 s5 f600", false, false),
        ("f600 - f600", true, true),
        ("f600 f600x f600", true, true),
        ("f600 of600 f600", true, true),
    ] {
        let is_opened = (
            is_open(RestartPolicy::Observed, found),
            is_open(RestartPolicy::Strict, found),
        );
        assert_eq!(is_opened, (observed, strict), "{found}");
    }
}

#[test]
fn an_incarnation_ends_with_its_process_or_a_promotion() {
    for (now, is_still) in [
        (incarnation('p', 'a', '0'), true),
        // A first replica, a backlog that was freed, `redis-cli --rdb`.
        (incarnation('p', 'b', '0'), true),
        (incarnation('q', 'a', '0'), false),
        (incarnation('p', 'b', 'a'), false),
    ] {
        assert_eq!(now.is_still(&present()), is_still, "{now:?}");
    }
    let promoted = incarnation('p', 'b', 'a');
    assert!(promoted.is_still(&promoted));
}

#[test]
fn a_time_to_live_with_a_fraction_of_a_millisecond_is_what_nodes_remember() {
    let rules = Rules::new(
        RestartPolicy::Observed,
        Duration::from_nanos(59_999_000_001),
    );
    assert_eq!(rules.max_ttl, TTL);
    assert_eq!(
        rules.standing(all_seen("f600")[0].look().unwrap(), TTL),
        Standing::Counts
    );
}

#[test]
fn another_number_of_nodes_and_another_time_to_live_are_mismatches() {
    let rules = rules(RestartPolicy::Observed);
    let longer = Mismatch::MaxTtl {
        noted: TTL + Duration::from_secs(40),
        own: TTL,
    };
    let shorter = Mismatch::MaxTtl {
        noted: Duration::from_secs(10),
        own: TTL,
    };
    let other = Mismatch::Nodes { noted: 3, own: 5 };
    assert_eq!(
        [longer, other, Mismatch::Rights].map(|found| found.kind()),
        ["max_ttl", "nodes", "rights"]
    );
    for (found, nodes, expected) in [
        ("f600", 3, &[][..]),
        ("s9", 3, &[]),
        ("s9", 5, &[other]),
        ("f600X", 3, &[longer]),
        ("of600x", 5, &[shorter, other]),
        ("-", 5, &[]),
        ("!", 5, &[]),
        ("?", 5, &[]),
        ("_", 5, &[]),
    ] {
        assert_eq!(
            rules.mismatches(&seen(found), nodes),
            expected,
            "{found} {nodes}"
        );
    }
}

#[test]
fn a_founder_has_counted_since_it_was_noted_and_another_node_since_it_has_waited() {
    let counted = |policy, word| {
        let rules = rules(policy);
        rules
            .counted_for(seen(word).look().unwrap(), TTL)
            .map(|time| time.as_secs())
    };
    for (found, observed, strict) in [
        ("f50", Some(5), None),
        ("f900", Some(90), Some(30)),
        ("s900", Some(30), Some(30)),
        ("s300", None, None),
        ("of900", None, None),
        ("-", None, None),
    ] {
        let both = (
            counted(RestartPolicy::Observed, found),
            counted(RestartPolicy::Strict, found),
        );
        assert_eq!(both, (observed, strict), "{found}");
    }
}

#[test]
fn a_note_gets_older_and_one_of_no_use_is_missing() {
    let rules = rules(RestartPolicy::Observed);
    let age = Duration::from_secs(7);
    for (found, expected) in [
        ("f50", NodeNote::Founder { age }),
        ("s50", NodeNote::Since { age }),
        ("of50", NodeNote::Missing),
        ("s-50", NodeNote::Missing),
        ("-", NodeNote::Missing),
        ("?", NodeNote::Withheld),
        ("_", NodeNote::Unknown),
    ] {
        assert_eq!(
            rules.summary(&seen(found), Duration::from_secs(2)),
            expected,
            "{found}"
        );
    }
}

#[test]
fn two_looks_show_whether_a_node_has_kept_its_data() {
    let look = |word| match seen(word) {
        Seen::Look(look) => look,
        other => panic!("{other:?}"),
    };
    let continues = |earlier, later| look(later).continues(&look(earlier));
    for same in ["-", "!", "f10", "s10", "os10"] {
        assert!(continues(same, same), "{same}");
    }
    assert!(continues("-", "s10"), "it was noted meanwhile");
    assert!(continues("s10", "s10X"), "another time to live was added");
    assert!(continues("os10", "-"), "that was about another process");
    for (earlier, later) in [
        ("s10", "-"),
        ("s10", "s20"),
        ("f10", "s10"),
        ("s10", "os10"),
    ] {
        assert!(!continues(earlier, later), "{earlier}, then {later}");
    }
    let restarted = Look {
        present: incarnation('q', 'b', '0'),
        ..look("-")
    };
    assert!(!restarted.continues(&look("-")));
}
