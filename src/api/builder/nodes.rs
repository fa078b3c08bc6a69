//! The nodes of a client, and what is declared of them.

use super::{Builder, config};
use crate::algorithm::node::MAX_NODES;
use crate::events::error::Result;
use crate::protocol::endpoint::Endpoint;

impl Builder {
    /// Adds a node: an independent Redis or Valkey master, by its URL.
    ///
    /// `redis://[user:password@]host[:port][/database]` or `unix://[user:password@]path`; user, password and path may
    /// be percent-encoded; a password without a user is written `redis://:password@host`. The port is 6379 unless it is
    /// named. `valkey://` is `redis://`, and `rediss://` is TLS (feature `tls`). Parameters follow a `?`, with `&`
    /// between them, as in `?db=2&durable=true`:
    ///
    /// | Parameter | Meaning | Default |
    /// |---|---|---|
    /// | `db` | The number of the database, also in place of `/database` | 0 |
    /// | `durable` | `true` or `false`: whether the node is [`durable`](Builder::durable) | as the builder |
    /// | `server_name` | For `rediss://`: the host name or IP address that the node's certificate must be for, and that the server is asked for (SNI) | the host |
    ///
    /// ```
    /// use quorumlock::Redlock;
    ///
    /// let redlock = Redlock::builder()
    ///     .node("redis://10.0.0.1:6379?durable=true")
    ///     .node("redis://:secret@10.0.0.2/1?durable=true")
    ///     .node("unix:///run/redis.sock?db=1")
    ///     .build()?;
    /// assert!(redlock.nodes()?[0].is_durable());
    ///
    /// // An error shows nothing of the URL, which may hold a password.
    /// let error = Redlock::builder().node("redis://:secret@10.0.0.1?durable=yes").build().unwrap_err();
    /// assert_eq!(error.to_string(), "node 0: durable takes true or false, as in redis://host:6379?durable=true");
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    ///
    /// Every client of a lock must name the same nodes, and the same database of each. Three or five make a sound
    /// quorum; one makes the single-instance lock, which is as available as that one server. The limit is 64.
    #[must_use]
    pub fn node(mut self, url: impl Into<String>) -> Builder {
        self.nodes.push(url.into());
        self
    }

    /// Adds several nodes by their URLs, each as by [`node`](Builder::node).
    #[must_use]
    pub fn nodes(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.nodes.extend(urls.into_iter().map(Into::into));
        self
    }

    /// Declares whether all nodes keep every write that they have confirmed, through restarts and crashes: `appendonly
    /// yes` *and* `appendfsync always`, on a disk that keeps what it confirms, without fail-over to a replica. Default:
    /// no. `?durable=` in the URL of a node overrides it.
    ///
    /// The votes of a durable node count at once after a restart, for any [`RestartPolicy`](crate::RestartPolicy). A
    /// node whose `INFO` contains `aof_enabled:0` contradicts its declaration: it is not durable then, nor is the
    /// process after it, and the observer receives [an event](crate::event::Event::NodeNotDurable). Nothing else can be
    /// checked, as `INFO` does not show `appendfsync`: **with a node that is wrongly declared durable, two clients may
    /// hold a lock at once.**
    ///
    /// ```
    /// use quorumlock::Redlock;
    ///
    /// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3?durable=false"];
    /// let redlock = Redlock::builder().nodes(urls).durable(true).build()?;
    /// let durable: Vec<bool> = redlock.nodes()?.iter().map(|node| node.is_durable()).collect();
    /// assert_eq!(durable, [true, true, false]);
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Builder {
        self.durable = durable;
        self
    }

    /// Where each node is, and how to log in there.
    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>> {
        if self.nodes.is_empty() {
            return Err(config("no node: name at least one with Builder::node"));
        }
        if self.nodes.len() > MAX_NODES {
            return Err(config(format!("{} nodes; the limit is {MAX_NODES}", self.nodes.len())));
        }
        let mut endpoints: Vec<Endpoint> = Vec::with_capacity(self.nodes.len());
        for (index, url) in self.nodes.iter().enumerate() {
            let endpoint = Endpoint::parse(url).map_err(|error| config(format!("node {index}: {error}")))?;
            if let Some(first) = endpoints.iter().position(|other| other.address() == endpoint.address()) {
                return Err(config(format!(
                    "node {index} is node {first} again ({endpoint}): one server has one vote"
                )));
            }
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}
