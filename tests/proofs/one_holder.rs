//! Locks with one holder, as `wait.smt2` and `exclusion.smt2` have them: a node and two programs,
//! and all rounds that were won.

use crate::smt::{Replay, real, time};
use crate::world::{Granted, Programs, Step, What, World};

/// What a node has promised the holder.
#[derive(Clone, Copy, PartialEq)]
struct Promise {
    round: usize,
    granted: u64,
    begun: u64,
    lasts: u64,
    counts: bool,
    is_lost: bool,
}

/// The state of `wait.smt2`.
#[derive(Clone, PartialEq)]
struct Node {
    now: u64,
    present: u64,
    born: u64,
    owner: &'static str,
    ends: u64,
    note: Option<(bool, u64)>,
    is_present: bool,
    promise: Option<Promise>,
    look: Option<u64>,
    is_asked: bool,
    vote: Option<u64>,
}

impl Node {
    fn text(&self) -> String {
        let from = |from: Option<u64>| {
            from.map_or("never".to_owned(), |at| format!("(from {})", time(at)))
        };
        let note = self
            .note
            .map_or("absent".to_owned(), |(is_founder, written)| {
                let names = if self.is_present { self.present } else { 0 };
                format!("(note {names} {is_founder} {})", time(written))
            });
        let promise = self.promise.map_or("no-grant".to_owned(), |promise| {
            let begun = time(promise.begun);
            format!(
                "(grant {} {begun} {} {} {})",
                time(promise.granted),
                time(promise.lasts),
                promise.counts,
                promise.is_lost
            )
        });
        format!(
            "(node {} {} {} (key {} {}) {note} {promise} (knowing {} {} {}))",
            time(self.now),
            self.present,
            time(self.born),
            self.owner,
            time(self.ends),
            from(self.look),
            self.is_asked,
            from(self.vote)
        )
    }
}

/// One node and two programs.
struct Pair<'w> {
    world: &'w World,
    node: usize,
    holder: usize,
    rival: usize,
    from: usize,
    to: usize,
    /// Whether a round that is won extends the promise; otherwise the one before is followed on.
    follows_extensions: bool,
}

impl Pair<'_> {
    /// Replays the steps of the node between these.
    fn replay(&self, replay: &mut Replay) {
        let mut state = Node {
            now: 0,
            present: 1,
            born: 0,
            owner: "free",
            ends: 0,
            note: None,
            is_present: true,
            promise: None,
            look: None,
            is_asked: false,
            vote: None,
        };
        for step in &self.world.steps[..self.from] {
            state.now = step.at;
            self.apply(step, &mut state);
        }
        let mut name = replay.state("Node", &state.text());
        if self.from == 0 {
            replay.check(&format!("(begins {name})"), "the beginning");
        }
        for step in &self.world.steps[self.from..self.to] {
            let mut passed = state.clone();
            passed.now = step.at;
            let mut next = passed.clone();
            let Some(rule) = self.apply(step, &mut next) else {
                continue;
            };
            if passed.now != state.now {
                let later = replay.state("Node", &passed.text());
                replay.check(&format!("(time-passes {name} {later})"), "");
                name = later;
            }
            let about = format!("node {} at {}: {:?}", self.node, step.at, step.what);
            let after = replay.state("Node", &next.text());
            let formula = match rule {
                "counts" => format!("(counts (promise {name}))"),
                "rival-counts" => format!("(rival-counts {name})"),
                "rival-looks" => {
                    let written = passed.note.map_or(0, |(_, written)| written);
                    let age = real(step.at as i64 - written as i64);
                    format!("(rival-looks {name} {after} {age} longest)")
                }
                _ => format!("({rule} {name} {after})"),
            };
            replay.check(&formula, &about);
            name = after;
            state = next;
        }
    }

    /// What a step is to this node, and the rule for it; for a vote that is counted, what is to
    /// hold then.
    fn apply(&self, step: &Step, state: &mut Node) -> Option<&'static str> {
        let world = self.world;
        let is_of = |attempt: usize, program: usize| world.attempts[attempt].program == program;
        if let What::GaveUp(attempt) = step.what {
            let is_promised = state
                .promise
                .is_some_and(|promise| world.rounds[promise.round].attempt == attempt);
            if is_promised {
                state.promise = None;
                return Some("holder-gives-up");
            }
            return None;
        }
        if step.node != self.node {
            return None;
        }
        match &step.what {
            What::Granted(granted) | What::Extended(granted) => {
                let is_new = matches!(step.what, What::Granted(_));
                Some(self.granted(granted, is_new, step.at, state))
            }
            What::Deleted { .. } => {
                let owner = state.owner;
                state.owner = "free";
                state.ends = step.at;
                Some(if owner == "holder" {
                    "holder-is-released"
                } else {
                    "others-are-released"
                })
            }
            What::Restarted { note, keys } => {
                state.present += 1;
                state.born = step.at;
                let key = keys.first();
                state.owner = key.map_or("free", |&(attempt, _)| self.owner(attempt));
                state.ends = key.map_or(step.at, |&(_, ends)| ends);
                state.note = note.map(|note| (note.is_founder, note.written));
                state.is_present = false;
                state.promise = state.promise.filter(|promise| promise.counts);
                if let Some(promise) = &mut state.promise {
                    promise.is_lost = true;
                }
                state.look = None;
                state.is_asked = false;
                Some("restarts")
            }
            &What::Looked { program, from, .. } if program == self.rival => {
                Some(self.looked(from.map(|from| from.max(step.at)), state))
            }
            &What::Silent(program) if program == self.rival => Some(self.looked(None, state)),
            What::Noted { note, .. } => {
                state.note = Some((note.is_founder, note.written));
                state.is_present = true;
                if let Some(promise) = &mut state.promise {
                    promise.counts |= !promise.is_lost && self.will_count(promise.round);
                }
                Some(if note.is_founder {
                    "noted-as-founder"
                } else {
                    "noted-since"
                })
            }
            &What::Counted(round) => {
                let attempt = world.rounds[round].attempt;
                let is_promised = state.promise.is_some_and(|promise| promise.round == round);
                if is_promised {
                    return Some("counts");
                }
                let is_present = state.is_asked && is_of(attempt, self.rival);
                is_present.then_some("rival-counts")
            }
            _ => None,
        }
    }

    fn looked(&self, from: Option<u64>, state: &mut Node) -> &'static str {
        state.look = from;
        if state.is_asked {
            state.vote = state.look;
        }
        "rival-looks"
    }

    fn granted(&self, granted: &Granted, is_new: bool, at: u64, state: &mut Node) -> &'static str {
        let world = self.world;
        let program = world.attempts[granted.attempt].program;
        let round = &world.rounds[granted.round];
        let is_noted = state.note.is_some() && state.is_present;
        state.ends = granted.ends;
        state.owner = self.owner(granted.attempt);
        if program == self.holder {
            // What runs when the attempt is over promises nothing.
            let is_over = world.attempts[granted.attempt]
                .gave_up
                .is_some_and(|over| over <= at);
            let is_followed = is_new || self.follows_extensions && round.won.is_some();
            if is_over || !is_followed {
                return "holder-is-extended";
            }
            state.promise = Some(Promise {
                round: granted.round,
                granted: at,
                begun: round.until - round.lasts,
                lasts: round.lasts,
                counts: self.will_count(granted.round) && is_noted,
                is_lost: false,
            });
            state.is_asked = false;
            state.vote = None;
            return "holder-is-granted";
        }
        if program == self.rival {
            state.is_asked = true;
            // Strictly, it counts by a look behind it.
            state.vote = state.look.filter(|_| self.world.setup != Programs::Strict);
            return "rival-is-granted";
        }
        "third-is-granted"
    }

    fn owner(&self, attempt: usize) -> &'static str {
        match self.world.attempts[attempt].program {
            program if program == self.holder => "holder",
            program if program == self.rival => "rival",
            _ => "third",
        }
    }

    /// Whether the program counts the node's grant in this round.
    fn will_count(&self, round: usize) -> bool {
        self.world.rounds[round].counted[self.node].is_some()
    }
}

/// Replays `wait.smt2`, for each program as the rival of one before it or behind it.
pub(crate) fn wait(world: &World, replay: &mut Replay) {
    replay.add("(push)");
    replay.add(&format!(
        "(assert (and (= strict {}) (= longest {})))",
        world.setup == Programs::Strict,
        time(world.longest())
    ));
    for rival in 1..=world.lives {
        let is_of = |step: &Step| match step.what {
            What::Looked { program, .. } | What::Silent(program) => program == rival,
            What::Begun(attempt) | What::GaveUp(attempt) => {
                world.attempts[attempt].program == rival
            }
            _ => false,
        };
        let from = world.steps.iter().position(is_of);
        let to = world.steps.iter().rposition(is_of);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        for node in 0..world.nodes.len() {
            let pair = Pair {
                world,
                node,
                holder: if rival > 1 { rival - 1 } else { 2 },
                rival,
                // The steps of the program that began first are from the beginning of the world.
                from: if rival <= 3 { 0 } else { from },
                to,
                follows_extensions: (rival + node) % 2 == 0,
            };
            pair.replay(replay);
        }
    }
    replay.add("(pop)");
}

/// Replays `exclusion.smt2`, which is about all rounds.
pub(crate) fn exclusion(world: &World, replay: &mut Replay) {
    replay.add("(push)");
    replay.add(&format!("(assert (= n {}))", world.nodes.len()));
    for node in 0..world.nodes.len() {
        replay.add(&format!("(declare-const n{node} Node)"));
    }
    for program in 1..=world.lives {
        replay.add(&format!("(declare-const p{program} Program)"));
    }
    let programs: Vec<String> = (1..=world.lives).map(|life| format!("p{life}")).collect();
    replay.add(&format!("(assert (distinct {}))", programs.join(" ")));
    let won: Vec<(usize, u64, u64)> = (0..world.rounds.len())
        .filter_map(|index| {
            let round = &world.rounds[index];
            Some((index, round.won?, world.relied_on_until(round)))
        })
        .collect();
    for &(index, at, until) in &won {
        let round = &world.rounds[index];
        let program = world.attempts[round.attempt].program;
        replay.add(&format!("(declare-const r{index} Round)"));
        replay.add(&format!(
            "(assert (and (= (program-of r{index}) p{program}) (= (lease-of r{index}) (lease {} {}))))",
            time(at),
            time(until)
        ));
        let mut count = 0;
        for node in 0..world.nodes.len() {
            let Some(counted) = round.counted[node].filter(|&counted| counted <= at) else {
                continue;
            };
            let granted = round.granted[node].unwrap_or(0);
            count += 1;
            replay.add(&format!(
                "(assert (and (grants n{node} r{index}) (= (granted n{node} r{index}) {}) \
                 (= (counted n{node} r{index}) {})))",
                time(granted),
                time(counted)
            ));
            replay.check(&format!("(counts-first n{node} r{index})"), "");
        }
        replay.check(&format!("(is-won-by {count})"), &format!("round {index}"));
    }
    for (index, &(a, at, until)) in won.iter().enumerate() {
        for &(b, later, other_until) in &won[index + 1..] {
            let slots = [a, b].map(|round| world.attempts[world.rounds[round].attempt].slot);
            let is_near = later <= until + 50_000 || at <= other_until + 50_000;
            if slots[0] != slots[1] || !is_near || later > until + 50_000 {
                continue;
            }
            for node in 0..world.nodes.len() {
                let rounds = [a, b].map(|round| &world.rounds[round]);
                if rounds.iter().all(|round| round.counted[node].is_some()) {
                    let about = format!("rounds {a} and {b} at node {node}");
                    replay.check(&format!("(waits n{node} r{a} r{b})"), &about);
                    replay.check(&format!("(waits n{node} r{b} r{a})"), &about);
                }
            }
        }
    }
    replay.add("(pop)");
}
