//! What the deployment guarantees as it is, in one sentence.
//!
//! Two programs hold a lock at once if the nodes that both have asked have forgotten the first one,
//! and count for the second one. A node that remembers its losses does not count after one, unless
//! the deployment looks new: all nodes that reply have lost their keys, and those that do not tell
//! of losses reply as well. So of N nodes with a quorum q, of which u do not tell, q - 1 - u may
//! lose their keys. One that does not tell, is declared durable or evicts locks counts whatever it
//! has lost. So does a replica that takes the place of such a node; one that takes the place of
//! another node is a node that has lost its keys.

use super::server::Server;
use quorumlock::{NodeNote, NodeStatus, RestartPolicy};

/// What the guarantee depends on at one node.
pub(super) struct Node<'d> {
    address: &'d str,
    losses: Losses,
    /// Its policy of eviction.
    eviction: Option<&'d str>,
    /// Whether its server writes nothing to disk.
    is_volatile: bool,
    /// Whether its server does not show its run id, or whether it evicts.
    is_withheld: bool,
    has_replicas: bool,
    /// The setting by which it writes its append-only file later than before each reply.
    late_fsync: Option<String>,
}

/// What becomes of a node that has lost its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losses {
    /// It counts, and is declared not to lose any.
    Durable,
    /// It does not count.
    Remembered,
    /// It counts for programs that have just started.
    Untold,
    /// It was not asked.
    Unknown,
}

impl<'d> Node<'d> {
    pub(super) fn of(status: &'d NodeStatus, server: Option<&Server>) -> Node<'d> {
        let losses = match status.note() {
            NodeNote::Unknown => Losses::Unknown,
            _ if status.is_durable() => Losses::Durable,
            NodeNote::Withheld => Losses::Untold,
            _ => Losses::Remembered,
        };
        Node {
            address: status.address(),
            losses,
            eviction: status.eviction(),
            is_volatile: server.is_some_and(Server::is_volatile),
            is_withheld: server.is_some_and(Server::is_withheld),
            has_replicas: server.is_some_and(Server::has_replicas),
            late_fsync: server.and_then(Server::late_fsync),
        }
    }

    /// Its address, if it is one of those that are meant.
    fn named(&self, is_meant: bool) -> Option<String> {
        is_meant.then(|| self.address.to_owned())
    }

    /// The address of one that is declared durable, and what contradicts that.
    fn if_durable(&self) -> Option<String> {
        let name = self.named(self.losses == Losses::Durable)?;
        Some(match &self.late_fsync {
            Some(setting) => format!("{name} ({setting})"),
            None => name,
        })
    }
}

/// The sentence about these nodes. `is_disputed`: programs use them that have other ones.
pub(super) fn guarantee(policy: RestartPolicy, nodes: &[Node<'_>], is_disputed: bool) -> String {
    let count = nodes.len();
    let with = |losses| nodes.iter().filter(|node| node.losses == losses).count();
    let untold = with(Losses::Untold);
    let others = count - with(Losses::Durable) - untold;
    let mut conditions = Vec::new();
    if policy == RestartPolicy::Off {
        conditions.push(format!("{} while a lock is held", at_most(0, count, count)));
    } else {
        let most = (count / 2).saturating_sub(untold).min(others);
        // Where all of the others may lose their keys, that is no condition.
        if policy == RestartPolicy::Observed && most < others {
            conditions.push(format!("{} within max_ttl", at_most(most, others, count)));
        }
        conditions.extend(requires(
            nodes,
            |node| node.if_durable(),
            "keeps its keys, as declared",
            "keep their keys, as declared",
        ));
        conditions.extend(requires(
            nodes,
            |node| node.named(node.losses == Losses::Untold),
            "loses none, of which it would tell nothing",
            "lose none, of which they would tell nothing",
        ));
        conditions.extend(requires(
            nodes,
            |node| node.named(node.losses == Losses::Durable && node.has_replicas),
            "is not replaced by a replica that lacks a lock",
            "are not replaced by replicas that lack a lock",
        ));
        conditions.extend(requires(
            nodes,
            |node| node.named(node.losses == Losses::Unknown),
            "remembers losses, which is not known",
            "remember losses, which is not known",
        ));
    }
    conditions.extend(requires(
        nodes,
        |node| Some(format!("{} ({})", node.address, node.eviction?)),
        "evicts no lock",
        "evict no lock",
    ));
    conditions.extend(requires(
        nodes,
        |node| node.named(node.is_withheld),
        "evicts no lock, which INFO does not show",
        "evict no lock, which INFO does not show",
    ));
    if count > 1 && nodes.iter().any(|node| node.is_withheld) {
        conditions.push("all nodes are different servers".to_owned());
    }
    if let [node] = nodes
        && node.is_volatile
        && policy != RestartPolicy::Strict
    {
        conditions.push("is not restarted: it writes nothing to disk".to_owned());
    }
    if is_disputed {
        conditions.push("all programs have the same nodes".to_owned());
    }
    match conditions.as_slice() {
        [] => "one valid holder, whatever keys nodes lose".to_owned(),
        conditions => format!("one valid holder, if {}", conditions.join(", and ")),
    }
}

/// What has to hold for one node, or for several, if it is required of any. `name` is the name
/// of a node that it is required of.
fn requires(
    nodes: &[Node<'_>],
    name: impl Fn(&Node<'_>) -> Option<String>,
    one: &str,
    several: &str,
) -> Option<String> {
    let names: Vec<String> = nodes.iter().filter_map(name).collect();
    let text = match names.len() {
        0 => return None,
        1 => one,
        _ => several,
    };
    Some(format!("{} {text}", names.join(", ")))
}

/// That at most `most` of `others` nodes lose their keys, of so many in all.
fn at_most(most: usize, others: usize, all: usize) -> String {
    let is_all = others == all;
    let of = if is_all {
        format!("{others} nodes")
    } else {
        format!("the {others} other nodes")
    };
    match (most, others) {
        (0, 1) if is_all => "the node does not lose its keys".to_owned(),
        (0, 1) => "the other node does not lose its keys".to_owned(),
        (0, _) => format!("none of {of} loses its keys"),
        (1, _) => format!("at most 1 of {of} loses its keys"),
        _ => format!("at most {most} of {of} lose their keys"),
    }
}

/// The policy, and what it means for a program that has just started: the text of the manual.
pub(super) fn meaning(policy: RestartPolicy) -> &'static str {
    match policy {
        RestartPolicy::Off => {
            "off: a program that has just started counts every node, whatever it has lost"
        }
        RestartPolicy::Strict => {
            "strict: a program that has just started counts a node when it has lost nothing for max_ttl, also in a new \
             deployment"
        }
        _ => {
            "observed: a program that has just started does not count a node that lost its keys or joined less than \
             max_ttl ago, and counts all nodes of a new deployment"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is a node: `r` remembers losses, `d` is durable, `u` tells nothing, `?` was not
    /// asked, `e` evicts, `v` writes nothing to disk, `w` remembers losses and has no `INFO`, `p`
    /// and `P` have replicas, `f` and `P` are declared durable, and `f` writes late.
    fn guarantee(policy: RestartPolicy, letters: &str) -> String {
        let names = ["a", "b", "c", "d", "e"];
        let node = |(letter, address)| Node {
            address,
            losses: match letter {
                'd' | 'f' | 'P' => Losses::Durable,
                'u' => Losses::Untold,
                '?' => Losses::Unknown,
                _ => Losses::Remembered,
            },
            eviction: (letter == 'e').then_some("volatile-lru"),
            is_volatile: letter == 'v',
            is_withheld: letter == 'w',
            has_replicas: "pP".contains(letter),
            late_fsync: (letter == 'f').then(|| "appendfsync everysec".to_owned()),
        };
        let nodes: Vec<Node<'_>> = letters.chars().zip(names).map(node).collect();
        super::guarantee(policy, &nodes, false)
            .strip_prefix("one valid holder, ")
            .unwrap()
            .to_owned()
    }

    /// Each row has the nodes, and the sentence about them.
    #[track_caller]
    fn reads(policy: RestartPolicy, rows: &[&str]) {
        for row in rows {
            let (letters, expected) = row.split_once(": ").unwrap();
            assert_eq!(guarantee(policy, letters), expected, "{letters}");
        }
    }

    #[test]
    fn as_many_nodes_may_lose_their_keys_as_are_less_than_a_quorum() {
        let rows = [
            "r: if the node does not lose its keys within max_ttl",
            "v: if the node does not lose its keys within max_ttl, and is not restarted: it writes nothing to disk",
            "vvv: if at most 1 of 3 nodes loses its keys within max_ttl",
            "rr: if at most 1 of 2 nodes loses its keys within max_ttl",
            "rrr: if at most 1 of 3 nodes loses its keys within max_ttl",
            "rrrr: if at most 2 of 4 nodes lose their keys within max_ttl",
            "rrrrr: if at most 2 of 5 nodes lose their keys within max_ttl",
            "rre: if at most 1 of 3 nodes loses its keys within max_ttl, and c (volatile-lru) evicts no lock",
            "rrp: if at most 1 of 3 nodes loses its keys within max_ttl",
            "rrw: if at most 1 of 3 nodes loses its keys within max_ttl, and c evicts no lock, which INFO does not \
             show, and all nodes are different servers",
            "w: if the node does not lose its keys within max_ttl, and a evicts no lock, which INFO does not show",
            "r?r: if at most 1 of 3 nodes loses its keys within max_ttl, and b remembers losses, which is not known",
        ];
        reads(RestartPolicy::Observed, &rows);
    }

    #[test]
    fn nodes_that_count_whatever_they_have_lost_must_lose_nothing() {
        let rows = [
            "d: if a keeps its keys, as declared",
            "ddd: if a, b, c keep their keys, as declared",
            "dfd: if a, b (appendfsync everysec), c keep their keys, as declared",
            "P: if a keeps its keys, as declared, and a is not replaced by a replica that lacks a lock",
            "drd: if a, c keep their keys, as declared",
            "rdr: if at most 1 of the 2 other nodes loses its keys within max_ttl, and b keeps its keys, as declared",
            "rru: if none of the 2 other nodes loses its keys within max_ttl, and c loses none, of which it would \
             tell nothing",
            "rrrru: if at most 1 of the 4 other nodes loses its keys within max_ttl, and e loses none, of which it \
             would tell nothing",
            "uuu: if a, b, c lose none, of which they would tell nothing",
        ];
        reads(RestartPolicy::Observed, &rows);
    }

    #[test]
    fn a_strict_program_counts_no_node_of_a_new_deployment_and_a_careless_one_all() {
        let rows = [
            "r: whatever keys nodes lose",
            "rrd: if c keeps its keys, as declared",
        ];
        reads(RestartPolicy::Strict, &rows);
        let rows = [
            "rdu: if none of 3 nodes loses its keys while a lock is held",
            "r: if the node does not lose its keys while a lock is held",
        ];
        reads(RestartPolicy::Off, &rows);
    }

    #[test]
    fn programs_that_have_other_nodes_are_not_excluded() {
        let nodes = [Node {
            address: "a",
            losses: Losses::Remembered,
            eviction: None,
            is_volatile: true,
            is_withheld: false,
            has_replicas: false,
            late_fsync: None,
        }];
        assert_eq!(
            super::guarantee(RestartPolicy::Strict, &nodes, true),
            "one valid holder, if all programs have the same nodes"
        );
    }
}
