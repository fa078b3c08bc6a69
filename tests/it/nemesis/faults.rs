//! The faults that are injected into servers, connections and clients, and how each ends.
//!
//! Clients reach each server through a proxy, so that a connection can fail while its server works.
//! A strike injects one fault and waits for its end; in a third of the strikes, another server
//! hangs from before it until after it. All kinds of faults happen in an order drawn at random,
//! then again in another. Most of the time at most a minority is impaired, so that the lock can be
//! had. [`super`] describes what keeps a strike within the bounds.

use super::clocks::Clocks;
use super::flood::flood;
use super::packets::Packets;
use super::*;
use crate::storm::{Storm, durable_and_short, now};

/// After that nothing holds that was granted before: the time to live, and more than its drift.
const FORGOTTEN: Duration = worker::TTL.saturating_add(Duration::from_millis(200));
/// A step of a server's clock that the allowance for drift covers (22 ms of a time to live), though
/// another follow at once.
const SMALL_STEP: Duration = Duration::from_millis(9);

/// Servers, proxies and clients, and the faults that are injected into them.
pub(crate) struct Nemesis {
    storm: Storm,
    proxies: Vec<Proxy>,
    clocks: Clocks,
    packets: Option<Packets>,
    /// What is still to come before everything has happened once more.
    deck: Vec<Strike>,
    /// The server that hangs during this strike, whatever the strike is.
    hung: Option<usize>,
    history: Vec<Event>,
    flood_answers: usize,
}

/// A strike that happened: what, and from when to when.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) with_one_hung: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

type Strike = (&'static str, fn(&mut Nemesis));

/// Everything that can happen.
pub(crate) const STRIKES: [Strike; 29] = [
    ("answers held back", |nemesis| {
        nemesis.stall(Direction::ToClient)
    }),
    ("answers trickling", |nemesis| {
        nemesis.trickle(Direction::ToClient)
    }),
    ("client killed", |nemesis| nemesis.storm.replace_any()),
    ("client paused at any time", Nemesis::pause_client),
    ("client paused beyond its lease", Nemesis::freeze_client),
    ("clock stepped back", Nemesis::step_back),
    (
        "clock stepped far forward, and silence for a lease",
        Nemesis::step_far,
    ),
    ("clocks stepped forward within the drift", Nemesis::step_all),
    ("commands held back", |nemesis| {
        nemesis.stall(Direction::ToServer)
    }),
    ("commands trickling", |nemesis| {
        nemesis.trickle(Direction::ToServer)
    }),
    ("connection cut in mid-answer", |nemesis| {
        nemesis.cut(Direction::ToClient)
    }),
    ("connection cut in mid-command", |nemesis| {
        nemesis.cut(Direction::ToServer)
    }),
    ("connections closed by the server", |nemesis| {
        nemesis.tell(&["CLIENT", "KILL", "TYPE", "normal"])
    }),
    ("connections half open", Nemesis::lose),
    ("connections reset", Nemesis::reset),
    ("flood", Nemesis::flood),
    ("holder killed", Nemesis::kill_holder),
    ("majority hung", |nemesis| nemesis.hang(3, 600)),
    ("memory full", |nemesis| nemesis.fill(1)),
    ("memory full at a majority", |nemesis| nemesis.fill(3)),
    ("packets dropped", Nemesis::drop_packets),
    ("scripts forgotten", |nemesis| {
        nemesis.tell(&["SCRIPT", "FLUSH"])
    }),
    ("server hung", |nemesis| nemesis.hang(1, 1500)),
    ("server killed and restarted", Nemesis::restart),
    ("server made a replica, and a master again", Nemesis::demote),
    (
        "server restarted without its data, a lease later",
        |nemesis| nemesis.forget(FORGOTTEN),
    ),
    ("server restarted without its data, at once", |nemesis| {
        nemesis.forget(Duration::ZERO)
    }),
    ("two servers hung", |nemesis| nemesis.hang(2, 800)),
    (
        "two servers hung, and a third restarted without its data",
        Nemesis::forget_what_is_needed,
    ),
];

impl Nemesis {
    pub(crate) fn begin(servers: usize, workers: usize, seed: u64) -> Nemesis {
        let plan = Clocks::prepare(durable_and_short());
        let servers = plan.several(servers).unwrap();
        let proxies = Proxy::before_each(&servers);
        let clocks = Clocks::of(&servers);
        let urls = proxies.iter().map(Proxy::url).collect();
        let mut nemesis = Nemesis {
            storm: Storm::without_workers(TEST, servers, urls, seed),
            proxies,
            clocks,
            packets: Packets::if_wanted(),
            deck: Vec::new(),
            hung: None,
            history: Vec::new(),
            flood_answers: 0,
        };
        // No client counts a server that has not been up for that long; servers report their uptime
        // in whole seconds.
        thread::sleep(FORGOTTEN + Duration::from_secs(1));
        (0..workers).for_each(|_| nemesis.storm.workers.start());
        nemesis
    }

    /// Lets something happen, and ends it before it returns.
    pub(crate) fn strike(&mut self) {
        if self.deck.is_empty() {
            self.deck = STRIKES
                .iter()
                .copied()
                .filter(|&(name, _)| self.can(name))
                .collect();
        }
        let chosen = self.storm.random.below(self.deck.len() as u64) as usize;
        let (name, strike) = self.deck.swap_remove(chosen);
        let start = now();
        if self.storm.random.below(3) == 0 {
            let index = self.some(1)[0];
            self.storm.servers[index].pause().unwrap();
            self.hung = Some(index);
        }
        strike(self);
        let with_one_hung = self.hung.is_some();
        if let Some(index) = self.hung.take() {
            self.storm.servers[index].resume().unwrap();
        }
        self.history.push(Event {
            name,
            with_one_hung,
            start,
            end: now(),
        });
        self.storm.rest(100);
    }

    /// Makes sure that all is well.
    pub(crate) fn heal(&mut self) {
        for (server, proxy) in self.storm.servers.iter().zip(&self.proxies) {
            proxy.flow(Direction::ToClient);
            proxy.flow(Direction::ToServer);
            server.resume().unwrap();
            ask(server, &["CONFIG", "SET", "maxmemory", "0"]);
        }
    }

    /// Ends the clients, which must have nothing to complain of, and returns how many were killed
    /// before.
    pub(crate) fn stop(&mut self) -> usize {
        self.storm.workers.end()
    }

    pub(crate) fn servers(&self) -> &[Server] {
        &self.storm.servers
    }

    pub(crate) fn directory(&self) -> &Path {
        self.storm.workers.directory()
    }

    pub(crate) fn history(&self) -> &[Event] {
        &self.history
    }

    /// Whether this can happen here: not every machine lets packets be dropped, not every server
    /// feels its clock.
    pub(crate) fn can(&self, name: &str) -> bool {
        match name {
            "packets dropped" => self.packets.is_some(),
            _ => !name.starts_with("clock") || self.clocks.are_felt(),
        }
    }

    /// How many packets were dropped.
    pub(crate) fn packets_dropped(&self) -> u64 {
        self.packets.as_ref().map_or(0, Packets::dropped)
    }

    /// How many commands of the flooding clients were answered.
    pub(crate) fn flood_answers(&self) -> usize {
        self.flood_answers
    }

    /// The worker that took the lock last is waited for, if it is not there any more.
    fn kill_holder(&mut self) {
        let Storm { workers, .. } = &mut self.storm;
        let last =
            || worker::holder(workers.directory()).filter(|&number| workers.is_running(number));
        eventually(Duration::from_secs(2), || last().is_some());
        if let Some(number) = last() {
            workers.replace(number);
        }
    }

    fn pause_client(&mut self) {
        let Storm {
            workers, random, ..
        } = &mut self.storm;
        workers.pause(workers.any(random), random.up_to(worker::SHORT_PAUSE));
    }

    /// It stops itself where that does no harm.
    fn freeze_client(&mut self) {
        let Storm {
            workers, random, ..
        } = &mut self.storm;
        let number = workers.any(random);
        worker::freeze(number, workers.directory());
        workers.let_pause(number, worker::TTL + random.up_to(worker::TTL / 4));
    }

    /// A server that does not hang.
    fn one(&mut self) -> usize {
        self.some(1)[0]
    }

    /// So many servers next to each other, without the one that hangs.
    fn some(&mut self, number: usize) -> Vec<usize> {
        let well: Vec<_> = (0..self.storm.servers.len())
            .filter(|&index| Some(index) != self.hung)
            .collect();
        let first = self.storm.random.below(well.len() as u64) as usize;
        (0..number)
            .map(|index| well[(first + index) % well.len()])
            .collect()
    }

    fn hang(&mut self, number: usize, limit: u64) {
        let hung = self.some(number);
        self.storm.hang(&hung, limit);
    }

    fn restart(&mut self) {
        let victim = self.one();
        self.storm.restart(victim, 800);
    }

    /// It is back without its data after this time.
    fn forget(&mut self, later: Duration) {
        let victim = self.one();
        self.empty(victim);
        thread::sleep(later);
        self.storm.servers[victim].restart().unwrap();
    }

    /// The holder has the lock at three servers. One of them forgets it, and there are three
    /// without it.
    fn forget_what_is_needed(&mut self) {
        let victims = self.some(3);
        for &index in &victims[..2] {
            self.storm.servers[index].pause().unwrap();
        }
        self.storm.rest(1000);
        self.empty(victims[2]);
        self.storm.servers[victims[2]].restart().unwrap();
        for &index in &victims[..2] {
            self.storm.servers[index].resume().unwrap();
        }
    }

    /// Kills it, and takes away what it has on disk.
    fn empty(&mut self, victim: usize) {
        self.storm.servers[victim].kill();
        for entry in fs::read_dir(self.storm.servers[victim].directory())
            .unwrap()
            .flatten()
        {
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with("appendonly")
            {
                let path = entry.path();
                if path.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                }
                .unwrap();
            }
        }
    }

    /// It keeps its data, because its master cannot be reached.
    fn demote(&mut self) {
        let victim = self.one();
        let tell = |words: &[&str]| self.storm.servers[victim].command(words).unwrap();
        tell(&["REPLICAOF", "127.0.0.1", "1"]);
        // Connected clients are refused as they write, new ones in the handshake.
        if self.storm.random.below(2) == 0 {
            tell(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
        self.storm.rest(1000);
        let tell = |words: &[&str]| self.storm.servers[victim].command(words).unwrap();
        tell(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Keys live longer there.
    fn step_back(&mut self) {
        let victim = self.one();
        let time = self.storm.random.millis(1000);
        self.clocks.back(&self.storm.servers, victim, time);
    }

    /// As much as clocks may differ.
    fn step_all(&mut self) {
        for index in 0..self.storm.servers.len() {
            self.clocks.forward(&self.storm.servers, index, SMALL_STEP);
        }
    }

    /// Every key there has run out, as it would have by the time that the server answers again.
    fn step_far(&mut self) {
        let victim = self.one();
        self.storm.servers[victim].pause().unwrap();
        let step = Duration::from_secs(1 + self.storm.random.below(3600));
        self.clocks.forward(&self.storm.servers, victim, step);
        thread::sleep(FORGOTTEN);
        self.storm.servers[victim].resume().unwrap();
    }

    fn stall(&mut self, direction: Direction) {
        let victim = self.one();
        self.proxies[victim].stall(direction);
        self.storm.rest(1500);
        self.proxies[victim].flow(direction);
    }

    fn trickle(&mut self, direction: Direction) {
        let victim = self.one();
        let pause = self.storm.random.up_to(Duration::from_millis(2));
        self.proxies[victim].trickle(direction, pause);
        self.storm.rest(1000);
        self.proxies[victim].flow(direction);
    }

    fn cut(&mut self, direction: Direction) {
        let victim = self.one();
        let bytes = self.storm.random.below(4000);
        self.proxies[victim].cut_after(direction, bytes);
    }

    fn reset(&mut self) {
        let victim = self.one();
        self.proxies[victim].reset_all();
    }

    fn lose(&mut self) {
        let victim = self.one();
        self.proxies[victim].lose_all();
    }

    fn drop_packets(&mut self) {
        let victim = self.one();
        let percent = 10 + self.storm.random.below(91);
        let time = self.storm.random.millis(1000);
        if let Some(packets) = &mut self.packets {
            packets.drop_some(self.proxies[victim].port(), percent);
            thread::sleep(time);
            packets.drop_none();
        }
    }

    fn flood(&mut self) {
        let victim = self.one();
        let time = self.storm.random.millis(1000);
        self.flood_answers += flood(self.storm.servers[victim].port(), time);
    }

    fn tell(&mut self, words: &[&str]) {
        let victim = self.one();
        self.storm.servers[victim].command(words).unwrap();
    }

    /// Nothing is evicted: commands that need memory are refused.
    fn fill(&mut self, number: usize) {
        let victims = self.some(number);
        for &victim in &victims {
            ask(
                &self.storm.servers[victim],
                &["CONFIG", "SET", "maxmemory", "1"],
            );
        }
        self.storm.rest(500);
        for &victim in &victims {
            ask(
                &self.storm.servers[victim],
                &["CONFIG", "SET", "maxmemory", "0"],
            );
        }
    }
}
