//! Permits: a mutex like any other, whose lock is any of several slots.

use super::boundary::{call, call_or};
use super::client::ClientHandle;
use super::code::Code;
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output};
use super::mutex::{Lock, MutexHandle};
use super::text::Bytes;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_semaphore(
    client: Borrowed<ClientHandle>,
    name: Bytes,
    name_length: usize,
    permits: usize,
    mutex: Output<*const MutexHandle>,
) -> Code {
    call(|| {
        let client = client.required("client")?;
        let name = name.text(name_length, "name")?;
        let mutex = mutex.required("mutex")?;
        let permits = Lock::Slots(client.redlock.semaphore(name, permits));
        mutex.write_handle(MutexHandle::new(permits, name)?);
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_slot(guard: Borrowed<GuardHandle>) -> u64 {
    call_or(0, || Some(guard.optional()?.slot))
}
