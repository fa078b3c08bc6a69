//! What the deployment guarantees as it is, in one sentence.
//!
//! Two programs hold a lock at once if the nodes that both have asked have forgotten the first one,
//! and count for the second one. A node that remembers its losses does not count after one, unless
//! the deployment looks new: all nodes that reply have lost their keys, and those that do not tell
//! of losses reply as well. So of N nodes with a quorum q, of which u do not tell, q - 1 - u may
//! lose their keys. One that does not tell, is declared durable or evicts locks counts whatever it
//! has lost.

use quorumlock::{NodeNote, NodeStatus, RestartPolicy};
use std::borrow::Borrow;

/// What the guarantee depends on.
pub(super) struct Deployment<'d> {
    pub(super) policy: RestartPolicy,
    pub(super) nodes: &'d [Node<'d>],
    /// Whether programs use the nodes that have other ones.
    pub(super) is_disputed: bool,
}

/// What it depends on at one node.
pub(super) struct Node<'d> {
    pub(super) address: &'d str,
    pub(super) losses: Losses,
    /// Its policy of eviction.
    pub(super) eviction: Option<&'d str>,
    /// Whether it writes nothing to disk.
    pub(super) is_volatile: bool,
}

/// What becomes of a node that has lost its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Losses {
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
    pub(super) fn of(status: &'d NodeStatus, is_volatile: bool) -> Node<'d> {
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
            is_volatile,
        }
    }
}

impl Deployment<'_> {
    /// The sentence.
    pub(super) fn guarantee(&self) -> String {
        let count = self.nodes.len();
        let durable = self.with(Losses::Durable);
        let untold = self.with(Losses::Untold);
        let others = count - durable.len() - untold.len();
        let mut conditions = Vec::new();
        if self.policy == RestartPolicy::Off {
            conditions.push(format!("{} while a lock is held", self.at_most(0, count)));
        } else {
            if self.policy == RestartPolicy::Observed && others > 0 {
                let most = (count / 2).saturating_sub(untold.len()).min(others);
                // Where all of the others may lose their keys, that is no condition.
                let is_limited = most < others;
                conditions.extend(
                    is_limited.then(|| format!("{} within max_ttl", self.at_most(most, others))),
                );
            }
            conditions.extend(each(
                &durable,
                "keeps its keys, as declared",
                "keep their keys, as declared",
            ));
            let told = (
                "loses none, of which it would tell nothing",
                "lose none, of which they would tell nothing",
            );
            conditions.extend(each(&untold, told.0, told.1));
            conditions.extend(each(
                &self.with(Losses::Unknown),
                "remembers losses, which is not known",
                "remember losses, which is not known",
            ));
        }
        let evicting = self
            .nodes
            .iter()
            .filter_map(|node| Some(format!("{} ({})", node.address, node.eviction?)));
        conditions.extend(each(
            &evicting.collect::<Vec<String>>(),
            "evicts no lock",
            "evict no lock",
        ));
        if let (
            true,
            [
                Node {
                    is_volatile: true, ..
                },
            ],
        ) = (self.policy != RestartPolicy::Strict, self.nodes)
        {
            conditions.push("is not restarted: it writes nothing to disk".to_owned());
        }
        if self.is_disputed {
            conditions.push("all programs have the same nodes".to_owned());
        }
        match conditions.as_slice() {
            [] => "one valid holder, whatever keys nodes lose".to_owned(),
            conditions => format!("one valid holder, if {}", conditions.join(", and ")),
        }
    }

    /// The addresses of those nodes.
    fn with(&self, losses: Losses) -> Vec<&str> {
        self.nodes
            .iter()
            .filter(|node| node.losses == losses)
            .map(|node| node.address)
            .collect()
    }

    /// That at most `most` of `others` nodes lose their keys.
    fn at_most(&self, most: usize, others: usize) -> String {
        let is_all = others == self.nodes.len();
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
}

/// What holds for one of these nodes, or for several of them; none where there are none.
fn each(nodes: &[impl Borrow<str>], one: &str, several: &str) -> Option<String> {
    match nodes {
        [] => None,
        [node] => Some(format!("{} {one}", node.borrow())),
        nodes => Some(format!("{} {several}", nodes.join(", "))),
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
    /// asked, `e` evicts, `v` writes nothing to disk.
    fn guarantee(policy: RestartPolicy, letters: &str) -> String {
        let names = ["a", "b", "c", "d", "e"];
        let node = |(letter, address)| Node {
            address,
            losses: match letter {
                'd' => Losses::Durable,
                'u' => Losses::Untold,
                '?' => Losses::Unknown,
                _ => Losses::Remembered,
            },
            eviction: (letter == 'e').then_some("volatile-lru"),
            is_volatile: letter == 'v',
        };
        let nodes: Vec<Node<'_>> = letters.chars().zip(names).map(node).collect();
        let sentence = Deployment {
            policy,
            nodes: &nodes,
            is_disputed: false,
        }
        .guarantee();
        sentence
            .strip_prefix("one valid holder, ")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn as_many_nodes_may_lose_their_keys_as_are_less_than_a_quorum() {
        for (letters, expected) in [
            ("r", "if the node does not lose its keys within max_ttl"),
            (
                "v",
                "if the node does not lose its keys within max_ttl, and is not restarted: it writes nothing to disk",
            ),
            (
                "vvv",
                "if at most 1 of 3 nodes loses its keys within max_ttl",
            ),
            (
                "rr",
                "if at most 1 of 2 nodes loses its keys within max_ttl",
            ),
            (
                "rrr",
                "if at most 1 of 3 nodes loses its keys within max_ttl",
            ),
            (
                "rrrr",
                "if at most 2 of 4 nodes lose their keys within max_ttl",
            ),
            (
                "rrrrr",
                "if at most 2 of 5 nodes lose their keys within max_ttl",
            ),
            (
                "rre",
                "if at most 1 of 3 nodes loses its keys within max_ttl, and c (volatile-lru) evicts no lock",
            ),
            (
                "r?r",
                "if at most 1 of 3 nodes loses its keys within max_ttl, and b remembers losses, which is not known",
            ),
        ] {
            assert_eq!(
                guarantee(RestartPolicy::Observed, letters),
                expected,
                "{letters}"
            );
        }
    }

    #[test]
    fn nodes_that_count_whatever_they_have_lost_must_lose_nothing() {
        for (letters, expected) in [
            ("d", "if a keeps its keys, as declared"),
            ("ddd", "if a, b, c keep their keys, as declared"),
            ("drd", "if a, c keep their keys, as declared"),
            (
                "rdr",
                "if at most 1 of the 2 other nodes loses its keys within max_ttl, and b keeps its keys, as declared",
            ),
            (
                "rru",
                "if none of the 2 other nodes loses its keys within max_ttl, and c loses none, of which it would tell \
                 nothing",
            ),
            (
                "rrrru",
                "if at most 1 of the 4 other nodes loses its keys within max_ttl, and e loses none, of which it would \
                 tell nothing",
            ),
            (
                "uuu",
                "if a, b, c lose none, of which they would tell nothing",
            ),
        ] {
            assert_eq!(
                guarantee(RestartPolicy::Observed, letters),
                expected,
                "{letters}"
            );
        }
    }

    #[test]
    fn a_strict_program_counts_no_node_of_a_new_deployment_and_a_careless_one_all() {
        assert_eq!(
            guarantee(RestartPolicy::Strict, "r"),
            "whatever keys nodes lose"
        );
        assert_eq!(
            guarantee(RestartPolicy::Strict, "rrd"),
            "if c keeps its keys, as declared"
        );
        let off = "if none of 3 nodes loses its keys while a lock is held";
        assert_eq!(guarantee(RestartPolicy::Off, "rdu"), off);
        assert_eq!(
            guarantee(RestartPolicy::Off, "r"),
            "if the node does not lose its keys while a lock is held"
        );
    }

    #[test]
    fn programs_that_have_other_nodes_are_not_excluded() {
        let nodes = [Node {
            address: "a",
            losses: Losses::Remembered,
            eviction: None,
            is_volatile: true,
        }];
        let sentence = Deployment {
            policy: RestartPolicy::Strict,
            nodes: &nodes,
            is_disputed: true,
        }
        .guarantee();
        assert_eq!(
            sentence,
            "one valid holder, if all programs have the same nodes"
        );
    }
}
