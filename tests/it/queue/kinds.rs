//! The locks of all kinds that the tests of queues hold and wait for.

use crate::prelude::*;

/// A guard of any kind: dropped, it releases.
pub(super) trait Guard: Send {}

impl<G: Send> Guard for G {}

pub(super) type Held = Box<dyn Guard>;

type Acquire = fn(&Redlock, Duration) -> quorumlock::Result<Option<Held>>;

/// A kind of lock, or of access to one.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What the key of its queue ends with.
    pub(super) key: &'static str,
    /// What names the kind in an entry.
    pub(super) letters: &'static str,
    pub(super) acquire: Acquire,
}

impl Kind {
    pub(super) fn queue(&self) -> String {
        format!("quorumlock-queue:{}", self.key)
    }

    /// An entry of this client for a lock of the kind.
    pub(super) fn member(&self, client: &str) -> String {
        format!("{client}{}7", self.letters)
    }

    /// What keeps the lock from a call of the kind.
    pub(super) fn hold(&self, client: &Redlock) -> Held {
        let holds = match self.name {
            "to read" => &KINDS[4],
            _ => self,
        };
        (holds.acquire)(client, SOON).unwrap().expect("it is free")
    }
}

/// The locks of all kinds. Those of a set and of a plain lock share a queue.
pub(super) const KINDS: [Kind; 7] = [
    kind("plain", "k", "m", |client, limit| {
        held(client.mutex("k").ttl(LONG_TTL).lock_timeout(limit))
    }),
    kind("fair", "k", "m", |client, limit| {
        held(client.mutex("k").ttl(LONG_TTL).fair().lock_timeout(limit))
    }),
    kind("fenced", "quorumlock-fence:k", "f", |client, limit| {
        held(client.mutex("k").ttl(LONG_TTL).fenced().lock_timeout(limit))
    }),
    kind("to read", "quorumlock-rw:k", "r", |client, limit| {
        held(client.read_mutex("k").ttl(LONG_TTL).lock_timeout(limit))
    }),
    kind("to write", "quorumlock-rw:k", "w", |client, limit| {
        held(client.write_mutex("k").ttl(LONG_TTL).lock_timeout(limit))
    }),
    kind("permit", "quorumlock-permits:k", "s1:", |client, limit| {
        held(client.semaphore("k", 1).ttl(LONG_TTL).lock_timeout(limit))
    }),
    kind("set", "k", "m", |client, limit| {
        held(
            client
                .mutex_set(["k", "l"])
                .ttl(LONG_TTL)
                .lock_timeout(limit),
        )
    }),
];

const fn kind(
    name: &'static str,
    key: &'static str,
    letters: &'static str,
    acquire: Acquire,
) -> Kind {
    Kind {
        name,
        key,
        letters,
        acquire,
    }
}

fn held<G: Send + 'static>(
    result: quorumlock::Result<Option<G>>,
) -> quorumlock::Result<Option<Held>> {
    result.map(|guard| guard.map(|guard| Box::new(guard) as Held))
}
