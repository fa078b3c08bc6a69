//! Which settings are refused, and what is not shown of them.

use super::*;
use crate::events::error::ErrorKind;

fn refusal(builder: Builder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn unusable_settings_are_refused_by_name() {
    let one = || Builder::new().node("redis://h");
    let Settings {
        retry_min,
        retry_max,
        ..
    } = Settings::default();
    let table = [
        (Builder::new(), "no node"),
        (one().node("nonsense"), "node 1: not a node URL"),
        (
            one().node("redis://:hunter2@g?durable=yes"),
            "node 1: durable takes",
        ),
        (
            one().node("redis://:hunter2@g?server_name=hunter3"),
            "node 1: server_name is for rediss:// nodes only",
        ),
        (
            one().node("redis://:hunter2@h:6379/3"),
            "node 1 is node 0 again (h:6379)",
        ),
        (
            Builder::new().nodes((1..=65).map(|port| format!("redis://h:{port}"))),
            "65 nodes",
        ),
        (one().node_timeout(Duration::ZERO), "node_timeout"),
        (
            one().node_timeout(Duration::MAX),
            "node_timeout must be between 1 ms and 366 days",
        ),
        (one().spin(Duration::from_millis(11)), "spin"),
        (one().drift_factor(-0.1), "drift_factor"),
        (one().drift_factor(1.0), "drift_factor"),
        (one().drift_factor(f64::NAN), "drift_factor"),
        (one().retry_delay(Duration::ZERO, retry_max), "retry_delay"),
        (one().retry_delay(retry_max, retry_min), "retry_delay"),
        (
            one().retry_delay(retry_min, Duration::MAX),
            "retry_delay must be more than zero and at most 366 days",
        ),
        (one().max_ttl(Duration::ZERO), "max_ttl"),
        (one().max_ttl(Duration::MAX), "max_ttl"),
        (
            one().ttl(Duration::from_secs(61)),
            "ttl (61 s) is longer than max_ttl (60 s)",
        ),
        (one().label(""), "label must be"),
        (one().label("two words"), "label must be"),
        (one().label("l".repeat(65)), "label must be"),
        (one().fence_retention(Duration::MAX), "fence_retention"),
        (one().place_lease(Duration::MAX), "place_lease"),
    ];
    for (builder, words) in table {
        let message = refusal(builder);
        assert!(
            message.contains(words) && !message.contains("hunter2"),
            "{message}"
        );
    }
}

#[test]
fn the_default_time_to_live_is_no_longer_than_the_longest() {
    for (longest, ttl) in [(4, 4), (60, 10)] {
        let builder = Builder::new()
            .node("redis://203.0.113.1")
            .max_ttl(Duration::from_secs(longest));
        assert_eq!(builder.settings.default_ttl(), Duration::from_secs(ttl));
        assert!(builder.build().is_ok());
    }
}

#[test]
fn building_connects_to_nobody() {
    let nodes = (1..=64).map(|port| format!("redis://203.0.113.1:{port}"));
    assert!(Builder::new().nodes(nodes).build().is_ok());
}

#[test]
fn the_builder_does_not_show_passwords() {
    let builder = Builder::new().node("redis://:hunter2@h");
    assert!(!format!("{builder:?} {:?}", builder.clone().build().unwrap()).contains("hunter2"));
}

#[test]
fn what_is_declared_of_one_node_counts_over_what_is_declared_of_all() {
    let durable = |all: bool| {
        let nodes = [
            "redis://a",
            "redis://b?durable=true",
            "redis://c?durable=false",
        ];
        let status = Builder::new()
            .durable(all)
            .nodes(nodes)
            .build()
            .unwrap()
            .nodes()
            .unwrap();
        status
            .iter()
            .map(crate::api::node_status::NodeStatus::is_durable)
            .collect::<Vec<_>>()
    };
    assert_eq!(durable(false), [false, true, false]);
    assert_eq!(durable(true), [true, true, false]);
}
