//! A number that several programs change, and that no late write may spoil. A lease can end while
//! its holder is paused, and then only the storage can refuse the write.
//!
//! ```text
//! export QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//! cargo run --example stock_with_fence
//! ```

#![allow(clippy::print_stdout)]

use quorumlock::{Builder, FenceChecker, FencingToken, Redlock, StaleFence};
use std::{cell::Cell, error::Error, thread, time::Duration};

const TTL: Duration = Duration::from_millis(500);

/// The storage. A database does the same by `UPDATE stock SET left = :left, fence = :fence WHERE
/// fence <= :fence`: where no row has changed, the write was refused.
#[derive(Default)]
struct Stock {
    left: Cell<u32>,
    fences: FenceChecker,
}

impl Stock {
    fn write(&self, left: u32, fence: FencingToken) -> Result<(), StaleFence> {
        self.fences.check("stock/anvil", fence)?;
        self.left.set(left);
        Ok(())
    }
}

/// Sells one. `pause`: what keeps this program from running between its check and its write.
fn sell(client: &Redlock, stock: &Stock, pause: impl FnOnce()) -> Result<u32, Box<dyn Error>> {
    // Released when the guard goes, also on an error.
    let guard = client.mutex("stock/anvil").ttl(TTL).fenced().lock()?;
    let left = stock.left.get().checked_sub(1).ok_or("sold out")?;
    guard.ensure(TTL / 2)?;
    pause();
    stock.write(left, guard.fence())?;
    Ok(left)
}

fn main() -> Result<(), Box<dyn Error>> {
    let client = Builder::from_env("QUORUMLOCK_")?.build()?;
    let other = Builder::from_env("QUORUMLOCK_")?.build()?;
    let stock = Stock::default();
    stock.left.set(10);
    println!("sold, left: {}", sell(&client, &stock, || ())?);
    // Paused for longer than its lease lasts. Meanwhile another program sells one, too.
    let late = sell(&client, &stock, || {
        thread::sleep(TTL);
        println!("other program: {:?}", sell(&other, &stock, || ()).ok());
    });
    if let Err(refused) = late {
        println!("late write: {refused}");
    }
    println!("sold, left: {}", sell(&client, &stock, || ())?);
    Ok(())
}
