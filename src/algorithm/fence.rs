//! Fencing tokens: one number from many independent nodes, that grows with every acquisition.
//!
//! ```text
//!   attempt ── acquire ──► every node: free? fence := max(fence + 1, floor), taken ──► that fence
//!                          m := the greatest fence among the replies R, |R| ≥ q
//!      q of R answered m ────────────────────────────────────────────► won with m, in one round trip
//!      otherwise ── raise ──► the others of R: still ours? fence := max(fence, m) ──► acknowledged
//!                          q of R answered m or acknowledged ────────► won with m
//!                          not any more possible ────────────────────► lost, and undone
//! ```
//!
//! A node's fence never falls, and while a node's key holds our token, no other client changes it.
//! Why that is enough, for any delay, loss and reordering of messages, any number of clients and
//! any clocks, as long as no node forgets:
//!
//! 1. Let A have won with `m`, by the nodes Q of R that answered `m` or acknowledged. On each of
//!    them the fence was exactly `m` at some time while the key held A's token: it was at most `m`,
//!    because `m` is the greatest of R, and was raised to `m` if it was less. This is why a node
//!    *outside* R does not count: its fence may have been greater, and another client may have won
//!    with it.
//! 2. Let B have won too. Two quorums have a node in common. There one of them came first; let it
//!    be A. Before the node was B's, A's token had to go, and A's raise is done only while its
//!    token is there. So the fence was `m` before B took the node, and B was answered `m + 1` at
//!    least. This is why the raise must compare the token.
//! 3. B counted that answer, because the node is one of B's R. So B's fence is greater than A's: no
//!    two are the same.
//! 4. If A had won before B began, A came first on every common node. So fences grow in the order
//!    of holding.
//!
//! Nothing here is about time: neither the lease nor the clocks matter to the fence, and a lease
//! that ended too early or too late, by any clock, never lets two clients have the same fence. A
//! key that is set again on a node that had lost it (rule 4.6) changes nothing in this: the
//! winner's fence is known by then, and the node's does not fall by it. The test
//! `tests/models/fences` searches all states of three nodes and up to three attempts, with this
//! very code as the rule, and with readers in between for a read-write lock.
//! `tests/proofs/fences.smt2` proves it for any number of them, by induction.
//!
//! The floor is the client's wall clock in microseconds, so that a node that comes back without its
//! data, or whose key was not used for longer than it is kept, issues greater numbers than before,
//! and so that nodes usually agree at once. The node takes no floor that lies more than a minute
//! before its own clock.
//!
//! A fence that is far ahead of all clocks is damage, or was written with a wrong clock. If it
//! counted, all nodes would be raised to it, and one value on one node would use up the numbers of
//! all. So a node whose fence is more than [`LEAD_LIMIT`] beyond the attempt's floor is left out of
//! R: its vote is the fault [`Cause::FenceAhead`]. The nodes themselves refuse to give out such a
//! fence or to be raised to it, by their own clocks, and write nothing then. Both are sound,
//! because the proof holds for every R.
//!
//! [`Cause::FenceAhead`]: crate::fault::Cause::FenceAhead

use super::digits;
use super::node::{NodeId, NodeSet};
use std::fmt;
use std::num::TryFromIntError;

/// How far a fence may be beyond the floor, in microseconds: a day. Less than that is a clock that
/// is set wrong.
pub const LEAD_LIMIT: u64 = 24 * 60 * 60 * 1_000_000;

/// A number that was given to one acquisition of a fenced lock, or to a fenced writer: greater than
/// the number of every acquisition before it, and given out once.
///
/// Send it along with everything that is written under the lock, and let the storage refuse a
/// smaller one than it has seen: [`FenceChecker`](crate::FenceChecker) does that within a process
/// and shows how a database does. It fits into a signed 64-bit integer, and into a double without
/// loss: it is less than 2⁵³.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// let mutex = redlock.mutex("orders/42").fenced();
/// let first = mutex.lock()?.fence();
/// let second = mutex.lock()?.fence();
/// assert!(second > first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest: what a server counts in is exact up to here. To 2⁵³ it could add one in vain.
    pub const MAX: FencingToken = FencingToken((1 << 53) - 1);

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The token of this number, or the greatest if it is beyond that.
    #[doc(hidden)]
    pub fn saturating(number: u64) -> FencingToken {
        FencingToken(number).min(FencingToken::MAX)
    }

    /// Whether this is further beyond an attempt's floor than a clock explains.
    pub(crate) fn is_ahead_of(self, floor: FencingToken) -> bool {
        self.0 > floor.0.saturating_add(LEAD_LIMIT)
    }

    /// The token that a node answers with these digits: a number from 1 on, written without leading
    /// zeros.
    #[doc(hidden)]
    pub fn from_digits(digits: &[u8]) -> Option<FencingToken> {
        let number = digits::canonical(digits).filter(|&number| number > 0)?;
        FencingToken::try_from(number).ok()
    }
}

/// For a number that was part of a request. Fails if it is greater than [`FencingToken::MAX`].
impl TryFrom<u64> for FencingToken {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<FencingToken, TryFromIntError> {
        // Above its 21 low bits, a number of 53 bits has 32, and a larger one more.
        u32::try_from(number >> 21).map(|_| FencingToken(number))
    }
}

/// For a column of a database, which is signed. Fails if the number is negative or greater than
/// [`FencingToken::MAX`]. A negative one would be greater than all others as a token, and pass
/// every check.
impl TryFrom<i64> for FencingToken {
    type Error = TryFromIntError;

    fn try_from(number: i64) -> Result<FencingToken, TryFromIntError> {
        FencingToken::try_from(u64::try_from(number)?)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> u64 {
        token.0
    }
}

/// For a column of a database, which is signed.
impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> i64 {
        // No token is 2⁵³ or more.
        token.0.cast_signed()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The fences that an attempt was answered: R.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    answered: Vec<(NodeId, FencingToken)>,
}

impl Fences {
    /// A node's key is the attempt's, with this fence. Only the first answer of a node counts.
    pub fn record(&mut self, node: NodeId, fence: FencingToken) {
        if self.answered.iter().all(|&(other, _)| other != node) {
            self.answered.push((node, fence));
        }
    }

    /// A node's answer does not count after all. Returns the answer, if there was one.
    pub fn forget(&mut self, node: NodeId) -> Option<FencingToken> {
        let index = self.answered.iter().position(|&(other, _)| other == node)?;
        Some(self.answered.remove(index).1)
    }

    /// What the answers up to now come to; none without an answer. Later answers do not count for
    /// this agreement.
    pub fn agreement(&self) -> Option<Agreement> {
        let fence = self.answered.iter().map(|&(_, fence)| fence).max()?;
        let nodes = |agrees: bool| {
            let chosen = self
                .answered
                .iter()
                .filter(|&&(_, other)| (other == fence) == agrees);
            chosen.map(|&(node, _)| node).collect()
        };
        Some(Agreement {
            fence,
            settled: nodes(true),
            behind: nodes(false),
        })
    }
}

/// The fence that an attempt will have if it is won, and the nodes that have it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    fence: FencingToken,
    settled: NodeSet,
    behind: NodeSet,
}

impl Agreement {
    /// The greatest fence among the answers.
    pub fn fence(&self) -> FencingToken {
        self.fence
    }

    /// The nodes that answered it, or acknowledged that they were raised to it.
    pub fn settled(&self) -> NodeSet {
        self.settled
    }

    /// The nodes that answered less: to be raised, and no other.
    pub fn behind(&self) -> NodeSet {
        self.behind
    }

    /// These nodes have acknowledged that the key was still ours and is raised. Those that were not
    /// to be raised do not count.
    pub fn acknowledged(&mut self, nodes: NodeSet) {
        let raised = self.behind.without(self.behind.without(nodes));
        self.settled = self.settled.union(raised);
        self.behind = self.behind.without(raised);
    }

    /// Whether the fence is valid: a quorum has it.
    pub fn stands(&self, quorum: usize) -> bool {
        self.settled.len() >= quorum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(indices: &[usize]) -> NodeSet {
        indices.iter().copied().map(NodeId::new).collect()
    }

    fn fences(answers: &[u64]) -> Fences {
        let mut fences = Fences::default();
        for (index, &fence) in answers.iter().enumerate() {
            fences.record(NodeId::new(index), FencingToken(fence));
        }
        fences
    }

    #[test]
    fn the_greatest_is_the_fence_and_the_others_are_to_be_raised() {
        assert_eq!(Fences::default().agreement(), None);
        let mut agreement = fences(&[7, 9, 8]).agreement().unwrap();
        assert_eq!(agreement.fence().get(), 9);
        assert_eq!(agreement.settled(), nodes(&[1]));
        assert_eq!(agreement.behind(), nodes(&[0, 2]));
        assert!(!agreement.stands(2));
        // One that was not counted.
        agreement.acknowledged(nodes(&[4]));
        assert!(!agreement.stands(2) && agreement.behind() == nodes(&[0, 2]));
        agreement.acknowledged(nodes(&[2]));
        assert!(agreement.stands(2) && !agreement.stands(3) && agreement.behind() == nodes(&[0]));
        let equal = fences(&[5, 5]).agreement().unwrap();
        assert!(equal.stands(2), "all nodes have the same fence");
    }

    #[test]
    fn only_the_first_answer_of_a_node_counts() {
        let mut fences = fences(&[7]);
        fences.record(NodeId::new(0), FencingToken(9));
        assert_eq!(fences.agreement().unwrap().fence().get(), 7);
    }

    #[test]
    fn an_answer_that_is_forgotten_does_not_count() {
        let mut fences = fences(&[7, 9, 8]);
        assert_eq!(
            fences.forget(NodeId::new(1)).map(FencingToken::get),
            Some(9)
        );
        assert_eq!(fences.forget(NodeId::new(1)), None);
        let agreement = fences.agreement().unwrap();
        assert_eq!(
            (agreement.fence().get(), agreement.behind()),
            (8, nodes(&[0]))
        );
    }

    #[test]
    fn only_exact_numbers_are_fences() {
        let read = |digits: &str| FencingToken::from_digits(digits.as_bytes());
        for (digits, number) in [
            ("1", Some(1)),
            ("9007199254740991", Some((1 << 53) - 1)),
            ("9007199254740992", None),
        ] {
            assert_eq!(read(digits).map(FencingToken::get), number, "{digits}");
        }
        for digits in "|0|01|+1|-1|1.0|1e15| 1|1 |x|99999999999999999999".split('|') {
            assert_eq!(read(digits), None, "{digits}");
        }
    }

    #[test]
    fn more_than_a_day_beyond_the_floor_is_too_far_ahead() {
        const DAY: u64 = 86_400_000_000;
        let floor = FencingToken(1_700_000_000_000_000);
        for (fence, is_ahead) in [
            (1, false),
            (floor.0 + DAY, false),
            (floor.0 + DAY + 1, true),
            (FencingToken::MAX.0, true),
        ] {
            assert_eq!(FencingToken(fence).is_ahead_of(floor), is_ahead, "{fence}");
        }
        assert!(!FencingToken::MAX.is_ahead_of(FencingToken(u64::MAX)));
    }

    #[test]
    fn a_token_is_a_number_to_everybody_else() {
        let token = FencingToken::try_from(42_u64).unwrap();
        assert_eq!(
            (u64::from(token), token.to_string(), format!("{token:>4}")),
            (42, "42".into(), "  42".into())
        );
        assert_eq!(
            [token, FencingToken::MAX].map(i64::from),
            [42, (1 << 53) - 1]
        );
    }

    #[test]
    fn what_no_lock_gives_is_no_token() {
        let most = (1_u64 << 53) - 1;
        for number in [0, 1, most] {
            assert_eq!(FencingToken::try_from(number).unwrap().get(), number);
            assert_eq!(
                FencingToken::try_from(number.cast_signed()).unwrap().get(),
                number
            );
        }
        for number in [-1, i64::MIN, most.cast_signed() + 1, i64::MAX] {
            assert!(FencingToken::try_from(number).is_err(), "{number}");
        }
        for number in [most + 1, u64::MAX] {
            assert!(FencingToken::try_from(number).is_err(), "{number}");
            assert_eq!(FencingToken::saturating(number), FencingToken::MAX);
        }
    }
}
