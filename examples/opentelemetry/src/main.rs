//! Two requests want the same lock. The trace of each shows how long it waited and held the lock:
//!
//! ```text
//! cargo run -p opentelemetry_example                                  on a node inside the process
//! cargo run -p opentelemetry_example -- redis://10.0.0.1 redis://…    on yours
//! ```
//!
//! Spans are printed when they end. To send them to a collector instead, replace the exporter by
//! the one of the crate `opentelemetry-otlp`.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use opentelemetry_stdout::SpanExporter;
use quorumlock::embedded::EmbeddedNode;
use quorumlock::{FencedMutex, Redlock};
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tracing::info_span;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// For how long the first request holds the lock, and the second one waits.
const WORK: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    // All that a program needs: no setting of the library, but its feature `tracing`.
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(SpanExporter::default())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("opentelemetry_example"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(layer)
        .try_init()?;

    let node = EmbeddedNode::start()?;
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls.push(node.url());
    }
    let redlock = Redlock::builder().nodes(urls).build()?;
    let order = redlock.mutex("orders/42").fenced();
    let (held, is_held) = mpsc::channel();
    let results = thread::scope(|threads| {
        let first = threads.spawn(|| request(&order, "charge", held));
        // The second one begins when the first one holds the lock.
        let _ = is_held.recv();
        let (held, _) = mpsc::channel();
        let second = threads.spawn(|| request(&order, "ship", held));
        [first.join(), second.join()]
    });
    for result in results {
        result.map_err(|_| "a request panicked")??;
    }
    provider.shutdown()?;
    Ok(())
}

/// A request, which is a span of the program: the spans of its wait and of its hold are below it.
fn request(
    order: &FencedMutex,
    what: &'static str,
    held: mpsc::Sender<()>,
) -> quorumlock::Result<()> {
    info_span!("request", what).in_scope(|| {
        let guard = order.lock()?;
        let _ = held.send(());
        thread::sleep(WORK);
        let _ = guard.unlock()?;
        Ok(())
    })
}
