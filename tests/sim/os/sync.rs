//! The library's locks and threads, on coroutines and simulated time.

use crate::kernel::{self, Reason};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, TryLockError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// For callers that do not wait.
    pub(crate) fn try_lock(&self) -> Result<MutexGuard<'_, T>, ()> {
        let inner = self.inner.try_lock().map_err(|_| ())?;
        Ok(MutexGuard {
            mutex: self,
            inner: Some(inner),
        })
    }

    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex {
            inner: std::sync::Mutex::new(value),
        }
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(&self.inner).addr()
    }
}

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// None while a condition variable has it.
    inner: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().unwrap()
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            kernel::wake(&Reason::Mutex(self.mutex.place()), usize::MAX);
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    kernel::may_be_interrupted();
    take(mutex)
}

fn take<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.inner.try_lock() {
            Ok(inner) => {
                return MutexGuard {
                    mutex,
                    inner: Some(inner),
                };
            }
            Err(TryLockError::Poisoned(error)) => {
                return MutexGuard {
                    mutex,
                    inner: Some(error.into_inner()),
                };
            }
            Err(TryLockError::WouldBlock) if kernel::is_inside() => {
                kernel::wait(Reason::Mutex(mutex.place()), None);
            }
            // A unit test of the library's, with threads of its own.
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    if kernel::is_inside() {
        kernel::yield_now();
    }
}

/// One byte, so that two of them have two addresses.
#[derive(Debug, Default)]
pub(crate) struct Condvar(u8);

impl Condvar {
    pub(crate) const fn new() -> Condvar {
        Condvar(0)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let mutex = guard.mutex;
        // No other task runs between here and the wait.
        guard.inner = None;
        kernel::wake(&Reason::Mutex(mutex.place()), usize::MAX);
        let rung = kernel::wait_for(Reason::Condvar(self.place()), time);
        let guard = take(mutex);
        Ok((guard, !rung))
    }

    pub(crate) fn notify_one(&self) {
        kernel::wake(&Reason::Condvar(self.place()), 1);
    }

    pub(crate) fn notify_all(&self) {
        kernel::wake(&Reason::Condvar(self.place()), usize::MAX);
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(&self.0).addr()
    }
}

/// Whether the coroutine is in a callback: the real threads are one.
pub(crate) fn is_in_callback() -> bool {
    kernel::is_inside() && kernel::with(|world| world.is_in_callback())
}

pub(crate) fn set_in_callback(is_in_callback: bool) {
    kernel::with(|world| world.set_in_callback(is_in_callback));
}

pub(crate) struct JoinHandle<T> {
    task: usize,
    result: std::marker::PhantomData<T>,
}

impl JoinHandle<()> {
    pub(crate) fn join(self) -> Result<(), ()> {
        while !kernel::is_done(self.task) {
            kernel::wait(Reason::Task(self.task), None);
        }
        Ok(())
    }
}

pub(crate) fn spawn(
    _name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    if kernel::with(|world| world.has_no_threads) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let task = kernel::spawn(kernel::current_client(), work);
    Ok(JoinHandle {
        task,
        result: std::marker::PhantomData,
    })
}

/// Whether the thread is the one that asks.
pub(crate) fn is_current<T>(thread: &JoinHandle<T>) -> bool {
    kernel::is_inside() && kernel::with(|world| world.current_task()) == thread.task
}

/// Never contended: no other task runs inside.
pub(crate) struct ForkSafeSpinLock;

impl ForkSafeSpinLock {
    pub(crate) const fn new() -> ForkSafeSpinLock {
        ForkSafeSpinLock
    }

    pub(crate) fn pass<R>(&self, act: impl FnOnce() -> R) -> R {
        kernel::may_be_interrupted();
        act()
    }
}
