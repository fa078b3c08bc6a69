//! What reaches the crates `log` and `metrics`.

use crate::prelude::*;
use log::{Level, LevelFilter, Log, Metadata, Record};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Recorder,
    SharedString, Unit,
};
use quorumlock::event;

/// Keeps level, target and text of each line.
static LINES: Guarded<Vec<(Level, String, String)>> = Guarded::new(Vec::new());

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = (
            record.level(),
            record.target().to_owned(),
            record.args().to_string(),
        );
        LINES.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

#[test]
fn each_event_is_a_line_of_its_level_and_target() {
    alone(|| {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(LevelFilter::Trace);
        let mut servers = Server::several(3).unwrap();
        let client = builder(&servers).observer(event::log).build().unwrap();
        let _ = take(&long_lock(&client, "k")).unlock().unwrap();
        servers[1].kill();
        servers[2].kill();
        assert!(client.mutex("k").try_lock().is_err());
        let lines = LINES.lock().unwrap();
        let has = |level, target: &str, text: &str| {
            lines.iter().any(|line| {
                (line.0, line.1.as_str()) == (level, target) && line.2.starts_with(text)
            })
        };
        for (level, target, text) in [
            (Level::Debug, "quorumlock::lock", "acquired \"k\" in "),
            (Level::Debug, "quorumlock::lock", "released \"k\""),
            (Level::Error, "quorumlock::lock", "gave up \"k\" after "),
            (
                Level::Info,
                "quorumlock::node",
                &format!("{} is up", servers[0].address()),
            ),
            (
                Level::Warn,
                "quorumlock::node",
                &format!("{} is down", servers[1].address()),
            ),
        ] {
            assert!(
                has(level, target, text),
                "{level} {target} {text:?} is not among {lines:#?}"
            );
        }
    });
}

/// Keeps the present value of each series, by its name and labels; of histograms, how many times
/// there were.
#[derive(Clone, Default)]
struct Values(Arc<Guarded<BTreeMap<String, f64>>>);

struct Series {
    key: String,
    values: Values,
}

impl Series {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.values.0.lock().unwrap();
        let value = values.entry(self.key.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Series {
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }

    fn absolute(&self, to: u64) {
        self.change(|value| value.max(to as f64));
    }
}

impl GaugeFn for Series {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        assert!(value >= 0.0);
        self.change(|count| count + 1.0);
    }
}

impl Values {
    fn series(&self, key: &Key) -> Arc<Series> {
        let mut labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        labels.sort();
        let key = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(Series {
            key,
            values: self.clone(),
        })
    }
}

impl Recorder for Values {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &metrics::Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &metrics::Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, key: &Key, _: &metrics::Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
    }
}

#[test]
fn the_recorder_gets_what_the_counters_count() {
    alone(|| {
        let values = Values::default();
        metrics::set_global_recorder(values.clone()).unwrap();
        let mut servers = Server::several(3).unwrap();
        let counters = Counters::by_prefix('/');
        let client = client_with(&servers, |builder| {
            builder.counters(&counters).observer(counters.recorder())
        });
        let guard = take(&long_lock(&client, "orders/1"));
        assert!(is_held(&client.mutex("orders/1")));
        let _ = guard.unlock().unwrap();
        drop(take(&long_lock(&client, "orders/2")));
        client.flush_releases(SOON).unwrap();
        servers[2].kill();
        let is = |series: &str, expected: f64| {
            counters.update_recorder();
            let value = values
                .0
                .lock()
                .unwrap()
                .get(series)
                .copied()
                .unwrap_or(f64::NAN);
            (value - expected).abs() < 0.5
        };
        for (series, expected) in [
            (
                "quorumlock_wait_seconds{class=orders,outcome=acquired}",
                2.0,
            ),
            ("quorumlock_wait_seconds{class=orders,outcome=held}", 1.0),
            ("quorumlock_hold_seconds{class=orders}", 2.0),
            ("quorumlock_attempts_total{class=orders,result=won}", 2.0),
            ("quorumlock_attempts_total{class=orders,result=held}", 1.0),
            (
                "quorumlock_releases_total{class=orders,dropped=true,outcome=released}",
                1.0,
            ),
            (
                "quorumlock_releases_total{class=orders,dropped=false,outcome=released}",
                1.0,
            ),
            ("quorumlock_lost_total{class=orders,reason=key_gone}", 0.0),
            ("quorumlock_held{class=orders}", 0.0),
            ("quorumlock_waiting{class=orders}", 0.0),
            ("quorumlock_nodes{}", 3.0),
            ("quorumlock_quorum{}", 2.0),
            ("quorumlock_events_dropped_total{}", 0.0),
        ] {
            assert_soon!(
                is(series, expected),
                "{series} is not {expected}: {:#?}",
                values.0.lock().unwrap()
            );
        }
        let down = format!("quorumlock_node_up{{node={}}}", servers[2].address());
        assert_soon!({
            let _ = client.connect(SOON);
            is(&down, 0.0)
        });
    });
}
