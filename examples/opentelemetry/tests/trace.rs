//! Runs the example, and reads the trace that it prints.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test")]

use std::process::Command;

/// The lines of each span of a name, in the order of their beginnings.
fn spans<'t>(trace: &'t str, name: &str) -> Vec<Vec<&'t str>> {
    let name = format!("Name         : {name}");
    let mut spans: Vec<_> = trace
        .split("Span #")
        .map(|span| span.lines().map(str::trim).collect::<Vec<_>>())
        .filter(|lines| lines.contains(&name.as_str()))
        .collect();
    spans.sort_by_key(|span| after(span, "Start time   : "));
    spans
}

/// What a line has behind this.
fn after<'t>(span: &[&'t str], start: &str) -> &'t str {
    let rest = span.iter().find_map(|line| line.strip_prefix(start));
    rest.unwrap_or_else(|| panic!("{start:?} is not in {span:#?}"))
}

#[test]
fn the_trace_shows_who_waited_and_held() {
    let output = Command::new(env!("CARGO_BIN_EXE_opentelemetry_example"))
        .output()
        .unwrap();
    let trace = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{trace}");
    let [waits, holds, requests] =
        ["quorumlock.wait", "quorumlock.hold", "request"].map(|name| spans(&trace, name));
    assert_eq!(
        [waits.len(), holds.len(), requests.len()],
        [2; 3],
        "{trace}"
    );
    for ((wait, hold), request) in waits.iter().zip(&holds).zip(&requests) {
        for span in [wait, hold] {
            assert_eq!(
                after(span, "TraceId      : "),
                after(request, "TraceId      : ")
            );
            assert_eq!(
                after(span, "ParentSpanId : "),
                after(request, "SpanId       : ")
            );
            assert_eq!(
                after(span, "->  lock.name: "),
                "String(Owned(\"orders/42\"))"
            );
            assert_eq!(after(span, "->  lock.kind: "), "String(Owned(\"fenced\"))");
        }
        assert_eq!(after(wait, "->  outcome: "), "String(Owned(\"acquired\"))");
        assert_eq!(after(hold, "->  outcome: "), "String(Owned(\"released\"))");
        assert!(after(hold, "->  fence: ").starts_with("I64("), "{trace}");
        // Its link.
        assert_eq!(after(hold, "SpanId : "), after(wait, "SpanId       : "));
    }
    // The second one waited while the first one held the lock.
    let times = ["Start time   : ", "End time     : "];
    let [waited_from, waited_to] = times.map(|time| after(&waits[1], time));
    let [held_from, held_to] = times.map(|time| after(&holds[0], time));
    assert!(held_from < waited_from && waited_from < held_to, "{trace}");
    assert!(waited_to < after(&holds[1], times[1]), "{trace}");
    let [first, second] = [0, 1].map(|index| after(&holds[index], "->  fence: "));
    assert!(first < second, "{trace}");
}
