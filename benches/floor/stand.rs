//! The test stand: real servers on their own cores.

use crate::Setting;
use crate::server::{Answer, Server};
use quorumlock::protocol::dialect::Dialect;
use quorumlock::protocol::script;
use std::net::SocketAddr;

/// Servers that end with this value.
pub(crate) struct Stand {
    pub(crate) servers: Vec<Server>,
}

impl Stand {
    pub(crate) fn start(setting: &Setting, count: usize) -> Stand {
        let servers = setting.cores.for_servers(|| Server::several(count));
        Stand { servers: servers.expect("servers to measure with") }
    }

    /// The addresses of the first so many servers.
    pub(crate) fn addresses(&self, count: usize) -> Vec<SocketAddr> {
        self.servers[..count].iter().map(|server| ([127, 0, 0, 1], server.port()).into()).collect()
    }

    /// How this kind of server is best asked to compare and delete, and sees to it that it can be.
    pub(crate) fn dialect(&self) -> Dialect {
        let knows = |words: &[&str]| matches!(self.servers[0].command(words), Ok(Answer::Number(_)));
        if knows(&["DELIFEQ", "none", "none"]) {
            Dialect::Delifeq
        } else if knows(&["DELEX", "none", "IFEQ", "none"]) {
            Dialect::Delex
        } else {
            self.load_script();
            Dialect::Evalsha
        }
    }

    /// Makes the script that releases known to all servers.
    pub(crate) fn load_script(&self) {
        for server in &self.servers {
            server.command(&["SCRIPT", "LOAD", script::RELEASE]).expect("a server that takes a script");
        }
    }

    /// How many commands the servers have run so far, those of scripts included, and how many of them clients sent.
    pub(crate) fn commands(&self) -> (f64, f64) {
        let (mut run, mut sent) = (0.0, 0.0);
        for server in &self.servers {
            let Ok(Answer::Text(statistics)) = server.command(&["INFO", "commandstats"]) else { continue };
            for line in statistics.lines() {
                // cmdstat_set:calls=3,usec=…
                let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(":calls="))
                else {
                    continue;
                };
                let calls: f64 = rest.split(',').next().and_then(|calls| calls.parse().ok()).unwrap_or(0.0);
                match name {
                    "info" => {}
                    // Scripts run these, and nobody sends them.
                    "del" | "get" | "publish" => run += calls,
                    _ => {
                        run += calls;
                        sent += calls;
                    }
                }
            }
        }
        (run, sent)
    }
}
