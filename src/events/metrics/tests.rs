//! What is counted, and how it is written.

use super::class::ExtensionResult;
use super::counters::Counters;
use super::nodes::NodeSample;
use super::nodes::tests::client;
use crate::events::event::{GaveUpReason, LossReason};
use crate::events::release::ReleaseOutcome;
use crate::fault::counts::FaultCounts;
use crate::fault::{Cause, Fault, Phase};
use crate::os::caught::tests::PanicsWhenDropped;
use crate::protocol::latency::Histogram;
use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;

/// All these lines are shown, whose names are without their common beginning.
#[track_caller]
fn has(counters: &Counters, lines: &str) {
    let text = counters.prometheus_text();
    for line in lines
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
    {
        let line = format!("quorumlock_{line}");
        assert!(
            text.lines().any(|shown| shown == line),
            "{line} is not in\n{text}"
        );
    }
}

#[test]
fn calls_and_guards_are_counted_by_class() {
    let counters = Counters::by_prefix('/');
    let class = counters.class_of("a\"b\\c\nd/1");
    class.waits();
    class.call_ended(0, Duration::from_micros(1_500), true);
    class.acquired(Default::default());
    class.call_ended(
        GaveUpReason::TimedOut as usize,
        Duration::from_secs(61),
        false,
    );
    class.released(Some(ReleaseOutcome::Released), true);
    class.extended(ExtensionResult::Lost, true);
    class.lost(LossReason::LeaseEnded);
    let shows = |lines: &str| has(&counters, &lines.replace("CLASS", r#"class="a\"b\\c\nd""#));
    shows(
        r#"
        wait_seconds_bucket{CLASS,outcome="acquired",le="0.001"} 0
        wait_seconds_bucket{CLASS,outcome="acquired",le="0.0025"} 1
        wait_seconds_sum{CLASS,outcome="acquired"} 0.001500000
        wait_seconds_bucket{CLASS,outcome="timed_out",le="60"} 0
        wait_seconds_bucket{CLASS,outcome="timed_out",le="+Inf"} 1
        wait_seconds_sum{CLASS,outcome="timed_out"} 61
        wait_seconds_count{CLASS,outcome="cancelled"} 0
        waiting{CLASS} 0
        held{CLASS} 1
        attempts_total{CLASS,result="won"} 1
        releases_total{CLASS,outcome="released",dropped="true"} 1
        extensions_total{CLASS,result="lost",automatic="true"} 1
        lost_total{CLASS,reason="lease_ended"} 1
    "#,
    );
    class.lets_go(Some(Duration::from_nanos(2)));
    shows("held{CLASS} 0\nhold_seconds_sum{CLASS} 0.000000002");
}

#[test]
fn a_class_that_cannot_be_told_is_other() {
    let counters = Counters::by_class(|name| match name {
        "bad" => panic!("on purpose"),
        "worse" => panic_any(PanicsWhenDropped),
        _ => name,
    });
    let long = "x".repeat(129);
    for name in ["bad", "worse", &long] {
        counters.class_of(name).holds();
    }
    has(&counters, r#"held{class="other"} 3"#);
    assert!(!counters.prometheus_text().contains("xxx"));
}

#[test]
fn all_slots_of_a_semaphore_are_in_its_class() {
    let counters = Counters::by_class(|name| name);
    let class = |name| &*counters.class_of(name).name;
    assert!(class("jobs") == class("jobs#0") && class("jobs") == class("jobs#17"));
    assert!(class("jobs") != class("jobs#") && class("jobs") != class("jobs#a1"));
}

#[test]
fn nodes_are_shown_as_the_least_of_their_clients_sees_them() {
    let counters = Counters::new();
    let mut replies = Histogram::default();
    let mut faults = FaultCounts::default();
    [3, 200, 200_000_000]
        .into_iter()
        .for_each(|micros| replies.record(Duration::from_micros(micros)));
    faults.record(Fault::new(Phase::Reply, Cause::TimedOut));
    let node = |is_up, votes, seconds: u64| NodeSample {
        address: "10.0.0.1:6379".into(),
        is_up,
        votes,
        quarantine: Duration::from_secs(seconds),
        mismatches: [seconds == 5, false, false],
        replies: replies.clone(),
        faults: faults.clone(),
    };
    let one = node(true, true, 0);
    let two = node(true, false, 5);
    let three = node(false, false, 7);
    let shows = |lines: &str| has(&counters, &lines.replace("NODE", r#"node="10.0.0.1:6379""#));
    let watched = |node| {
        let client = client(vec![node]);
        counters.watch_nodes(Arc::downgrade(&client));
        client
    };
    let _one = watched(one);
    shows("node_votes{NODE} 1\nquorum 1");
    let _two = watched(two);
    let three = watched(three);
    shows("node_up{NODE} 0");
    drop(three);
    shows(
        r#"
        node_reply_seconds_bucket{NODE,le="0.000004000"} 2
        node_reply_seconds_bucket{NODE,le="0.000256000"} 4
        node_reply_seconds_bucket{NODE,le="+Inf"} 6
        node_reply_seconds_sum{NODE} 400.000406000
        node_faults_total{NODE,phase="reply",cause="timed out"} 2
        node_up{NODE} 1
        node_votes{NODE} 0
        node_quarantine_seconds{NODE} 5
        node_mismatch{NODE,of="max_ttl"} 1
        node_mismatch{NODE,of="nodes"} 0
        nodes 1
    "#,
    );
}

#[test]
fn without_a_client_there_are_no_nodes() {
    has(
        &Counters::new(),
        "
        nodes 0
        quorum 0
        events_dropped_total 0
    ",
    );
}
