use quorumlock::{Redlock, ReleaseOutcome, Watchdog};
use std::error::Error;
use std::thread;
use std::time::Duration;

type Failure = Box<dyn Error + Send + Sync>;

/// Runs a call that blocks on a thread of its own.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // If the future was dropped meanwhile, so is a guard that comes too late, and its lock is
    // released.
    thread::Builder::new().spawn(move || drop(sender.send(call())))?;
    Ok(receiver.await?)
}

/// Returns whether the lock was free in time, and held to the end.
async fn charge(redlock: Redlock, order: u64, limit: Duration) -> Result<bool, Failure> {
    let mutex = redlock.mutex(format!("orders/{order}")).watchdog(Watchdog::new());
    let Some(guard) = blocking(move || mutex.lock_timeout(limit)).await?? else { return Ok(false) };
    // … the work, which may await. Before a step that must not be done twice:
    guard.ensure(Duration::from_secs(1))?;
    // `unlock` waits for the answers of the nodes.
    Ok(blocking(move || guard.unlock()).await?? == ReleaseOutcome::Released)
}
