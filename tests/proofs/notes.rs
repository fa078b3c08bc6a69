//! What nodes remember, as `longest.smt2` and `founding.smt2` have it: each step of a program at a
//! node by itself, between two states that have what it depends on.

use crate::smt::{Replay, time};
use crate::world::{MAX_TTL, Note, Step, What, World};
use std::collections::HashMap;

/// What a program has read of a node, and whether the node was told the longest time to live.
type Read = (Option<Note>, bool);

/// Replays `longest.smt2`.
pub(crate) fn longest(world: &World, replay: &mut Replay) {
    let longest = MAX_TTL.as_millis() as u64;
    replay.add(&format!("(assert (= longest {}))", time(longest)));
    let mut memo: Vec<Read> = vec![(None, false); world.nodes.len()];
    // What the last look of each program at each node has read, and what each look has.
    let mut read: HashMap<(usize, usize), Read> = HashMap::new();
    let mut looks: HashMap<usize, Read> = HashMap::new();
    for (index, step) in world.steps.iter().enumerate() {
        let node = step.node;
        let own = |program: usize| world.setup.max_ttl(program).as_millis() as u64;
        let state =
            |(memo, told): Read, (read, read_told): Read, elsewhere: u64, told_elsewhere| {
                let note = |note: Option<Note>| {
                    note.map_or("absent".to_owned(), |note| {
                        format!("(note {})", time(note.max_ttl))
                    })
                };
                format!(
                    "(world {} {told} {} {read_told} {} {told_elsewhere})",
                    note(memo),
                    note(read),
                    time(elsewhere)
                )
            };
        let about = format!("node {node} at {}: {:?}", step.at, step.what);
        let before = memo[node];
        match &step.what {
            What::Relied(program) if own(*program) == longest => {
                memo[node].1 = true;
                let read = read[&(*program, node)];
                let [from, to] = [before, memo[node]].map(|memo| state(memo, read, longest, false));
                replay.check(&format!("(holder-counts {from} {to})"), &about);
            }
            What::Looked { program, found, .. } => {
                // What it has found is what the node has, also after a restart.
                memo[node].0 = *found;
                let now = memo[node];
                let earlier = read.insert((*program, node), now).unwrap_or_default();
                looks.insert(index, now);
                let [from, to] = [earlier, now].map(|read| state(now, read, own(*program), false));
                replay.check(&format!("(program-looks {from} {to})"), &about);
            }
            What::Silent(program) => {
                let earlier = read.insert((*program, node), Read::default());
                let states = [earlier.unwrap_or_default(), Read::default()];
                let [from, to] = states.map(|read| state(before, read, own(*program), false));
                replay.check(&format!("(node-is-silent {from} {to})"), &about);
            }
            What::Noted {
                note,
                by,
                looks: used,
            } => {
                let is_elsewhere = |look: &&usize| world.steps[**look].node != node;
                let others = used.iter().filter(is_elsewhere).map(|look| looks[look]);
                let mut elsewhere = own(*by);
                let mut is_told = false;
                for (found, told) in others {
                    elsewhere = elsewhere.max(found.map_or(0, |note| note.max_ttl));
                    is_told |= told;
                }
                let read = read[&(*by, node)];
                memo[node] = (Some(*note), before.1 || read.1 || is_told);
                let [from, to] =
                    [before, memo[node]].map(|memo| state(memo, read, elsewhere, is_told));
                replay.check(&format!("(program-notes {from} {to})"), &about);
            }
            What::Restarted { note, .. } => memo[node] = (*note, false),
            _ => {}
        }
    }
}

/// Replays `founding.smt2`: each node is the witness.
pub(crate) fn founding(world: &World, replay: &mut Replay) {
    replay.add("(assert (= moment 1000000.0))");
    let mut memo: Vec<Option<(Note, bool)>> = vec![None; world.nodes.len()];
    for (index, step) in world.steps.iter().enumerate() {
        let node = step.node;
        let now = time(step.at);
        let state = |memo: Option<(Note, bool)>, is_lost: bool, knows: bool, seen: &str| {
            let memo = memo.map_or("absent".to_owned(), |(note, is_present)| {
                let written = time(note.written);
                format!("(note {is_present} {} {written})", note.is_founder)
            });
            format!("(world {now} {is_lost} {now} {memo} {now} {knows} {seen})")
        };
        let about = format!("node {node} at {}: {:?}", step.at, step.what);
        let before = memo[node];
        match &step.what {
            What::Looked {
                found,
                age: Some(age),
                ..
            } => {
                let found = found.map(|note| (note, true));
                let from = state(found, false, false, "unseen");
                let to = state(found, false, false, &format!("(look {} false)", age.is_new));
                let (by_node, by_wall) = (time(age.by_node), time(age.by_wall));
                let formula = format!("(program-looks {from} {to} {by_node} {by_wall})");
                replay.check(&formula, &about);
            }
            What::Noted { note, looks, .. } => {
                memo[node] = Some((*note, true));
                if before.is_some_and(|(before, is_present)| {
                    is_present && before.written == note.written
                }) {
                    // It is the same note, with a longer time to live.
                    continue;
                }
                let is_lost = lost_promise(world, index);
                let [from, to] =
                    [before, memo[node]].map(|memo| state(memo, is_lost, false, "unseen"));
                let rule = if note.is_founder {
                    "witness-is-founded"
                } else {
                    "witness-is-noted-since"
                };
                replay.check(&format!("({rule} {from} {to})"), &about);
                let founds = looks.iter().filter(|_| note.is_founder);
                for Step { what, .. } in founds.map(|&look| &world.steps[look]) {
                    let is_new = matches!(what, What::Looked { age: Some(age), .. } if age.is_new);
                    replay.check(&is_new.to_string(), &format!("{about}, by {what:?}"));
                }
            }
            What::Counted(_) => {
                let [from, to] = [false, true].map(|knows| state(before, false, knows, "unseen"));
                replay.check(&format!("(witness-counts {from} {to})"), &about);
            }
            What::Restarted { note, .. } => memo[node] = note.map(|note| (note, false)),
            _ => {}
        }
    }
}

/// Whether a node has lost a promise that is relied on at this step.
fn lost_promise(world: &World, index: usize) -> bool {
    let now = world.steps[index].at;
    let restarts = |node: usize, since: u64| {
        world.steps[..index].iter().any(|step| {
            let restarts = matches!(step.what, What::Restarted { .. });
            restarts && step.node == node && step.at > since
        })
    };
    world.rounds.iter().any(|round| {
        let is_won = round.won.is_some_and(|won| won <= now);
        let is_relied_on = is_won && now < world.relied_on_until(round);
        is_relied_on
            && (0..world.nodes.len())
                .any(|node| round.counted[node].is_some_and(|since| restarts(node, since)))
    })
}
