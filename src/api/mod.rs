//! What a program names: builder, client, mutex, guard, lease, kinds, wait, watchdog, and the
//! status of nodes. A [`Mutex`](mutex::Mutex) is a shell around a [`Lock`](lock::Lock), a guard
//! around what is [`Held`](held::Held): those are the same for every kind.

pub(crate) mod aliases;
pub(crate) mod builder;
pub(crate) mod client;
pub(crate) mod fence_checker;
pub(crate) mod forked;
pub(crate) mod guard;
pub(crate) mod held;
pub(crate) mod held_lock;
pub mod kind;
pub(crate) mod lease;
pub(crate) mod lock;
pub(crate) mod mutex;
pub(crate) mod node_status;
pub(crate) mod owner;
pub(crate) mod redlock;
#[cfg(doctest)]
mod refused;
#[cfg_attr(
    not(feature = "cli"),
    allow(unreachable_pub, reason = "the command line reads them")
)]
pub(crate) mod settings;
pub(crate) mod share;
pub(crate) mod shared_lock;
pub(crate) mod shutdown;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod wait;
pub(crate) mod watchdog;
