//! `ls`: all locks that the nodes have, by `SCAN`.

use crate::exit::{self, Exit, Failure};
use crate::json;
use crate::locks::survey::Survey;
use crate::locks::verdict::{State, Verdict};
use crate::printable::printable;
use crate::report::{self, write_line};
use crate::settings::CommonOptions;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// a pattern of names, with *, ? and [...]
    #[arg(default_value = "*", hide_default_value = true)]
    pattern: String,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn list(options: Options) -> Result<Exit, Failure> {
    let deployment = options.common.settings.read()?;
    let survey = Survey::of_pattern(&deployment, &options.pattern);
    let verdicts = survey
        .keys()
        .into_iter()
        .map(|key| Verdict::of(&survey, key));
    // What is no lock is for `scan`.
    let locks: Vec<Verdict> = verdicts
        .filter(|verdict| verdict.state != State::Foreign)
        .collect();
    if options.common.json {
        let locks = locks.iter().map(|verdict| verdict.json(&survey.addresses));
        report::line(json::list(locks));
    } else {
        table(&locks, survey.nodes.len());
    }
    survey.complain_of_silent();
    Ok(survey.exit(exit::OK))
}

fn table(locks: &[Verdict], nodes: usize) {
    let width = locks
        .iter()
        .map(|verdict| printable(&verdict.name).chars().count())
        .max()
        .unwrap_or(0)
        .max("NAME".len());
    write_line!(
        "{:<width$}  {:<8} {:<14} {:<12} {:<10} HOLDER",
        "NAME",
        "STATE",
        "NODES",
        "LEFT",
        "KIND"
    );
    for verdict in locks {
        let count = verdict.nodes.len();
        let kind = verdict.kind();
        let name = printable(&verdict.name);
        let state = verdict.state;
        let left = verdict.time_left();
        let on = match count {
            // Which, unless it is all or none: by their numbers in the order of the nodes, from 1.
            part if part > 0 && part < nodes => {
                let numbers = verdict.nodes.iter().map(|node| (node + 1).to_string());
                format!("{count}/{nodes}: {}", Vec::from_iter(numbers).join(","))
            }
            _ => format!("{count}/{nodes}"),
        };
        write_line!(
            "{name:<width$}  {state:<8} {on:<14} {left:<12} {kind:<10} {}",
            verdict.holder()
        );
    }
}
