//! The lock of several resources: a mutex like any other, made of several names.

use super::boundary::call;
use super::client::ClientHandle;
use super::code::Code;
use super::handle::{Borrowed, Output};
use super::mutex::{Lock, MutexHandle};
use super::text::Texts;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_mutex_set(
    client: Borrowed<ClientHandle>,
    names: Texts,
    count: usize,
    mutex: Output<*const MutexHandle>,
) -> Code {
    call(|| {
        let client = client.required("client")?;
        let names = names.texts(count, "names")?;
        let mutex = mutex.required("mutex")?;
        let set = client.redlock.mutex_set(names);
        let name = set.name().to_owned();
        mutex.write_handle(MutexHandle::new(Lock::Any(set.erase()), &name)?);
        Ok(Code::Ok)
    })
}
