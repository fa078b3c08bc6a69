//! TLS with real servers: locks, wake-ups, resumption, client certificates, and what each fault is called.
//!
//! Certificates are issued by openssl, each test's by a CA of its own ([`certificates`]).

pub(crate) mod certificates;
mod faults;
mod locks;
mod page;
mod wire;
