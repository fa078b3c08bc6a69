//! Tests of votes and their count: tables of rows, every count of up to nine nodes against a model
//! that only adds, every row of up to six nodes, and votes in any order.

use super::*;
use crate::fault::{Cause, Phase};
use std::fmt;

/// In the order of the sets of a tally.
const KINDS: [Vote; 4] = [
    Vote::Granted,
    Vote::Refused,
    Vote::Absent,
    Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
];

/// `g`ranted, `r`efused, `a`bsent, fault `x`, undecided `_`: one letter a node.
fn tally(row: &str) -> Tally {
    let mut tally = Tally::new(row.len());
    for (index, letter) in row.chars().enumerate() {
        let vote = match letter {
            'g' => Vote::Granted,
            'r' => Vote::Refused,
            'a' => Vote::Absent,
            'x' => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
            _ => continue,
        };
        assert!(tally.record(NodeId::new(index), vote));
    }
    tally
}

/// Each row of votes has this outcome.
#[track_caller]
fn check<V: PartialEq + fmt::Debug>(
    table: impl IntoIterator<Item = (V, &'static str)>,
    outcome: impl Fn(&Tally) -> V,
) {
    for (expected, rows) in table {
        for row in rows.split(' ') {
            assert_eq!(outcome(&tally(row)), expected, "{row}");
        }
    }
}

#[test]
fn a_quorum_may_still_grant_while_enough_nodes_are_undecided() {
    for row in ["_", "g", "g_", "gg", "__r", "g_x", "ggr", "g__rr", "___ax"] {
        assert!(tally(row).can_be_won(), "{row}");
    }
    for row in ["r", "gr", "_x", "gax", "_rx", "gg_rrx", "__xrr"] {
        assert!(!tally(row).can_be_won(), "{row}");
    }
}

#[test]
fn acquisitions_are_decided_as_soon_as_they_are_certain() {
    use Outcome::*;
    let table = [
        (Won, "g gg gg_ ggr ggx ggg_ ggg__ gggg__"),
        (
            Held,
            "r gr r_ grr rr_ grx rx_ rrx ggrr rr__ rx__ ggxrr ggxxr rrr__ rrx__ gggrrr rrr___ rxx___",
        ),
        (
            Pending,
            "_ g_ g__ gr_ gg__ ggr_ x___ ggxr_ gg___ rr___ ggg___ xx____",
        ),
        (
            Unavailable,
            "x x_ gx xx_ rxx gxx ggxx xx__ ggxxx xxx__ rxxx_ xxx___ gggxxx",
        ),
    ];
    check(table, Tally::acquisition);
}

#[test]
fn releases_are_expired_only_where_no_quorum_can_have_held_the_token() {
    use ReleaseVerdict::*;
    let table = [
        (Released, "g gg gg_ ggr gggr ggg__"),
        (Expired, "r gr r_ rx rr_ grr rrx ggrr rr__ rrr__ grrr_"),
        (
            Pending,
            "_ g_ x_ gr_ rx_ gx_ ggr_ grr__ ggr__ ggrr_ grrx_ ggxx_ rrxx_ rr___",
        ),
        (
            Unavailable,
            "x gx grx rxx gxx xx_ ggrx ggrxx ggrrx ggxxx rrxxx",
        ),
    ];
    check(table, Tally::release);
}

#[test]
fn extensions_are_lost_only_where_no_quorum_can_hold_the_token() {
    use ExtensionVerdict::*;
    let table = [
        (Extended, "g gg gg_ gga ggr ggx ggg_ ggg__ gggg__"),
        (
            Lost,
            "r a ga a_ ra_ aa_ gra ggaa raa__ gaar_ gggaaa aaa___ aaaa__",
        ),
        (
            Pending,
            "_ g_ x_ ga_ gx_ ax_ ggaa_ gaax_ ggxx_ gaa__ ra___ raxx_ ggg___",
        ),
        (
            Unavailable,
            "x gax axx gxx xx_ ggxx ggaxr gaaxx raxxx ggxxx xxx__ gggxxx",
        ),
    ];
    check(table, Tally::extension);
    assert_eq!(
        tally("gar_a").absent(),
        [1, 4].map(NodeId::new).into_iter().collect()
    );
}

/// Every way in which up to nine nodes can have voted, by a reckoning of its own: more than half is
/// twice more than all.
#[test]
fn thresholds_are_those_of_a_majority() {
    let mut rows = 0;
    let (most, ways) = if cfg!(miri) { (3, 55) } else { (9, 2001) };
    for nodes in 1..=most {
        let more_than_half = |count: usize| 2 * count > nodes;
        for code in 0..10_usize.pow(4) {
            let [granted, refused, absent, failed] =
                [1, 10, 100, 1000].map(|place| code / place % 10);
            let Some(undecided) = nodes.checked_sub(granted + refused + absent + failed) else {
                continue;
            };
            let row = [
                "g".repeat(granted),
                "r".repeat(refused),
                "a".repeat(absent),
                "x".repeat(failed),
                "_".repeat(undecided),
            ];
            let row = row.concat();
            let denied = refused + absent;
            let tally = tally(&row);
            let acquired = match () {
                () if more_than_half(granted) => Outcome::Won,
                () if more_than_half(granted + undecided) => Outcome::Pending,
                () if denied > 0 && more_than_half(nodes - failed) => Outcome::Held,
                () => Outcome::Unavailable,
            };
            assert_eq!(tally.acquisition(), acquired, "{row}");
            let (released, extended) = match () {
                () if more_than_half(granted) => {
                    (ReleaseVerdict::Released, ExtensionVerdict::Extended)
                }
                () if !more_than_half(nodes - denied) => {
                    (ReleaseVerdict::Expired, ExtensionVerdict::Lost)
                }
                () if more_than_half(granted + undecided)
                    || !more_than_half(nodes - denied - undecided) =>
                {
                    (ReleaseVerdict::Pending, ExtensionVerdict::Pending)
                }
                () => (ReleaseVerdict::Unavailable, ExtensionVerdict::Unavailable),
            };
            assert_eq!(tally.release(), released, "{row}");
            assert_eq!(tally.extension(), extended, "{row}");
            rows += 1;
        }
    }
    assert_eq!(rows, ways, "the ways to divide up to {most} nodes in five");
}

/// Of two URLs of one server, the one that does not vote may be the first to set or to delete the
/// key.
#[test]
fn a_grant_through_another_connection_is_the_nodes_own() {
    let deleted = |row: &str| {
        let mut tally = tally(row);
        tally.granted_at(NodeId::new(0));
        tally
    };
    assert_eq!(deleted("rg_").release(), ReleaseVerdict::Released);
    assert_eq!(deleted("xgx").release(), ReleaseVerdict::Released);
    assert_eq!(deleted("_g_").release(), ReleaseVerdict::Released);
    assert_eq!(deleted("r__").release(), ReleaseVerdict::Pending);
    for row in ["g__", "r__", "a__", "x__", "___"] {
        assert_eq!(deleted(row), tally("g__"), "{row}");
        assert!(!deleted(row).record(NodeId::new(0), Vote::Refused), "{row}");
    }
}

#[test]
fn a_grant_that_is_taken_back_is_as_one_that_has_not_come() {
    let mut tally = Tally::new(3);
    let node = NodeId::new(1);
    tally.record(node, Vote::Granted);
    assert!(tally.take_back(node));
    assert!(!tally.take_back(node), "once");
    assert!(tally.granted().is_empty());
}

#[test]
fn an_attempt_is_hopeless_when_permanent_faults_leave_no_quorum() {
    for nodes in 1..=9 {
        for permanent in 0..=nodes {
            let mut tally = Tally::new(nodes);
            for node in 0..nodes {
                let cause = if node < permanent {
                    Cause::Auth
                } else {
                    Cause::TimedOut
                };
                tally.record(
                    NodeId::new(node),
                    Vote::Fault(Fault::new(Phase::Handshake, cause)),
                );
            }
            assert_eq!(
                tally.is_quorum_impossible(),
                2 * (nodes - permanent) <= nodes,
                "{permanent} of {nodes}"
            );
        }
    }
}

/// The longest row of which there is every one.
const MOST_VOTES: usize = if cfg!(miri) { 3 } else { 6 };

/// Every row of these letters for up to this many nodes.
fn rows(letters: &str, nodes: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut longest = vec![String::new()];
    for _ in 0..nodes {
        longest = longest
            .iter()
            .flat_map(|row| letters.chars().map(move |letter| format!("{row}{letter}")))
            .collect();
        all.extend_from_slice(&longest);
    }
    all
}

/// However the undecided nodes vote, a verdict once given stays, and "Held or Unavailable" never
/// turns into "Won".
#[test]
fn verdicts_are_final() {
    for row in rows("grax_", MOST_VOTES) {
        let early = tally(&row);
        let undecided = early.undecided().len();
        for later in rows("grax", undecided)
            .iter()
            .filter(|later| later.len() == undecided)
        {
            let mut later = later.chars();
            let full: String = row
                .chars()
                .map(|vote| {
                    if vote == '_' {
                        later.next().unwrap()
                    } else {
                        vote
                    }
                })
                .collect();
            let late = tally(&full);
            assert_ne!(late.acquisition(), Outcome::Pending, "{full}");
            assert_ne!(late.release(), ReleaseVerdict::Pending, "{full}");
            assert_ne!(late.extension(), ExtensionVerdict::Pending, "{full}");
            if early.acquisition() != Outcome::Pending {
                assert_eq!(
                    early.acquisition() == Outcome::Won,
                    late.acquisition() == Outcome::Won,
                    "{row} {full}"
                );
            }
            if early.release() != ReleaseVerdict::Pending {
                assert_eq!(early.release(), late.release(), "{row} {full}");
            }
            if early.extension() != ExtensionVerdict::Pending {
                assert_eq!(early.extension(), late.extension(), "{row} {full}");
            }
        }
    }
}

/// Votes count, and not when they come: every sequence of five votes of three nodes, in which a
/// node may repeat itself or change its vote. The first vote of each counts, in any order. What is
/// decided on the way stays decided.
#[test]
fn only_first_votes_count_in_any_order() {
    const NODES: usize = 3;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let ways = NODES * KINDS.len();
    let places = if cfg!(miri) { 2 } else { 5 };
    for code in 0..ways.pow(places) {
        let votes = (0..places)
            .map(|place| code / ways.pow(place) % ways)
            .map(|vote| (vote / KINDS.len(), vote % KINDS.len()));
        let mut counted = Tally::new(NODES);
        let mut first = [None; NODES];
        for (node, kind) in votes {
            let before = counted;
            assert_eq!(
                counted.record(NodeId::new(node), KINDS[kind]),
                first[node].is_none()
            );
            assert!(first[node].is_none() || counted == before);
            first[node] = first[node].or(Some(kind));
            assert!(before.acquisition() != Outcome::Won || counted.acquisition() == Outcome::Won);
            assert!(
                before.acquisition() == Outcome::Pending
                    || counted.acquisition() != Outcome::Pending
            );
            let was_lost = !matches!(before.acquisition(), Outcome::Pending | Outcome::Won);
            assert!(!was_lost || counted.acquisition() != Outcome::Won);
            assert!([ReleaseVerdict::Pending, counted.release()].contains(&before.release()));
            assert!([ExtensionVerdict::Pending, counted.extension()].contains(&before.extension()));
        }
        for order in orders {
            let mut again = Tally::new(NODES);
            for node in order {
                assert!(
                    first[node].is_none_or(|kind| again.record(NodeId::new(node), KINDS[kind]))
                );
            }
            assert_eq!(again, counted);
        }
        let of = |wanted: usize| -> NodeSet {
            (0..NODES)
                .filter(|&node| first[node] == Some(wanted))
                .map(NodeId::new)
                .collect()
        };
        let sets = [
            counted.granted(),
            counted.refused(),
            counted.absent(),
            counted.faulted(),
        ];
        assert_eq!(sets, [0, 1, 2, 3].map(of));
    }
}
