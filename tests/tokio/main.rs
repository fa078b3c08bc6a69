//! The program for tokio of `src/docs/recipes.md`: more tasks wait for one lock than tokio has
//! threads for calls that block, and each of them gets it.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test"
)]

use quorumlock::embedded::EmbeddedNode;

include!("recipe.rs");

/// Tokio has 512 threads for calls that block.
const WAITERS: usize = 600;
/// Far longer than all of them take one after the other.
const LIMIT: Duration = Duration::from_secs(60);

fn client(nodes: &[EmbeddedNode]) -> Redlock {
    let urls = nodes.iter().map(EmbeddedNode::url);
    // A busy machine is no reason to fail.
    Redlock::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(5))
        .build()
        .unwrap()
}

fn nodes() -> Vec<EmbeddedNode> {
    (0..3).map(|_| EmbeddedNode::start().unwrap()).collect()
}

#[test]
fn more_waiters_than_tokio_has_threads_get_the_lock_one_after_the_other() {
    let nodes = nodes();
    let redlock = client(&nodes);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let charged = runtime.block_on(async {
        let charges: Vec<_> = (0..WAITERS)
            .map(|_| tokio::spawn(charge(redlock.clone(), 42, LIMIT)))
            .collect();
        let mut charged = 0;
        for charge in charges {
            charged += usize::from(charge.await.unwrap().unwrap());
        }
        charged
    });
    assert_eq!(charged, WAITERS);
}

/// The future of a call that waits is dropped: the lock that its thread gets is released.
#[test]
fn a_dropped_future_keeps_no_lock() {
    let nodes = nodes();
    let redlock = client(&nodes);
    let held = redlock.mutex("orders/42").lock().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let task = tokio::spawn(charge(redlock.clone(), 42, LIMIT));
        // It has begun its call.
        tokio::task::yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    });
    drop(held);
    assert!(
        redlock
            .mutex("orders/42")
            .lock_timeout(LIMIT)
            .unwrap()
            .is_some()
    );
}

/// What is compiled here is what the page prints.
#[test]
fn the_page_prints_this_program() {
    let page = include_str!("../../src/docs/recipes.md");
    let section = page.split("\n# From tokio\n").nth(1).unwrap();
    let block = section
        .split("```rust\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let is_shown = |line: &&str| !line.starts_with("# ") && *line != "#";
    let shown: Vec<&str> = block.lines().filter(is_shown).collect();
    assert_eq!(shown.join("\n"), include_str!("recipe.rs").trim_end());
}
