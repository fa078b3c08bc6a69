//! What fakes and proxies have in common: a thread that accepts connections on a port of loopback.

use crate::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port of loopback, and the thread that accepts connections there.
pub(crate) struct Listener {
    pub(crate) port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(crate) fn accepting(
        name: &str,
        listener: TcpListener,
        accept: impl FnOnce(&TcpListener) + Send + 'static,
    ) -> Listener {
        let address = listener.local_addr().expect("the port that was bound");
        Listener {
            port: address.port(),
            thread: Some(spawn(name, move || accept(&listener))),
        }
    }

    /// Waits until it has ended. It looks whether it is to stop after each connection: this is one.
    pub(crate) fn end(&mut self) {
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn bind() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of 127.0.0.1")
}

pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .expect("a thread")
}

/// What a thread that panicked, failing its test, has locked as well.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
