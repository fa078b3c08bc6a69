//! The nodes of one deployment, each asked on a thread of its own.

use crate::connection::{Connection, Step, Trouble};
use crate::exit::Failure;
use crate::settings::Settings;
use quorumlock::Endpoint;
use std::thread;
use std::time::Duration;

/// How long a node has to connect and to answer a question that is no lock: more than an attempt has, because a slow
/// answer is one.
const TIMEOUT: Duration = Duration::from_secs(2);

/// All nodes, in the order in which they are named.
pub(crate) struct Deployment {
    pub(crate) settings: Settings,
    pub(crate) endpoints: Vec<Endpoint>,
}

impl Deployment {
    pub(crate) fn new(settings: Settings) -> Result<Deployment, Failure> {
        Ok(Deployment { endpoints: settings.endpoints()?, settings })
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.endpoints.iter().map(ToString::to_string).collect()
    }

    /// How many nodes are a majority.
    pub(crate) fn quorum(&self) -> usize {
        self.endpoints.len() / 2 + 1
    }

    /// Asks all nodes at once. A node that cannot be asked keeps none of the others waiting.
    pub(crate) fn ask<T: Send>(
        &self,
        ask: impl Fn(&mut Connection) -> Result<T, Trouble> + Sync,
    ) -> Vec<Result<T, Trouble>> {
        self.each(|node, _| ask(&mut self.open(node)?))
    }

    /// Connects to the node with this number. Not over TLS: the password of such a node must not go out without it.
    pub(crate) fn open(&self, node: usize) -> Result<Connection, Trouble> {
        match self.settings.urls().nth(node) {
            Some(url) if is_tls(url) => Err(Trouble::new(Step::Connect, "this command does not ask nodes over TLS")),
            _ => Connection::open(&self.endpoints[node], TIMEOUT),
        }
    }

    /// Does something for each node, with its number, all at once.
    pub(crate) fn each<T: Send>(&self, work: impl Fn(usize, &Endpoint) -> T + Sync) -> Vec<T> {
        let work = &work;
        thread::scope(|scope| {
            let spawn = |(node, endpoint)| scope.spawn(move || work(node, endpoint));
            let threads: Vec<_> = self.endpoints.iter().enumerate().map(spawn).collect();
            let join = |panicked| std::panic::resume_unwind(panicked);
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(join)).collect()
        })
    }
}

fn is_tls(url: &str) -> bool {
    ["rediss://", "valkeys://"].iter().any(|scheme| url.starts_with(scheme))
}
