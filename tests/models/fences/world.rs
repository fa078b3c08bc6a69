//! The world: nodes as the script leaves them, attempts, and messages that arrive at any time or
//! not at all.
//!
//! It has no more steps than are needed:
//! 1. A message that is lost is one that never arrives. So is one that is refused, as a refusal
//!    changes nothing anywhere.
//! 2. Leases end at any time, by whatever clock. So an acquire that arrives may take the key from
//!    any attempt. That an attempt ends without the lock, or a holder releases, adds nothing to
//!    that: it does nothing more, and its key may be taken.
//! 3. Replies travel with no delay, but whether one is counted is open until the fence is fixed:
//!    one that is not was late.
//! 4. An attempt is won as soon as it can be. To win later would only ask less of those that begin
//!    after it.
//! 5. All readers of a read-write lock are the same one, and so are all writers without a fence.
//!    Where one of them comes, the entry of the attempt has ended. It is forgotten at once, because
//!    it can only refuse others.
//! 6. What no later step reads is forgotten, and nodes have no names: a state and its mirror image
//!    are one.

use crate::rules::{AHEAD, Known, Rule, agreement};
use crate::search::{self, Outcome, Won, Wrong, name};
use std::fmt;

pub(crate) const NODES: usize = 3;
const ATTEMPTS: usize = 3;
const QUORUM: usize = NODES / 2 + 1;

/// How much there is to search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) attempts: usize,
    /// A node may give a fence that is greater by two: a floor, cut down by a clock.
    pub(crate) floors: bool,
    /// Winners set their key again on nodes that have lost it.
    pub(crate) repairs: bool,
    /// The lock is a read-write lock: readers and writers without a fence come in between, and
    /// winners are downgraded.
    pub(crate) shares: bool,
    /// One node's fence is further ahead than a clock explains.
    pub(crate) ahead: bool,
}

impl Scope {
    search::parts!(floors: bool; ahead, repairs, shares);
}

/// A message that is sent at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
enum Message {
    #[default]
    Unsent,
    UnderWay,
    /// It has arrived, and its answer matters.
    Answered,
    /// It matters no more.
    Over,
}

/// A node's key, and what is between the node and each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    fence: u8,
    /// The attempt whose token is there, counted from 1; 0 is none.
    owner: u8,
    /// The entry of that attempt is a reader's.
    reads: bool,
    traffic: [Traffic; ATTEMPTS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Traffic {
    acquire: Message,
    granted: u8,
    is_counted: bool,
    raise: Message,
    repair: Message,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Unborn,
    Collecting,
    Raising,
    Won,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Attempt {
    phase: Phase,
    /// Its fence, when it is fixed.
    fence: u8,
    /// The greatest fence that was won when it began.
    above: u8,
    is_downgraded: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    nodes: [Node; NODES],
    attempts: [Attempt; ATTEMPTS],
}

/// What can happen. The first number is the attempt, the second the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin(usize),
    /// It takes the key, and the fence grows by so much.
    Acquire(usize, usize, u8),
    /// Which of the replies that are there are counted, as a bit each.
    Fix(usize, u8),
    LateReplyJoins(usize, usize),
    Raise(usize, usize),
    /// It sets its key on a node that has lost it: as a writer, if so.
    Repair(usize, usize, bool),
    Downgrade(usize),
    Downgraded(usize, usize),
    /// A reader comes to this node.
    Read(usize),
    /// A writer without a fence comes to this node.
    Write(usize),
}

impl search::World for World {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    const SPECIAL: Option<&'static str> = Some("by a raise");

    fn first(scope: Scope) -> World {
        let mut world = World::default();
        if scope.ahead {
            world.nodes[NODES - 1].fence = AHEAD;
        }
        world
    }

    fn steps(&self, rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        steps.clear();
        for (a, attempt) in self.attempts.iter().enumerate().take(scope.attempts) {
            match attempt.phase {
                // They are all alike, so they begin in order.
                Phase::Unborn if a == 0 || self.attempts[a - 1].phase != Phase::Unborn => {
                    steps.push(Step::Begin(a))
                }
                Phase::Collecting => {
                    let may_count = |n| {
                        self.has_granted(a, n) && rule.may_count(self.nodes[n].traffic[a].granted)
                    };
                    let granted: u8 = (0..NODES).map(|n| u8::from(may_count(n)) << n).sum();
                    let subsets = (1..1 << NODES).filter(|counted: &u8| counted & !granted == 0);
                    let enough = subsets.filter(|counted| counted.count_ones() as usize >= QUORUM);
                    steps.extend(enough.map(|counted| Step::Fix(a, counted)));
                }
                Phase::Raising if rule == Rule::LateRepliesJoin => {
                    let joins = |n: &usize| {
                        let traffic = self.nodes[*n].traffic[a];
                        self.has_granted(a, *n)
                            && !traffic.is_counted
                            && traffic.granted <= attempt.fence
                    };
                    steps.extend((0..NODES).filter(joins).map(|n| Step::LateReplyJoins(a, n)));
                }
                Phase::Won if scope.shares && !attempt.is_downgraded => {
                    steps.push(Step::Downgrade(a))
                }
                Phase::Unborn | Phase::Raising | Phase::Won => {}
            }
            for (n, node) in self.nodes.iter().enumerate() {
                let traffic = node.traffic[a];
                if traffic.acquire == Message::UnderWay {
                    steps.push(Step::Acquire(a, n, 1));
                    if scope.floors {
                        steps.push(Step::Acquire(a, n, 2));
                    }
                }
                if traffic.raise == Message::UnderWay && node.raises_for(a, rule) {
                    steps.push(Step::Raise(a, n));
                }
                if scope.repairs && attempt.phase == Phase::Won && traffic.repair == Message::Unsent
                {
                    // One that was sent before the downgrade may arrive after it, unless the
                    // downgrade has been there.
                    if !(node.is_of(a) && node.reads) {
                        steps.push(Step::Repair(a, n, true));
                    }
                    if attempt.is_downgraded {
                        steps.push(Step::Repair(a, n, false));
                    }
                }
                if attempt.is_downgraded && node.is_of(a) && !node.reads {
                    steps.push(Step::Downgraded(a, n));
                }
            }
        }
        if scope.shares {
            let reads = |node: &Node| {
                node.owner > 0 && !node.reads || rule == Rule::ReaderForgets && node.fence > 0
            };
            let writes =
                |node: &Node| node.owner > 0 || rule == Rule::UnfencedForgets && node.fence > 0;
            steps.extend(
                (0..NODES)
                    .filter(|&n| reads(&self.nodes[n]))
                    .map(Step::Read),
            );
            steps.extend(
                (0..NODES)
                    .filter(|&n| writes(&self.nodes[n]))
                    .map(Step::Write),
            );
        }
    }

    fn take(&mut self, step: Step, rule: Rule, scope: Scope) -> Outcome {
        let a = match step {
            Step::Begin(a) => {
                let won = self
                    .attempts
                    .iter()
                    .filter(|attempt| attempt.phase == Phase::Won);
                let above = won.map(|attempt| attempt.fence).max().unwrap_or(0);
                self.attempts[a] = Attempt {
                    phase: Phase::Collecting,
                    above,
                    ..Attempt::default()
                };
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.traffic[a].acquire = Message::UnderWay);
                a
            }
            Step::Acquire(a, n, growth) => {
                let is_wanted = self.attempts[a].phase == Phase::Collecting
                    || self.attempts[a].phase == Phase::Raising && rule.listens_late();
                let was_won = |owner: u8| {
                    owner > 0 && self.attempts[usize::from(owner) - 1].phase == Phase::Won
                };
                let forgets = rule == Rule::ReleaseForgets && was_won(self.nodes[n].owner);
                let node = &mut self.nodes[n];
                node.fence = growth + if forgets { 0 } else { node.fence };
                node.goes_to(a, rule, scope);
                let traffic = &mut node.traffic[a];
                (traffic.acquire, traffic.granted) = if is_wanted {
                    (Message::Answered, node.fence)
                } else {
                    (Message::Over, 0)
                };
                a
            }
            Step::Fix(a, counted) => {
                for (n, node) in self.nodes.iter_mut().enumerate() {
                    node.traffic[a].is_counted = counted & (1 << n) != 0;
                }
                let Some(agreement) = agreement(rule, &self.known(a)) else {
                    return Err(Wrong("no agreement".into()));
                };
                (self.attempts[a].fence, self.attempts[a].phase) =
                    (agreement.fence().get() as u8, Phase::Raising);
                for node in rule.raises(&agreement, NODES).iter() {
                    self.nodes[node.index()].traffic[a].raise = Message::UnderWay;
                }
                if !rule.listens_late() {
                    self.nodes
                        .iter_mut()
                        .for_each(|node| node.traffic[a].forget_uncounted());
                }
                a
            }
            Step::LateReplyJoins(a, n) => {
                let traffic = &mut self.nodes[n].traffic[a];
                traffic.is_counted = true;
                if traffic.granted < self.attempts[a].fence {
                    traffic.raise = Message::UnderWay;
                }
                a
            }
            Step::Raise(a, n) => {
                let is_asked = self.attempts[a].phase == Phase::Raising;
                let node = &mut self.nodes[n];
                node.fence = node.fence.max(self.attempts[a].fence);
                node.traffic[a].raise = if is_asked {
                    Message::Answered
                } else {
                    Message::Over
                };
                a
            }
            Step::Repair(a, n, writes) => {
                let node = &mut self.nodes[n];
                node.traffic[a].repair = Message::Over;
                if writes {
                    node.fence = self.attempts[a].fence.max(node.fence + 1);
                }
                node.goes_to(a, rule, scope);
                node.reads = !writes;
                a
            }
            Step::Downgrade(a) => {
                self.attempts[a].is_downgraded = true;
                a
            }
            Step::Downgraded(a, n) => {
                self.nodes[n].reads = true;
                a
            }
            Step::Read(n) => {
                let node = &mut self.nodes[n];
                if !node.reads {
                    node.is_left(rule, scope);
                }
                if rule == Rule::ReaderForgets {
                    node.fence = 0;
                }
                return Ok(None);
            }
            Step::Write(n) => {
                let node = &mut self.nodes[n];
                node.is_left(rule, scope);
                if rule == Rule::UnfencedForgets {
                    node.fence = 0;
                }
                return Ok(None);
            }
        };
        self.conclude(a, rule)
    }

    fn key(&self, _scope: Scope) -> u128 {
        let mut nameless = *self;
        nameless.nodes.sort_unstable();
        search::fingerprint(&nameless)
    }
}

impl World {
    /// Lets the attempt win if it can, and judges that.
    fn conclude(&mut self, a: usize, rule: Rule) -> Outcome {
        if self.attempts[a].phase != Phase::Raising {
            return Ok(None);
        }
        let known = self.known(a);
        if !agreement(rule, &known).is_some_and(|agreement| rule.is_won(&known, agreement)) {
            return Ok(None);
        }
        let Attempt { fence, above, .. } = self.attempts[a];
        let is_same = |other: &Attempt| other.phase == Phase::Won && other.fence == fence;
        if let Some(other) = self.attempts.iter().position(is_same) {
            return Err(Wrong(format!(
                "{} and {} have both won with {fence}",
                name(other),
                name(a)
            )));
        }
        if fence >= AHEAD {
            return Err(Wrong(format!(
                "{} has won with {fence}, which no clock explains",
                name(a)
            )));
        }
        if fence <= above {
            return Err(Wrong(format!(
                "{} has won with {fence}, and began when {above} was won",
                name(a)
            )));
        }
        let has_raised = self
            .nodes
            .iter()
            .any(|node| node.traffic[a].raise != Message::Unsent);
        self.attempts[a] = Attempt {
            phase: Phase::Won,
            fence,
            ..Attempt::default()
        };
        self.nodes
            .iter_mut()
            .for_each(|node| node.traffic[a].forget_answers());
        Ok(Some(Won(
            format!("{} wins with {fence}", name(a)),
            has_raised,
        )))
    }

    fn known(&self, a: usize) -> [Known; NODES] {
        std::array::from_fn(|n| {
            let traffic = self.nodes[n].traffic[a];
            Known {
                granted: self.has_granted(a, n).then_some(traffic.granted),
                is_counted: traffic.is_counted,
                is_acknowledged: traffic.raise == Message::Answered,
            }
        })
    }

    fn has_granted(&self, a: usize, n: usize) -> bool {
        self.nodes[n].traffic[a].acquire == Message::Answered
    }
}

impl Node {
    fn is_of(&self, a: usize) -> bool {
        usize::from(self.owner) == a + 1
    }

    fn raises_for(&self, a: usize, rule: Rule) -> bool {
        match rule {
            Rule::RaiseUnseen => true,
            Rule::RaiseWhereFree => self.is_of(a) || self.owner == 0,
            Rule::DowngradedRaises => self.is_of(a),
            _ => self.is_of(a) && !self.reads,
        }
    }

    fn goes_to(&mut self, a: usize, rule: Rule, scope: Scope) {
        self.is_left(rule, scope);
        self.owner = a as u8 + 1;
    }

    /// The entry that is there has ended.
    fn is_left(&mut self, rule: Rule, scope: Scope) {
        // Whose token is gone for good has nothing to raise here any more.
        if let Some(before) = usize::from(self.owner).checked_sub(1)
            && !scope.repairs
            && !matches!(rule, Rule::RaiseUnseen | Rule::RaiseWhereFree)
            && self.traffic[before].raise == Message::UnderWay
        {
            self.traffic[before].raise = Message::Over;
        }
        self.owner = 0;
        self.reads = false;
    }
}

impl Traffic {
    fn forget_uncounted(&mut self) {
        if !self.is_counted && self.acquire == Message::Answered {
            self.granted = 0;
            self.acquire = Message::Over;
        }
    }

    fn forget_answers(&mut self) {
        self.granted = 0;
        self.is_counted = false;
        for message in [&mut self.acquire, &mut self.raise] {
            if *message != Message::UnderWay {
                *message = Message::Over;
            }
        }
    }
}

impl Rule {
    /// Whether a reply matters that was not counted when the fence was fixed.
    fn listens_late(self) -> bool {
        matches!(self, Rule::LateGrantsCount | Rule::LateRepliesJoin)
    }
}

/// The nodes' keys: fence and owner.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let owner = usize::from(node.owner).checked_sub(1).map_or('-', name);
            write!(
                f,
                "[{} {}{owner}]",
                node.fence,
                if node.reads { "r:" } else { "" }
            )?;
        }
        Ok(())
    }
}
