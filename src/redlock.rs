//! The client: the nodes of one quorum, shared by all threads that lock on it.

use crate::client::Client;
use crate::mutex::Mutex;
use std::fmt;

/// A client of N independent Redis or Valkey masters: makes [`Mutex`]es, and holds the connections they share.
///
/// One connection per node carries the commands of all threads. Cloning is cheap, and clones share everything; a program
/// usually has one client and clones it into its threads. The connections are made when first needed, made again when
/// lost, and closed with the last clone, guard and mutex. There is no background thread, unless a lock has
/// a [`Watchdog`](crate::Watchdog); that one ends with them (and a host name is looked up in a short-lived one).
#[derive(Clone)]
pub struct Redlock {
    client: Client,
}

impl Redlock {
    /// The lock of a resource. Makes no connection; a name that cannot be used is reported when it is locked.
    ///
    /// A name has 1 to 4096 bytes. Mutexes of the same name are the same lock, in this process and in every other one that
    /// uses the same nodes and prefix.
    pub fn mutex(&self, resource: impl AsRef<str>) -> Mutex {
        Mutex::new(self.client.clone(), resource.as_ref())
    }

    pub(crate) fn new(client: Client) -> Redlock {
        Redlock { client }
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").field("nodes", &self.client.settings().nodes).finish_non_exhaustive()
    }
}
