//! A node as it is named to a client: where it is, and whether it keeps what it has promised.

use std::fmt;

/// A node: the URL of an independent master, and what is declared of it. Given to
/// [`Builder::node`](crate::Builder::node), which also takes a URL alone.
///
/// ```
/// use quorumlock::{Node, Redlock};
///
/// let redlock = Redlock::builder()
///     .node(Node::new("redis://10.0.0.1:6379").durable(true))
///     .node(Node::new("redis://10.0.0.2:6379").durable(true))
///     .node("redis://10.0.0.3:6379")
///     .build()?;
/// assert!(redlock.nodes()?[0].is_durable());
/// # Ok::<(), quorumlock::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    pub(crate) url: String,
    /// What is declared here; otherwise the URL or the builder says.
    pub(crate) durable: Option<bool>,
    /// The name that its certificate must be for, if not the host of the URL.
    #[cfg(feature = "tls")]
    pub(crate) server_name: Option<String>,
}

impl Node {
    /// The node at this URL, see [`Builder::node`](crate::Builder::node) for its form. Whether it is durable, its URL
    /// or [`Builder::durable`](crate::Builder::durable) says.
    pub fn new(url: impl Into<String>) -> Node {
        Node {
            url: url.into(),
            durable: None,
            #[cfg(feature = "tls")]
            server_name: None,
        }
    }

    /// Declares whether the node keeps every write that it has confirmed, through restarts and crashes: `appendonly
    /// yes` *and* `appendfsync always`, on a disk that keeps what it says, without fail-over to a replica. Default: no.
    /// It counts over `?durable=` in the URL, and both count over [`Builder::durable`](crate::Builder::durable).
    ///
    /// The votes of a durable node count at once after a restart, whatever the [`RestartPolicy`](crate::RestartPolicy).
    /// A node whose `INFO` says `aof_enabled:0` contradicts its declaration: it is not durable then, nor is the process
    /// after it, and the observer gets [an event](crate::event::Event::NodeNotDurable). Nothing else can be checked, as
    /// `INFO` does not show `appendfsync`: **a node that is wrongly declared durable may help to give away a lock a
    /// second time.**
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Node {
        self.durable = Some(durable);
        self
    }

    /// The host name or IP address that the certificate of a `rediss://` node must be for, and that the server is asked
    /// for (SNI). Default: the host of the URL. For a node that is reached by another address than its certificate
    /// names, as through a tunnel.
    ///
    /// ```no_run
    /// use quorumlock::{Node, Redlock, Tls};
    ///
    /// let redlock = Redlock::builder()
    ///     .node(Node::new("rediss://10.0.0.1:6379").server_name("redis-1.example.com"))
    ///     .tls(Tls::new().roots_file("/etc/redis/tls/ca.crt"))
    ///     .build()?;
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Node {
        self.server_name = Some(name.into());
        self
    }
}

/// A URL alone.
impl<U: Into<String>> From<U> for Node {
    fn from(url: U) -> Node {
        Node::new(url)
    }
}

/// Shows nothing of the URL, which may hold a password.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("durable", &self.durable).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_any_type_is_a_node_and_does_not_show() {
        let url = "redis://:hunter2@h";
        let nodes: [Node; 4] = [url.into(), url.to_owned().into(), (&url.to_owned()).into(), Node::new(url)];
        assert!(nodes.iter().all(|node| *node == nodes[0] && node.durable.is_none() && node.url == url));
        assert_eq!(format!("{:?}", nodes[3].clone().durable(true)), "Node { durable: Some(true), .. }");
    }
}
