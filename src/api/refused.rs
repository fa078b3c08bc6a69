//! What must not compile, with the code of the error, which only a nightly compiler checks.
//!
//! Guards of different kinds cannot be swapped, and a guard of one kind is not one of another:
//!
//! ```compile_fail,E0308
//! # use quorumlock::*;
//! fn swap(plain: &mut MutexGuard, fenced: &mut FencedGuard) {
//!     std::mem::swap(plain, fenced);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use quorumlock::*;
//! fn swap(plain: &mut MutexGuard, writer: &mut RwWriteGuard) {
//!     std::mem::swap(plain, writer);
//! }
//! ```
//!
//! ```compile_fail,E0614
//! # use quorumlock::*;
//! fn replace(plain: MutexGuard, fenced: &mut FencedGuard) {
//!     **fenced = plain;
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use quorumlock::*;
//! fn write(guard: &RwWriteGuard) {}
//! fn read(guard: RwReadGuard) {
//!     write(&guard);
//! }
//! ```
//!
//! A method exists only where it can be called:
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn number(guard: &MutexGuard) -> FencingToken {
//!     guard.fence()
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn number(guard: &ReentrantGuard) -> FencingToken {
//!     guard.fence()
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn write(guard: RwReadGuard) {
//!     let _ = guard.downgrade();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn upgrade(guard: RwReadGuard) {
//!     let _ = guard.upgrade();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn slot(guard: &MutexGuard) -> usize {
//!     guard.slot()
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn holder(prices: &RwReadMutex) {
//!     let _ = prices.holder();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn owner(order: &Mutex, owner: &Owner, wait: &Wait) {
//!     let _ = order.lock_as(owner, wait);
//! }
//! ```
//!
//! Combinations that are no lock:
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn fenced_set(redlock: &Redlock) {
//!     let _ = redlock.mutex_set(["a", "b"]).fenced();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn fair_set(redlock: &Redlock) {
//!     let _ = redlock.mutex_set(["a", "b"]).fair();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn fenced_reader(redlock: &Redlock) {
//!     let _ = redlock.read_mutex("prices").fenced();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn fenced_permit(redlock: &Redlock) {
//!     let _ = redlock.semaphore("printers", 2).fenced();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn fenced_twice(redlock: &Redlock) {
//!     let _ = redlock.mutex("orders/42").fenced().fenced();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn reentrant_writer(redlock: &Redlock) {
//!     let _ = redlock.write_mutex("prices").reentrant();
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn reentrant_twice(redlock: &Redlock) {
//!     let _ = redlock.mutex("orders/42").reentrant().reentrant();
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use quorumlock::{Mutex, kind::{Fenced, Set}};
//! struct Accounts {
//!     lock: Mutex<Fenced<Set>>,
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use quorumlock::{MutexGuard, kind::{Read, Reentrant}};
//! fn read(guard: MutexGuard<Reentrant<Read>>) {}
//! ```
//!
//! ```compile_fail,E0277
//! # use quorumlock::Mutex;
//! struct Mine;
//! fn mine(mutex: Mutex<Mine>) {}
//! ```
//!
//! No other crate makes a kind:
//!
//! ```compile_fail,E0277
//! struct Mine;
//! impl quorumlock::kind::Kind for Mine {}
//! ```
//!
//! A lease becomes a guard of its own kind:
//!
//! ```compile_fail,E0308
//! # use quorumlock::*;
//! fn attach(redlock: &Redlock, lease: Lease) -> Result<FencedGuard> {
//!     redlock.attach(lease)
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use quorumlock::*;
//! fn attach(prices: &RwReadMutex, lease: Lease<kind::Write>) {
//!     let _ = prices.attach(lease);
//! }
//! ```
//!
//! Levels of a reentrant lock stay on the thread that owns them, also as `Any`, and an owner serves
//! one thread at a time:
//!
//! ```compile_fail,E0277
//! # use quorumlock::*;
//! fn send(guard: ReentrantGuard) {
//!     std::thread::spawn(move || drop(guard));
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use quorumlock::*;
//! fn send(guard: ReentrantGuard) {
//!     let guard = guard.erase();
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use quorumlock::*;
//! fn share(owner: &Owner) {
//!     std::thread::scope(|scope| drop(scope.spawn(|| println!("{owner:?}"))));
//! }
//! ```
//!
//! What is dropped by mistake is a warning:
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use quorumlock::*;
//! fn held(mutex: &Mutex) -> Result<()> {
//!     mutex.lock()?;
//!     Ok(())
//! }
//! ```
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use quorumlock::*;
//! fn released(guard: MutexGuard) -> Result<()> {
//!     guard.unlock()?;
//!     Ok(())
//! }
//! ```
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use quorumlock::*;
//! fn setting(mutex: Mutex) {
//!     mutex.ttl(std::time::Duration::from_secs(5));
//! }
//! ```
//!
//! Enums and events can grow:
//!
//! ```compile_fail,E0004
//! # use quorumlock::ReleaseOutcome::{self, *};
//! fn text(outcome: ReleaseOutcome) -> &'static str {
//!     match outcome {
//!         Released => "released",
//!         Expired => "expired",
//!         StillHeld(_) => "still held",
//!     }
//! }
//! ```
//!
//! ```compile_fail,E0638
//! # use quorumlock::event::Event;
//! fn dropped(event: &Event) {
//!     if let Event::EventsDropped { count } = event {}
//! }
//! ```
//!
//! And what differs by a line from these does compile:
//!
//! ```no_run
//! #![deny(unused_must_use)]
//! # use quorumlock::*;
//! # use quorumlock::kind::*;
//! # use quorumlock::event::Event;
//! fn swap(one: &mut FencedGuard, other: &mut FencedGuard) {
//!     std::mem::swap(one, other);
//! }
//! struct Prices {
//!     lock: Mutex<Fenced<Write>>,
//! }
//! fn number(guard: &MutexGuard<Reentrant<Fenced>>) -> FencingToken {
//!     guard.fence()
//! }
//! fn attach(redlock: &Redlock, lease: Lease<Fenced>) -> Result<FencedGuard> {
//!     redlock.attach(lease)
//! }
//! fn send(guard: FencedGuard) {
//!     std::thread::spawn(move || drop(guard));
//! }
//! fn held(mutex: &Mutex) -> Result<()> {
//!     let _guard = mutex.lock()?;
//!     Ok(())
//! }
//! fn dropped(event: &Event) {
//!     if let Event::EventsDropped { count, .. } = event {}
//! }
//! ```
