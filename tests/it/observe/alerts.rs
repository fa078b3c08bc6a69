//! The alert rules, run by `promtool` on what a program serves from one scrape to the next.

use super::*;
use crate::support::exposition::{Exposition, Sample};
use std::fmt::Write;
use std::io::Write as _;

/// Buckets of a class whose calls take longer than a second: the rule fires for it, and must fire
/// for no other.
const SLOW: [(&str, &str); 3] = [("1", "0x30"), ("2.5", "0+60x30"), ("+Inf", "0+60x30")];

/// What happens before each scrape but the first: outcomes that were never seen before, and
/// classes.
const STEPS: [fn(&Redlock); 8] = [
    |client| {
        take(&long_lock(client, "orders/1"))
            .unlock()
            .map(drop)
            .unwrap()
    },
    |client| held(client, "orders/1"),
    |_| (),
    |client| held(client, "late/1"),
    |_| (),
    |client| cancelled(client, "orders/1"),
    |_| (),
    |client| cancelled(client, "late/1"),
];

/// A call that finds the lock held, and one that waits for a moment in vain.
fn held(client: &Redlock, name: &str) {
    let guard = take(&long_lock(client, name));
    assert!(is_held(&client.mutex(name)));
    assert!(is_held_for(&client.mutex(name), Duration::from_millis(5)));
    let _ = guard.unlock().unwrap();
}

fn cancelled(client: &Redlock, name: &str) {
    let _guard = take(&long_lock(client, name));
    let handle = CancelHandle::new();
    handle.cancel();
    assert!(
        client
            .mutex(name)
            .lock_with(&Wait::unlimited().cancelled_by(&handle))
            .is_err()
    );
}

/// What is served before the first call, and after each step.
fn scrapes() -> Vec<Exposition> {
    let servers = Server::several(3).unwrap();
    let counters = Counters::by_prefix('/');
    let client = builder(&servers).counters(&counters).build().unwrap();
    client.connect(SOON).unwrap();
    let scrape = || Exposition::read(&counters.prometheus_text());
    let mut scrapes = vec![scrape()];
    for step in STEPS {
        step(&client);
        scrapes.push(scrape());
    }
    scrapes
}

/// The name of a series for `promtool`, of one job.
fn series(sample: &Sample) -> String {
    let labels = sample
        .labels
        .iter()
        .map(|(name, value)| format!(",{name}=\"{value}\""));
    format!(
        "{}{{job=\"j\",instance=\"i\"{}}}",
        sample.name,
        labels.collect::<String>()
    )
}

/// A file of tests: each scrape a minute after the one before, and then the last one again and
/// again.
fn rule_tests(scrapes: &[Exposition]) -> String {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (minute, scrape) in scrapes.iter().enumerate() {
        for sample in scrape.families.iter().flat_map(|family| &family.samples) {
            let values = values.entry(series(sample)).or_default();
            values.resize(minute, "_".to_owned());
            values.push(sample.value.to_string());
        }
    }
    let mut text = format!(
        "rule_files: [{:?}]\nevaluation_interval: 15s\ntests:\n  - interval: 1m\n    input_series:\n",
        root().join("examples/observe/alerts.yml")
    );
    for (bound, values) in SLOW {
        let labels = format!("{{job=\"j\",class=\"slow\",outcome=\"acquired\",le=\"{bound}\"}}");
        let series = format!("quorumlock_wait_seconds_bucket{labels}");
        writeln!(text, "      - {{ series: '{series}', values: '{values}' }}").unwrap();
    }
    for (series, values) in values {
        let last = values.last().unwrap();
        writeln!(
            text,
            "      - {{ series: '{series}', values: '{} {last}x30' }}",
            values.join(" ")
        )
        .unwrap();
    }
    text += "    alert_rule_test:\n";
    for minute in 1..=20 {
        let fires = "[{ exp_labels: { severity: warning, job: j, class: slow }, exp_annotations: { summary: \
                     '1 of 100 calls for slow locks takes 2.485s or longer' } }]";
        let fires = if minute > 5 { fires } else { "[]" };
        writeln!(
            text,
            "      - {{ eval_time: {minute}m, alertname: QuorumlockWaitsAreLong, exp_alerts: {fires} }}\n      \
             - {{ eval_time: {minute}m, alertname: QuorumlockLockLost, exp_alerts: [] }}\n      \
             - {{ eval_time: {minute}m, alertname: QuorumlockNoNodeToSpare, exp_alerts: [] }}\n      \
             - {{ eval_time: {minute}m, alertname: QuorumlockNodeInQuarantine, exp_alerts: [] }}"
        )
        .unwrap();
    }
    text
}

#[test]
fn an_outcome_or_a_class_that_occurs_late_raises_no_alert() {
    let scrapes = scrapes();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("alerts_test.yml");
    std::fs::write(&path, rule_tests(&scrapes)).unwrap();
    match Command::new("promtool")
        .args(["test", "rules"])
        .arg(&path)
        .output()
    {
        Ok(ran) => {
            let [said, wrong] =
                [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
            assert!(ran.status.success(), "{said}{wrong}");
        }
        // Not by `println`, which a run shows of failed tests only.
        Err(_) => drop(writeln!(
            std::io::stderr(),
            "skipped: observe::alerts: promtool (apt-get install prometheus)"
        )),
    }
}

/// A bucket that exists from one scrape on, beside one that existed before, is an increase of the
/// second alone.
#[test]
fn every_histogram_has_all_of_its_buckets_from_the_beginning() {
    for scrape in scrapes() {
        for family in scrape
            .families
            .iter()
            .filter(|family| family.kind == "histogram")
        {
            let mut buckets: BTreeMap<BTreeMap<String, String>, usize> = BTreeMap::new();
            for sample in &family.samples {
                let mut labels = sample.labels.clone();
                if labels.remove("le").is_some() {
                    *buckets.entry(labels).or_default() += 1;
                }
            }
            let most = buckets.values().copied().max().unwrap_or(0);
            assert!(
                buckets.values().all(|&count| count == most),
                "{}: {buckets:#?}",
                family.name
            );
        }
    }
}
