//! What is counted, and how it is written.

use super::class::ExtensionResult;
use super::counters::Counters;
use super::nodes::NodeSample;
use crate::events::event::{GaveUpReason, LossReason};
use crate::events::release::ReleaseOutcome;
use crate::fault::counts::FaultCounts;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::latency::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn has(counters: &Counters, line: &str) {
    let text = counters.prometheus_text();
    assert!(
        text.lines().any(|shown| shown == line),
        "{line} is not in\n{text}"
    );
}

#[test]
fn calls_and_guards_are_counted_by_class() {
    let counters = Counters::by_prefix('/');
    let class = counters.class(counters.class_of("a\"b\\c\nd/1"));
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
    let shows = |name: &str, labels: &str, value: &str| {
        let line = format!("quorumlock_{name}{{class=\"a\\\"b\\\\c\\nd\"{labels}}} {value}");
        has(&counters, &line);
    };
    let acquired = r#",outcome="acquired""#;
    let timed_out = r#",outcome="timed_out""#;
    shows(
        "wait_seconds_bucket",
        &format!("{acquired},le=\"0.001\""),
        "0",
    );
    shows(
        "wait_seconds_bucket",
        &format!("{acquired},le=\"0.0025\""),
        "1",
    );
    shows("wait_seconds_sum", acquired, "0.001500000");
    shows(
        "wait_seconds_bucket",
        &format!("{timed_out},le=\"60\""),
        "0",
    );
    shows(
        "wait_seconds_bucket",
        &format!("{timed_out},le=\"+Inf\""),
        "1",
    );
    shows("wait_seconds_sum", timed_out, "61");
    shows("wait_seconds_count", r#",outcome="cancelled""#, "0");
    shows("waiting", "", "0");
    shows("held", "", "1");
    shows("attempts_total", r#",result="won""#, "1");
    shows(
        "releases_total",
        r#",outcome="released",dropped="true""#,
        "1",
    );
    shows(
        "extensions_total",
        r#",result="lost",automatic="true""#,
        "1",
    );
    shows("lost_total", r#",reason="lease_ended""#, "1");
    class.lets_go(Some(Duration::from_nanos(2)));
    shows("held", "", "0");
    shows("hold_seconds_sum", "", "0.000000002");
}

#[test]
fn a_class_that_cannot_be_told_is_other() {
    let counters = Counters::by_class(|name| {
        if name == "bad" {
            panic!("on purpose")
        } else {
            name
        }
    });
    let long = "x".repeat(129);
    for name in ["bad", &long] {
        counters.class(counters.class_of(name)).holds();
    }
    has(&counters, "quorumlock_held{class=\"other\"} 2");
    assert!(!counters.prometheus_text().contains("xxx"));
}

#[test]
fn all_slots_of_a_semaphore_are_in_its_class() {
    let counters = Counters::by_class(|name| name);
    let class = |name| counters.class_of(name);
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
    counters.watch_nodes(move || Some(vec![one.clone()]));
    has(&counters, "quorumlock_node_votes{node=\"10.0.0.1:6379\"} 1");
    has(&counters, "quorumlock_quorum 1");
    counters.watch_nodes(move || Some(vec![two.clone()]));
    let is_there = Arc::new(AtomicBool::new(true));
    let watched = Arc::clone(&is_there);
    counters.watch_nodes(move || watched.load(Ordering::Relaxed).then(|| vec![three.clone()]));
    has(&counters, "quorumlock_node_up{node=\"10.0.0.1:6379\"} 0");
    is_there.store(false, Ordering::Relaxed);
    has(
        &counters,
        "quorumlock_node_reply_seconds_bucket{node=\"10.0.0.1:6379\",le=\"0.000004000\"} 2",
    );
    has(
        &counters,
        "quorumlock_node_reply_seconds_bucket{node=\"10.0.0.1:6379\",le=\"0.000256000\"} 4",
    );
    has(
        &counters,
        "quorumlock_node_reply_seconds_bucket{node=\"10.0.0.1:6379\",le=\"+Inf\"} 6",
    );
    has(
        &counters,
        "quorumlock_node_reply_seconds_sum{node=\"10.0.0.1:6379\"} 400.000406000",
    );
    let fault = "{node=\"10.0.0.1:6379\",phase=\"reply\",cause=\"timed out\"} 2";
    has(&counters, &format!("quorumlock_node_faults_total{fault}"));
    has(&counters, "quorumlock_node_up{node=\"10.0.0.1:6379\"} 1");
    has(&counters, "quorumlock_node_votes{node=\"10.0.0.1:6379\"} 0");
    has(
        &counters,
        "quorumlock_node_quarantine_seconds{node=\"10.0.0.1:6379\"} 5",
    );
    has(
        &counters,
        "quorumlock_node_mismatch{node=\"10.0.0.1:6379\",of=\"max_ttl\"} 1",
    );
    has(
        &counters,
        "quorumlock_node_mismatch{node=\"10.0.0.1:6379\",of=\"nodes\"} 0",
    );
    has(&counters, "quorumlock_nodes 1");
}

#[test]
fn without_a_client_there_are_no_nodes() {
    has(&Counters::new(), "quorumlock_nodes 0");
    has(&Counters::new(), "quorumlock_quorum 0");
    has(&Counters::new(), "quorumlock_events_dropped_total 0");
}
