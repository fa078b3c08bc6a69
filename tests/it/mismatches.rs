//! Programs that use the same nodes with other settings: that is an event, once for each node and
//! change, and a metric. Locks work.

use crate::incarnations::{MAX_TTL, brief};
use crate::prelude::*;
use quorumlock::event::Mismatch;

/// What a program finds whose `max_ttl` is twice as long.
const LONGER: Mismatch = Mismatch::MaxTtl {
    noted: MAX_TTL,
    own: Duration::from_secs(8),
};
/// A connection has another look at its node after this.
const LOOK: Duration = Duration::from_millis(1100);

/// Servers of a deployment that a program has used.
fn known(count: usize) -> Vec<Server> {
    let servers = Server::several(count).unwrap();
    drop(take(&brief(&servers).build().unwrap().mutex("held")));
    servers
}

/// The mismatches, with their nodes.
type Journal = Seen<(String, Mismatch)>;

/// What was reported of these servers, in their order, and of no other.
#[track_caller]
fn has(journal: &Journal, servers: &[Server], expected: &[Mismatch]) {
    let mut reported = journal.all();
    let place = |address: &str| {
        servers
            .iter()
            .position(|server| server.address() == address)
    };
    reported.sort_by_key(|(address, _)| place(address));
    let of_each = |server: &Server| {
        expected
            .iter()
            .map(|&mismatch| (server.address(), mismatch))
            .collect()
    };
    assert_eq!(
        reported,
        servers
            .iter()
            .flat_map(|server| -> Vec<_> { of_each(server) })
            .collect::<Vec<_>>()
    );
}
/// A client that reports to a journal, and counts.
fn watched(builder: Builder) -> (Redlock, Journal, Counters) {
    let journal = Seen::nothing();
    let mismatch = picked!(
        Event::NodeMismatched { node, mismatch, .. } => (node.to_string(), *mismatch)
    );
    let counters = Counters::new();
    let client = builder
        .observer(journal.by(mismatch))
        .counters(&counters)
        .build()
        .unwrap();
    (client, journal, counters)
}

/// Locks and releases, so that each node is looked at once more, also on another connection.
fn use_for_long(client: &Redlock, servers: &[Server]) {
    for round in 0..2 {
        let _ = take(&client.mutex("job")).unlock().unwrap();
        client.connect(MAX_TTL).unwrap();
        thread::sleep(LOOK);
        if round == 1 {
            for server in servers {
                cut(server);
            }
        }
    }
    client.connect(MAX_TTL).unwrap();
    let _ = take(&client.mutex("job")).unlock().unwrap();
}

/// How many nodes the metric shows.
fn shown(counters: &Counters, of: &str) -> usize {
    let text = counters.prometheus_text();
    let is_one =
        |line: &&str| line.starts_with("quorumlock_node_mismatch{") && line.ends_with(" 1");
    text.lines()
        .filter(is_one)
        .filter(|line| line.contains(&format!("of=\"{of}\"")))
        .count()
}

#[test]
fn another_number_of_nodes_is_reported_once_for_each_node() {
    let mut servers = known(3);
    servers.extend(Server::several(2).unwrap());
    let (client, journal, counters) = watched(brief(&servers));
    use_for_long(&client, &servers);
    has(
        &journal,
        &servers[..3],
        &[Mismatch::Nodes { noted: 3, own: 5 }],
    );
    assert_eq!(
        (shown(&counters, "nodes"), shown(&counters, "max_ttl")),
        (3, 0)
    );
    assert_eq!(
        client
            .nodes()
            .unwrap()
            .iter()
            .filter(|node| !node.mismatches().is_empty())
            .count(),
        3
    );
}

#[test]
fn another_max_ttl_is_reported_once_by_each_of_both_programs() {
    let servers = known(3);
    let (short, journal, counters) = watched(brief(&servers));
    drop(take(&short.mutex("held")));
    has(&journal, &servers, &[]);
    thread::sleep(LOOK);

    let (long, of_longer, of_long) = watched(brief(&servers).max_ttl(MAX_TTL * 2));
    use_for_long(&long, &servers);
    has(&of_longer, &servers, &[LONGER]);
    assert_eq!(shown(&of_long, "max_ttl"), 0, "it has stored its own");

    use_for_long(&short, &servers);
    has(
        &journal,
        &servers,
        &[Mismatch::MaxTtl {
            noted: MAX_TTL * 2,
            own: MAX_TTL,
        }],
    );
    assert_eq!(shown(&counters, "max_ttl"), 3);
}

#[test]
fn a_right_to_the_key_of_another_prefix_is_reported_once_for_each_node() {
    skip_unless!(has_users());
    let servers = known(3);
    let keys = "~jobs/* ~quorumlock-queue:* ~quorumlock-node:orders/";
    let rights = format!("{keys} resetchannels &quorumlock:* +@all");
    let urls = servers.each(|server| user_named(server, "app", &rights));
    let of = |prefix: &str| brief([]).nodes(urls.clone()).prefix(prefix);
    let (client, journal, counters) = watched(of("jobs/"));
    use_for_long(&client, &servers);
    has(&journal, &servers, &[Mismatch::Rights]);
    assert_eq!(shown(&counters, "rights"), 3);

    // A user that may not look at the key, or not store a note, has no right to it, either.
    ask_each(
        &servers,
        &["ACL", "SETUSER", "app", "~quorumlock-node:jobs/"],
    );
    for right in ["time", "eval"] {
        let change = |sign| {
            let rule = format!("{sign}{right}");
            servers.iter().for_each(|server| {
                drop(server.command(&["ACL", "SETUSER", "app", &rule]).unwrap())
            });
        };
        change('-');
        let (client, journal, _) = watched(of("jobs/"));
        drop(take(&client.mutex(right).ttl(Duration::from_millis(500))));
        // Each node has replied.
        client.connect(MAX_TTL).unwrap();
        drop(client);
        has(&journal, &servers, &[Mismatch::Rights]);
        change('+');
    }
}

#[test]
fn a_mismatch_of_a_node_that_stores_nothing_is_reported_once() {
    let servers = known(3);
    ask(&servers[0], &["CONFIG", "SET", "maxmemory", "1"]);
    let (client, journal, _) = watched(brief(&servers).max_ttl(MAX_TTL * 2));
    use_for_long(&client, &servers);
    has(&journal, &servers, &[LONGER]);
}
