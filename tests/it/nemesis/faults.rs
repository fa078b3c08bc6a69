//! What is done to servers, wires and clients, and how it ends again.
//!
//! Clients reach each server through a proxy, so that a wire can fail while its server is well. A strike makes one thing
//! happen that was chosen at random, and waits for a moment; most of the time at most a minority is sick, so that the lock
//! can be had. Servers keep what they have granted (each write is on disk before it is answered): forgetting is beyond
//! what Redlock survives.

use super::worker;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::Server;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Choices that can be repeated.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `limit`, by SplitMix64.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}

/// Servers, wires and clients, and the one who breaks them.
pub(crate) struct Nemesis {
    servers: Vec<Server>,
    proxies: Vec<Proxy>,
    workers: Vec<Child>,
    started: usize,
    directory: PathBuf,
    urls: Vec<String>,
    random: Random,
    injected: BTreeMap<&'static str, usize>,
}

type Strike = (&'static str, fn(&mut Nemesis));

/// Everything that can happen.
const STRIKES: [Strike; 13] = [
    ("answers held back", |nemesis| nemesis.stall(Direction::ToClient)),
    ("client killed", Nemesis::kill_client),
    ("commands held back", |nemesis| nemesis.stall(Direction::ToServer)),
    ("connection cut in mid-answer", |nemesis| nemesis.cut(Direction::ToClient)),
    ("connection cut in mid-command", |nemesis| nemesis.cut(Direction::ToServer)),
    ("connections closed by the server", |nemesis| nemesis.tell(&["CLIENT", "KILL", "TYPE", "normal"])),
    ("connections reset", Nemesis::reset),
    ("majority hung", |nemesis| nemesis.hang(3, 600)),
    ("memory full", Nemesis::fill),
    ("scripts forgotten", |nemesis| nemesis.tell(&["SCRIPT", "FLUSH"])),
    ("server hung", |nemesis| nemesis.hang(1, 1500)),
    ("server killed and restarted", Nemesis::restart),
    ("two servers hung", |nemesis| nemesis.hang(2, 800)),
];

impl Nemesis {
    pub(crate) fn begin(servers: usize, workers: usize, random: Random) -> Nemesis {
        let servers: Vec<_> = (0..servers).map(|_| Server::with(&DURABLE).unwrap()).collect();
        let proxies: Vec<_> = servers.iter().map(|server| Proxy::before(server.port())).collect();
        let urls = proxies.iter().map(Proxy::url).collect();
        // It goes with the server's own.
        let directory = servers[0].directory().join("nemesis");
        std::fs::create_dir(&directory).unwrap();
        let injected = STRIKES.iter().map(|&(name, _)| (name, 0)).collect();
        let mut nemesis =
            Nemesis { servers, proxies, workers: Vec::new(), started: 0, directory, urls, random, injected };
        for _ in 0..workers {
            nemesis.start_client();
        }
        nemesis
    }

    /// Lets something happen, and ends it before it returns.
    pub(crate) fn strike(&mut self) {
        let (name, strike) = STRIKES[self.random.below(STRIKES.len() as u64) as usize];
        *self.injected.entry(name).or_default() += 1;
        strike(self);
        let peace = self.random.millis(100);
        thread::sleep(peace);
    }

    /// Makes sure that all is well.
    pub(crate) fn heal(&mut self) {
        for (server, proxy) in self.servers.iter().zip(&self.proxies) {
            proxy.flow(Direction::ToClient);
            proxy.flow(Direction::ToServer);
            server.resume().unwrap();
            server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        }
    }

    /// Ends the clients, which must have nothing to complain of, and says how many were killed before.
    pub(crate) fn stop(&mut self) -> usize {
        worker::stop(&self.directory);
        let living = self.workers.len();
        for mut worker in self.workers.drain(..) {
            assert!(worker.wait().unwrap().success(), "a client failed: {}", complaints(&self.directory));
        }
        self.started - living
    }

    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What happened, and how often.
    pub(crate) fn injected(&self) -> &BTreeMap<&'static str, usize> {
        &self.injected
    }

    fn start_client(&mut self) {
        self.workers.push(worker::start(self.started, &self.directory, &self.urls));
        self.started += 1;
    }

    fn kill_client(&mut self) {
        let victim = self.random.below(self.workers.len() as u64) as usize;
        let mut worker = self.workers.swap_remove(victim);
        assert!(worker.try_wait().unwrap().is_none(), "a client failed: {}", complaints(&self.directory));
        worker.kill().unwrap();
        worker.wait().unwrap();
        self.start_client();
    }

    fn one(&mut self) -> usize {
        self.random.below(self.servers.len() as u64) as usize
    }

    fn hang(&mut self, number: usize, longest: u64) {
        let first = self.one();
        let hung: Vec<_> = (0..number).map(|index| (first + index) % self.servers.len()).collect();
        for &index in &hung {
            self.servers[index].pause().unwrap();
        }
        let time = self.random.millis(longest);
        thread::sleep(time);
        for &index in &hung {
            self.servers[index].resume().unwrap();
        }
    }

    fn restart(&mut self) {
        let victim = self.one();
        self.servers[victim].kill();
        let time = self.random.millis(800);
        thread::sleep(time);
        self.servers[victim].restart().unwrap();
    }

    fn stall(&mut self, direction: Direction) {
        let victim = self.one();
        self.proxies[victim].stall(direction);
        let time = self.random.millis(1500);
        thread::sleep(time);
        self.proxies[victim].flow(direction);
    }

    fn cut(&mut self, direction: Direction) {
        let (victim, bytes) = (self.one(), self.random.below(4000));
        self.proxies[victim].cut_after(direction, bytes);
    }

    fn reset(&mut self) {
        let victim = self.one();
        self.proxies[victim].reset_all();
    }

    fn tell(&mut self, words: &[&str]) {
        let victim = self.one();
        self.servers[victim].command(words).unwrap();
    }

    fn fill(&mut self) {
        let victim = self.one();
        self.servers[victim].command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        let time = self.random.millis(500);
        thread::sleep(time);
        self.servers[victim].command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    }
}

impl Drop for Nemesis {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // After a failure: it may have ended by itself.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// What clients printed.
fn complaints(directory: &Path) -> String {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let outputs =
        paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("output.")));
    outputs.map(|path| super::text(&path)).filter(|text| text.contains("panicked")).collect()
}
