//! `show`: what each node has of one lock.

use crate::exit::{self, Exit, Failure};
use crate::json::{Object, list, maybe, object};
use crate::locks::queue::Queue;
use crate::locks::sighting::Sighting;
use crate::locks::survey::{Seen, Survey};
use crate::locks::token;
use crate::locks::verdict::{State, Verdict};
use crate::report::{self, write_line};
use crate::settings::CommonOptions;
use clap::Args;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::kinds;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// the name of a lock
    name: String,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn show(options: Options) -> Result<Exit, Failure> {
    let deployment = options.common.settings.read()?;
    let survey = Survey::of_lock(&deployment, &options.name);
    let addresses = &survey.addresses;
    let nodes = |key| survey.sightings(key).zip(survey.queues(key)).zip(addresses);
    let verdicts = verdicts(&survey, &(survey.prefix.clone() + &options.name));
    if options.common.json {
        let locks = verdicts.iter().map(|verdict| {
            let nodes = nodes(&verdict.key)
                .map(|((seen, queue), address)| node_json(address, seen, &queue));
            object! { _: verdict.json(addresses), "sightings": list(nodes) }
        });
        report::line(list(locks));
    } else {
        for verdict in &verdicts {
            report::line(headline(verdict, addresses.len()));
            for ((seen, queue), address) in nodes(&verdict.key) {
                write_line!("  {address}: {}{queue}", node_line(seen));
            }
        }
    }
    Ok(survey.exit(exit::OK))
}

/// The locks of this full name that any node has something of, or that calls wait for, or the plain
/// one if there is none.
fn verdicts(survey: &Survey, full_name: &str) -> Vec<Verdict> {
    let known = survey.keys();
    let keys = kinds::KEYS.map(|kind| kind.key("", full_name));
    let mut verdicts: Vec<_> = keys.map(|key| Verdict::of(survey, &key)).into();
    let is_known = |verdict: &Verdict| known.contains(&*verdict.key) || verdict.queue.count > 0;
    if verdicts.iter().any(is_known) {
        verdicts.retain(is_known);
    } else {
        verdicts.truncate(1);
    }
    verdicts
}

/// One line about a lock.
pub(crate) fn headline(verdict: &Verdict, nodes: usize) -> String {
    let mut line = format!(
        "{} {:?}: {}",
        verdict.kind.title, verdict.name, verdict.state
    );
    if verdict.is_read_write() && verdict.token.is_some() {
        line += &format!(", {},", verdict.kind());
    }
    if verdict.token.is_some() {
        line += &format!(
            " by {}, on {} of {nodes} nodes",
            verdict.holder(),
            verdict.nodes.len()
        );
        line += &match verdict.state {
            State::Held => format!(", by a majority for another {}", verdict.time_left()),
            _ => format!(", for at most {}", verdict.time_left()),
        };
    } else {
        line += &verdict.queue.to_string();
    }
    if let Some(fence) = verdict.fence {
        line += &format!(", fence {fence}");
    }
    line
}

fn node_line(seen: Seen<'_>) -> String {
    match seen {
        Err(trouble) => format!("unknown, {trouble}"),
        Ok(None) => "nothing".to_owned(),
        Ok(Some(sighting)) => {
            let holder = match (sighting.label(), sighting.token()) {
                (None, Some(token)) if sighting.holders.len() > 1 => {
                    format!("{} readers, the last one {token}", sighting.holders.len())
                }
                (Some(label), Some(token)) => format!("{label} ({token})"),
                (None, Some(token)) => token.to_string(),
                (_, None) => sighting.oddity().unwrap_or("no holder").to_owned(),
            };
            match sighting.expires_in {
                None => format!("{holder}, without expiry"),
                Some(_) if sighting.token().is_none() && sighting.oddity().is_some() => holder,
                Some(_) if sighting.remaining.is_zero() => format!("{holder}, at rest"),
                Some(_) => format!("{holder}, {} left", Human(sighting.remaining)),
            }
        }
    }
}

fn node_json(address: &str, seen: Seen<'_>, queue: &Queue) -> Object {
    match seen {
        Err(trouble) => object! { "address" = address, "error" = trouble },
        Ok(seen) => {
            let label = seen.and_then(Sighting::label);
            let left = seen.map(|seen| {
                if seen.expires_in.is_none() {
                    -1
                } else {
                    seen.remaining.as_millis().cast_signed()
                }
            });
            object! {
                "address" = address,
                _: token::json(seen.and_then(Sighting::token), label),
                "remaining_ms": maybe(left),
                _: queue.json(),
            }
        }
    }
}
