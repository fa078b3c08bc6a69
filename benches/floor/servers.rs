//! Real servers on the cores of their placement.

use crate::release;
use crate::server::{Answer, Server};
use crate::setting::Setting;
use std::net::SocketAddr;

/// What happens to some of the nodes, in words, and to how many.
pub(crate) type Disturbance = (&'static str, usize, fn(&mut Server));

pub(crate) const DISTURBANCES: [Disturbance; 3] = [
    ("one of 5 hung", 1, |server| {
        server.pause().expect("a server to stop")
    }),
    ("two of 5 hung", 2, |server| {
        server.pause().expect("a server to stop")
    }),
    ("one of 5 killed", 1, Server::kill),
];

/// Servers that end with this value.
pub(crate) struct Servers {
    pub(crate) processes: Vec<Server>,
}

impl Servers {
    pub(crate) fn start(setting: &Setting, count: usize) -> Servers {
        Servers::with(setting, count, &[])
    }

    /// Servers with arguments of their own.
    pub(crate) fn with(setting: &Setting, count: usize, arguments: &[&str]) -> Servers {
        Servers::try_with(setting, count, arguments).expect("servers to measure with")
    }

    /// Servers with arguments that not every server knows.
    pub(crate) fn try_with(setting: &Setting, count: usize, arguments: &[&str]) -> Option<Servers> {
        let start = || {
            (0..count)
                .map(|_| Server::with(arguments))
                .collect::<std::io::Result<_>>()
        };
        let servers = setting
            .cores
            .for_servers(start)
            .ok()
            .map(|processes| Servers { processes })?;
        servers.load_script();
        Some(servers)
    }

    /// The addresses of the first so many servers.
    pub(crate) fn addresses(&self, count: usize) -> Vec<SocketAddr> {
        self.processes[..count]
            .iter()
            .map(|server| ([127, 0, 0, 1], server.port()).into())
            .collect()
    }

    /// Loads the release script into all servers.
    fn load_script(&self) {
        for server in &self.processes {
            server
                .command(&["SCRIPT", "LOAD", release::SCRIPT])
                .expect("a server that takes a script");
        }
    }

    /// How many commands the servers have run so far, commands of scripts included, and how many of
    /// them clients sent.
    pub(crate) fn commands(&self) -> (f64, f64) {
        let mut run = 0.0;
        let mut sent = 0.0;
        self.each_command(|name, calls| match name {
            "info" => {}
            // Scripts run these; no client sends them.
            "del" | "get" | "publish" => run += calls,
            _ => {
                run += calls;
                sent += calls;
            }
        });
        (run, sent)
    }

    /// How often the servers have run this command so far.
    pub(crate) fn calls(&self, command: &str) -> f64 {
        let mut all = 0.0;
        self.each_command(|name, calls| all += if name == command { calls } else { 0.0 });
        all
    }

    /// How many queues are on each server.
    pub(crate) fn queues(&self) -> Vec<usize> {
        let queues = |server: &Server| match server.command(&["KEYS", "quorumlock-queue:*"]) {
            Ok(Answer::List(keys)) => keys.len(),
            other => panic!("KEYS: {other:?}"),
        };
        self.processes.iter().map(queues).collect()
    }

    /// The processor time of all servers so far, in seconds.
    pub(crate) fn busy_time(&self) -> f64 {
        self.info_sum(&["used_cpu_user", "used_cpu_sys"])
    }

    /// The sum of these fields of `INFO` over all servers that reply.
    pub(crate) fn info_sum(&self, fields: &[&str]) -> f64 {
        let field = |server: &Server, field| server.info(field).ok()?.parse::<f64>().ok();
        let of_server = |server: &Server| {
            fields
                .iter()
                .filter_map(|name| field(server, name))
                .sum::<f64>()
        };
        self.processes.iter().map(of_server).sum()
    }

    /// Returns each server's commands with how often it has run them.
    fn each_command(&self, mut take: impl FnMut(&str, f64)) {
        for server in &self.processes {
            let Ok(Answer::Text(statistics)) = server.command(&["INFO", "commandstats"]) else {
                continue;
            };
            for line in statistics.lines() {
                // cmdstat_set:calls=3,usec=…
                let Some((name, rest)) = line
                    .strip_prefix("cmdstat_")
                    .and_then(|line| line.split_once(":calls="))
                else {
                    continue;
                };
                take(
                    name,
                    rest.split(',')
                        .next()
                        .and_then(|calls| calls.parse().ok())
                        .unwrap_or(0.0),
                );
            }
        }
    }
}
