//! The rule, which is the library's, and what weaker ones do otherwise.

use quorumlock::algorithm::fence::{Agreement, Fences, FencingToken};
use quorumlock::algorithm::node::{NodeId, NodeSet};

/// When an attempt is won, and what is asked for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The node whose fence is far ahead has no part in the maximum, and counts as one that has
    /// acknowledged it.
    AheadAcknowledges,
    /// The node whose fence is far ahead counts as any other.
    AheadCounts,
    /// A raise is done as well where a downgrade has made the entry a reader's.
    DowngradedRaises,
    /// Every node that has granted when it is looked at counts, whatever fence it returned.
    LateGrantsCount,
    /// As proved, and a reply that comes when the fence is fixed may join those that were counted,
    /// unless it is above.
    LateRepliesJoin,
    /// Won with the greatest fence of a quorum, and no raise.
    PlainMaximum,
    /// The library's.
    Proved,
    /// The raise goes to nodes as well whose reply was not counted, and their acknowledgement
    /// counts.
    RaiseUncounted,
    /// The attempt does not wait for the acknowledgement.
    RaiseUnacknowledged,
    /// The raise is done whichever attempt has the key.
    RaiseUnseen,
    /// The raise is done unless another attempt has the key: also where its own entry has gone.
    RaiseWhereFree,
    /// A reader's entry takes the place of the fence.
    ReaderForgets,
    /// A release takes the fence along.
    ReleaseForgets,
    /// The entry of a writer without a fence takes the place of the fence.
    UnfencedForgets,
}

/// From here on a fence is further ahead than a clock explains.
pub(crate) const AHEAD: u8 = 100;

/// What an attempt knows of one node.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known {
    /// The fence it granted with.
    pub(crate) granted: Option<u8>,
    pub(crate) is_counted: bool,
    pub(crate) is_acknowledged: bool,
}

/// What the replies that are counted come to.
pub(crate) fn agreement(rule: Rule, known: &[Known]) -> Option<Agreement> {
    let mut fences = Fences::default();
    for (index, node) in known.iter().enumerate() {
        if let (Some(fence), true) = (node.granted, node.is_counted)
            && (fence < AHEAD || rule == Rule::AheadCounts)
        {
            fences.record(NodeId::new(index), FencingToken::saturating(fence.into()));
        }
    }
    fences.agreement()
}

impl Rule {
    /// Whether a reply with this fence may be counted.
    pub(crate) fn may_count(self, fence: u8) -> bool {
        fence < AHEAD || matches!(self, Rule::AheadAcknowledges | Rule::AheadCounts)
    }

    /// The nodes that are to be raised.
    pub(crate) fn raises(self, agreement: &Agreement, nodes: usize) -> NodeSet {
        match self {
            Rule::PlainMaximum => NodeSet::EMPTY,
            Rule::RaiseUncounted => NodeSet::first(nodes).without(agreement.settled()),
            _ => agreement.behind(),
        }
    }

    /// Whether the attempt is won.
    pub(crate) fn is_won(self, known: &[Known], mut agreement: Agreement) -> bool {
        let quorum = known.len() / 2 + 1;
        let those = |is: &dyn Fn(&Known) -> bool| -> NodeSet {
            let chosen = known.iter().enumerate().filter(|(_, node)| is(node));
            chosen.map(|(index, _)| NodeId::new(index)).collect()
        };
        let acknowledged = those(&|node| node.is_acknowledged);
        agreement.acknowledged(acknowledged);
        match self {
            Rule::PlainMaximum | Rule::RaiseUnacknowledged => true,
            Rule::RaiseUncounted => agreement.settled().union(acknowledged).len() >= quorum,
            Rule::AheadAcknowledges => {
                let ahead = those(&|node| node.is_counted && node.granted >= Some(AHEAD));
                agreement.settled().union(ahead).len() >= quorum
            }
            Rule::LateGrantsCount => {
                let late = those(&|node| node.granted.is_some() && !node.is_counted);
                agreement.settled().union(late).len() >= quorum
            }
            _ => agreement.stands(quorum),
        }
    }
}
