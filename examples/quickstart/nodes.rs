//! Something to lock on: server processes if there is a server to run, embedded nodes if not, or
//! the user's own nodes.

#[cfg(unix)]
#[path = "../../tests/it/support/server.rs"]
mod server;

use quorumlock::embedded::EmbeddedNode;
#[cfg(unix)]
use server::Server;
use std::io;

/// How many we start.
const COUNT: usize = 5;

/// The nodes. Ours end when this is dropped.
pub enum Nodes {
    Embedded(Vec<EmbeddedNode>),
    Given(Vec<String>),
    #[cfg(unix)]
    Processes(Vec<Server>),
}

impl Nodes {
    /// Takes the nodes of these URLs, or starts some if there are none.
    pub fn start(urls: Vec<String>) -> io::Result<Nodes> {
        if !urls.is_empty() {
            return Ok(Nodes::Given(urls));
        }
        #[cfg(unix)]
        if server::find_binary().is_ok() {
            return Server::several(COUNT).map(Nodes::Processes);
        }
        (0..COUNT)
            .map(|_| EmbeddedNode::start())
            .collect::<io::Result<_>>()
            .map(Nodes::Embedded)
    }

    pub fn urls(&self) -> Vec<String> {
        match self {
            Nodes::Embedded(nodes) => nodes.iter().map(EmbeddedNode::url).collect(),
            Nodes::Given(urls) => urls.clone(),
            #[cfg(unix)]
            Nodes::Processes(servers) => servers.iter().map(Server::url).collect(),
        }
    }

    /// What they are. Never their URLs, which may hold passwords.
    pub fn describe(&self) -> io::Result<String> {
        let count = self.urls().len();
        let what = match self {
            Nodes::Embedded(_) => {
                "embedded nodes in this process (no redis-server or valkey-server found)".to_owned()
            }
            Nodes::Given(_) => {
                "nodes of yours, which will be left alone: nothing hangs or dies".to_owned()
            }
            #[cfg(unix)]
            Nodes::Processes(servers) => describe_processes(servers)?,
        };
        Ok(format!("{count} {what}; a lock needs {}", count / 2 + 1))
    }

    /// Whether we started them, and so may treat them badly.
    pub fn are_ours(&self) -> bool {
        !matches!(self, Nodes::Given(_))
    }

    /// Stops one where it is: it accepts bytes and answers nothing.
    pub fn hang(&mut self, index: usize) -> io::Result<()> {
        match self {
            Nodes::Embedded(nodes) => nodes[index].hang(),
            Nodes::Given(_) => {}
            #[cfg(unix)]
            Nodes::Processes(servers) => servers[index].pause()?,
        }
        Ok(())
    }

    /// Lets a hung one go on.
    pub fn resume(&mut self, index: usize) -> io::Result<()> {
        match self {
            Nodes::Embedded(nodes) => nodes[index].resume(),
            Nodes::Given(_) => {}
            #[cfg(unix)]
            Nodes::Processes(servers) => servers[index].resume()?,
        }
        Ok(())
    }

    /// Ends one, connections, keys and all.
    pub fn kill(&mut self, index: usize) -> io::Result<()> {
        match self {
            Nodes::Embedded(nodes) => nodes[index].kill(),
            Nodes::Given(_) => {}
            #[cfg(unix)]
            Nodes::Processes(servers) => servers[index].kill(),
        }
        Ok(())
    }

    /// Starts a dead node again, at the same address and without its keys. Clients that have met it
    /// do not count its votes until all that it has forgotten has ended.
    pub fn revive(&mut self, index: usize) -> io::Result<()> {
        match self {
            Nodes::Embedded(nodes) => nodes[index].revive(),
            Nodes::Given(_) => Ok(()),
            #[cfg(unix)]
            Nodes::Processes(servers) => servers[index].restart(),
        }
    }
}

#[cfg(unix)]
fn describe_processes(servers: &[Server]) -> io::Result<String> {
    let path = server::find_binary()?;
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    let Some(first) = servers.first() else {
        return Ok(format!("processes of {name}"));
    };
    // Valkey has a version of its own, and one of Redis that it is compatible with.
    let mut version = first.info("valkey_version")?;
    if version.is_empty() {
        version = first.info("redis_version")?;
    }
    let ports: Vec<String> = servers
        .iter()
        .map(|server| server.port().to_string())
        .collect();
    Ok(format!(
        "processes of {name} {version}, ports {}",
        ports.join(" ")
    ))
}
