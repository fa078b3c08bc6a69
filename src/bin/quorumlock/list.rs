//! `ls`: all locks that the nodes have, by `SCAN`.

use crate::arguments::Arguments;
use crate::deployment::Deployment;
use crate::exit::{Exit, Failure};
use crate::json;
use crate::locks::survey::Survey;
use crate::locks::verdict::{State, Verdict};
use crate::printable::printable;
use crate::report::{self, Progress};
use crate::settings::Options;

pub(crate) fn list(arguments: Arguments) -> Result<Exit, Failure> {
    let mut pattern = None;
    let (options, is_json) = Options::read(arguments, "ls", |word, _| Ok(word.sets(&mut pattern)))?;
    let deployment = Deployment::new(options.settings()?)?;
    let pattern = pattern.as_deref().unwrap_or("*");
    let survey = Progress::of_keys(|found| Survey::of_pattern(&deployment, pattern, found));
    let verdicts: Vec<Verdict> = survey.keys().into_iter().map(|key| Verdict::of(&survey, key)).collect();
    // What is no lock is for `scan`.
    let locks: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.state != State::Foreign).collect();
    if is_json {
        let locks = locks.iter().map(|verdict| verdict.json(&survey.addresses).to_string());
        report::line(json::list(locks));
    } else {
        table(&locks, survey.nodes.len());
    }
    survey.complain_of_silent();
    Ok(if survey.lacks_quorum() { Exit::UNAVAILABLE } else { Exit::OK })
}

fn table(locks: &[&Verdict], nodes: usize) {
    let width =
        locks.iter().map(|verdict| printable(&verdict.name).chars().count()).max().unwrap_or(0).max("NAME".len());
    report::line(format_args!(
        "{:<width$}  {:<8} {:<14} {:<12} {:<10} HOLDER",
        "NAME", "STATE", "NODES", "LEFT", "KIND"
    ));
    for verdict in locks {
        let (count, kind) = (verdict.nodes.len(), verdict.kind());
        let (name, state, left) = (printable(&verdict.name), verdict.state, verdict.time_left());
        let on = match count {
            // Which, by their numbers in the order of the nodes, where it is not all or none.
            part if part > 0 && part < nodes => {
                format!("{count}/{nodes}: {}", numbers(&verdict.nodes))
            }
            _ => format!("{count}/{nodes}"),
        };
        report::line(format_args!("{name:<width$}  {state:<8} {on:<14} {left:<12} {kind:<10} {}", verdict.holder()));
    }
}

/// The numbers of nodes, counted from 1.
fn numbers(nodes: &[usize]) -> String {
    nodes.iter().map(|node| (node + 1).to_string()).collect::<Vec<_>>().join(",")
}
