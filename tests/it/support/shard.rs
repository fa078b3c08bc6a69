//! A cluster of one shard: a master that owns all slots, and its replicas.

use crate::prelude::*;

/// Far more than a cluster needs to agree, for machines that are busy.
const SOON: Duration = Duration::from_secs(60);
/// What clusters are made of.
pub(crate) const CLUSTER: [&str; 4] =
    ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];

/// Its servers.
pub(crate) struct Shard {
    pub(crate) servers: Vec<Server>,
    master: usize,
}

impl Shard {
    /// A master with so many replicas, all by this plan.
    pub(crate) fn start(plan: &Plan, replicas: usize) -> Shard {
        let mut plan = plan.clone().arguments(&CLUSTER);
        if std::env::var_os(TLS_VARIABLE).is_some() {
            plan = plan.arguments(&["--tls-cluster", "yes"]);
        }
        let servers: Vec<_> = (0..=replicas)
            .map(|_| plan.clone().start().unwrap())
            .collect();
        own(&servers[0], 0..16_384);
        let shard = Shard { servers, master: 0 };
        let name = shard.master().text(&["CLUSTER", "MYID"]);
        for replica in &shard.servers[1..] {
            meet(replica, shard.master());
            let knows = || replica.text(&["CLUSTER", "NODES"]).contains(&name);
            assert!(eventually(SOON, knows));
            let replicate = ["CLUSTER", "REPLICATE", &name];
            let is_done = || replica.command(&replicate).unwrap() == Answer::Text("OK".into());
            assert!(eventually(SOON, is_done));
            follows(replica);
        }
        serves(&shard.servers);
        shard
    }

    pub(crate) fn master(&self) -> &Server {
        &self.servers[self.master]
    }

    /// A replica.
    pub(crate) fn replica(&self) -> &Server {
        &self.servers[(self.master + 1) % self.servers.len()]
    }

    /// Makes the next replica the master, and the master its replica, without a loss.
    pub(crate) fn fail_over(&mut self) {
        let next = self.replica();
        let is_master = || next.info("role").unwrap() == "master";
        assert!(eventually(SOON, || {
            let _ = next.command(&["CLUSTER", "FAILOVER"]);
            eventually(Duration::from_secs(5), is_master)
        }));
        follows(self.master());
        self.master = (self.master + 1) % self.servers.len();
    }
}

/// Lets a server own slots.
pub(crate) fn own(server: &Server, slots: std::ops::Range<u32>) {
    let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter();
    let words: Vec<&str> = words.chain(slots.iter().map(String::as_str)).collect();
    assert_eq!(server.command(&words).unwrap(), Answer::Text("OK".into()));
}

/// Makes two servers known to each other.
pub(crate) fn meet(one: &Server, other: &Server) {
    let port = other.port().to_string();
    let met = one.command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
    assert_eq!(met.unwrap(), Answer::Text("OK".into()));
}

/// Waits until all servers see a cluster that serves all keys.
pub(crate) fn serves(servers: &[Server]) {
    for server in servers {
        let is_ok = || {
            server
                .text(&["CLUSTER", "INFO"])
                .contains("cluster_state:ok")
        };
        assert!(eventually(SOON, is_ok));
    }
}

/// Waits until a replica has what its master has.
fn follows(replica: &Server) {
    assert!(eventually(SOON, || is_synchronised(replica)));
}

/// Makes a server a replica of another one.
#[track_caller]
pub(crate) fn follow(server: &Server, master: &Server) {
    let port = master.port().to_string();
    let answer = server.command(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    assert_eq!(answer, Answer::Text("OK".into()));
}

/// Makes a replica a master.
#[track_caller]
pub(crate) fn promote(replica: &Server) {
    let answer = replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(answer, Answer::Text("OK".into()));
}

/// A new replica of this server.
#[track_caller]
pub(crate) fn replica_of(master: &Server) -> Server {
    let port = master.port().to_string();
    Server::with(&["--replicaof", "127.0.0.1", &port]).unwrap()
}

/// Whether a replica has what its master has.
pub(crate) fn is_synchronised(replica: &Server) -> bool {
    replica.info("master_link_status").unwrap() == "up"
}
