//! The servers and workers of a storm, and the faults that every storm may inject into them.

use super::random::Random;
use super::workers::Workers;
use crate::prelude::*;

/// Servers that keep what they have granted, and read little when they restart.
pub(crate) fn durable_and_short() -> Plan {
    durable().arguments(&["--auto-aof-rewrite-min-size", "4mb"])
}

pub(crate) struct Storm {
    // Dropped before the servers.
    pub(crate) workers: Workers,
    pub(crate) servers: Vec<Server>,
    pub(crate) random: Random,
    /// How often [`strike`](Storm::strike) has injected each fault.
    pub(crate) injected: BTreeMap<&'static str, usize>,
}

impl Storm {
    /// Starts so many workers of this test, which use these servers.
    pub(crate) fn begin(
        test: &'static str,
        servers: Vec<Server>,
        workers: usize,
        seed: u64,
    ) -> Storm {
        let urls = servers.each(Server::url);
        let mut storm = Storm::without_workers(test, servers, urls, seed);
        (0..workers).for_each(|_| storm.workers.start());
        storm
    }

    /// Starts no worker yet. They will use these URLs.
    pub(crate) fn without_workers(
        test: &'static str,
        servers: Vec<Server>,
        urls: Vec<String>,
        seed: u64,
    ) -> Storm {
        // It is removed with the server's own.
        let directory = servers[0].directory().join("storm");
        fs::create_dir(&directory).unwrap();
        let workers = Workers::none_yet(test, directory, urls);
        Storm {
            workers,
            servers,
            random: Random::from_seed(seed),
            injected: BTreeMap::new(),
        }
    }

    /// Injects a fault, and returns some time after its end. The servers must be [`durable`].
    pub(crate) fn strike(&mut self) {
        let first = self.random.below(self.servers.len() as u64) as usize;
        let next = |number| (first + number) % self.servers.len();
        let victims = [first, next(1), next(2)];
        let name = match self.random.below(6) {
            0 => {
                self.hang(&victims[..1], 400);
                "a server hung"
            }
            1 => {
                self.hang(&victims[..2], 300);
                "two servers hung"
            }
            2 => {
                self.hang(&victims, 200);
                "a majority hung"
            }
            3 => {
                self.restart(first, 300);
                "a server killed and restarted"
            }
            4 => {
                self.replace_any();
                "a client killed and replaced"
            }
            _ => {
                let _ = self.servers[first].command(&["SCRIPT", "FLUSH"]);
                "scripts forgotten"
            }
        };
        *self.injected.entry(name).or_default() += 1;
        self.rest(400);
    }

    /// Hangs servers for less than so many milliseconds.
    pub(crate) fn hang(&mut self, victims: &[usize], limit: u64) {
        victims
            .iter()
            .for_each(|&victim| self.servers[victim].pause().unwrap());
        self.rest(limit);
        victims
            .iter()
            .for_each(|&victim| self.servers[victim].resume().unwrap());
    }

    /// Kills a server, and starts it again less than so many milliseconds later.
    pub(crate) fn restart(&mut self, victim: usize, limit: u64) {
        self.servers[victim].kill();
        self.rest(limit);
        // A busy machine delays it.
        self.servers[victim]
            .restart()
            .or_else(|_| self.servers[victim].wait_ready())
            .unwrap();
    }

    /// Kills a worker, most likely with a lock, and starts another.
    pub(crate) fn replace_any(&mut self) {
        let victim = self.workers.any(&mut self.random);
        self.workers.replace(victim);
    }

    /// Waits for less than so many milliseconds.
    pub(crate) fn rest(&mut self, limit: u64) {
        thread::sleep(self.random.millis(limit));
    }
}
