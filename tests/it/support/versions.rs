//! Servers of each version at hand: the usual one, and those that `QUORUMLOCK_SERVERS` names.

use super::server::{Server, binaries};

/// One of each.
pub(crate) fn servers() -> Vec<Server> {
    servers_with(&[])
}

/// One of each, started with these arguments.
pub(crate) fn servers_with(arguments: &[&str]) -> Vec<Server> {
    let of_one = |binary| Server::plan().binary(binary).arguments(arguments).start();
    let binaries = binaries().unwrap().into_iter();
    binaries.map(|binary| of_one(binary).unwrap()).collect()
}

/// Three of each, started when it is their turn.
pub(crate) fn threes() -> impl Iterator<Item = Vec<Server>> {
    binaries().unwrap().into_iter().map(|binary| {
        let plan = Server::plan().binary(binary);
        (0..3).map(|_| plan.clone().start().unwrap()).collect()
    })
}

/// What a server calls itself, for a message.
pub(crate) fn shown(server: &Server) -> String {
    ["redis_version", "valkey_version"]
        .map(|field| server.info(field).unwrap())
        .join(" ")
}
