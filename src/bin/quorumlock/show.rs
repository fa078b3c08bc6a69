//! `show`: what each node has of one lock.

use crate::arguments::{Arguments, Word, unexpected};
use crate::deployment::Deployment;
use crate::exit::{Exit, Failure};
use crate::json::{self, Object};
use crate::locks::kind::Kind;
use crate::locks::sighting::{Lifetime, Sighting};
use crate::locks::survey::Survey;
use crate::locks::token::Token;
use crate::locks::verdict::{State, Verdict};
use crate::report::{self, Progress};
use crate::settings;
use quorumlock::Human;

pub(crate) fn show(mut arguments: Arguments) -> Result<Exit, Failure> {
    let (mut options, mut name, mut is_json) = (settings::Options::default(), None, false);
    while let Some(word) = arguments.next()? {
        match word {
            word if options.take(&word, &mut arguments)? => {}
            word if word.is("--json") => is_json = true,
            Word::Operand(operand) if name.is_none() => name = Some(operand),
            word => return Err(unexpected("show", &word)),
        }
    }
    let name = name.ok_or_else(|| Failure::usage("show needs the NAME of a lock"))?;
    let deployment = Deployment::new(options.settings()?)?;
    let survey = Progress::during("asking the nodes", || Survey::of_lock(&deployment, &name));
    let addresses = deployment.addresses();
    let verdicts = verdicts(&survey, &name);
    if is_json {
        let locks = verdicts.iter().map(|(key, verdict)| {
            let nodes = survey.sightings(key).zip(&addresses).map(|(seen, address)| node_json(address, seen));
            verdict.json(&addresses).list("sightings", nodes).to_string()
        });
        report::line(format_args!("{}", json::list(locks)));
    } else {
        for (key, verdict) in &verdicts {
            report::line(format_args!("{}", headline(verdict, addresses.len())));
            for (seen, address) in survey.sightings(key).zip(&addresses) {
                report::line(format_args!("  {address}: {}", node_line(seen)));
            }
        }
    }
    let answered = survey.nodes.iter().filter(|node| node.is_ok()).count();
    Ok(if answered < survey.quorum { Exit::UNAVAILABLE } else { Exit::OK })
}

/// The locks of this name that any node has something of, or the plain one if none has; each with its key.
fn verdicts(survey: &Survey, name: &str) -> Vec<(String, Verdict)> {
    let mut keys: Vec<&str> = survey.names().into_iter().filter(|key| Kind::of(key).0 != Kind::Queue).collect();
    if keys.is_empty() {
        keys.push(name);
    }
    keys.sort_by_key(|key| key.len());
    keys.into_iter().map(|key| (key.to_owned(), Verdict::of(survey, key))).collect()
}

/// One line about a lock.
pub(crate) fn headline(verdict: &Verdict, nodes: usize) -> String {
    let kind = match verdict.kind {
        Kind::Fenced => "fenced lock",
        Kind::ReadWrite => "read-write lock",
        Kind::Plain | Kind::Queue => "lock",
    };
    let mut line = format!("{kind} {:?}: {}", verdict.name, verdict.state);
    if verdict.kind == Kind::ReadWrite && verdict.token.is_some() {
        line += &format!(", {},", verdict.kind());
    }
    if verdict.token.is_some() {
        line += &format!(" by {}, on {} of {nodes} nodes", verdict.holder(), verdict.nodes.len());
        line += &match verdict.state {
            State::Held => format!(", by a majority for another {}", verdict.time_left()),
            _ => format!(", for at most {}", verdict.time_left()),
        };
    } else {
        line += &verdict.waiters();
    }
    if let Some(fence) = verdict.fence {
        line += &format!(", fence {fence}");
    }
    line
}

fn node_line(seen: Result<Option<&Sighting>, &crate::connection::Trouble>) -> String {
    match seen {
        Err(trouble) => format!("unknown, {trouble}"),
        Ok(None) => "nothing".to_owned(),
        Ok(Some(sighting)) => {
            let holder = match (sighting.content.label(), sighting.token()) {
                (None, Some(token)) if sighting.holders.len() > 1 => {
                    format!("{} readers, the last one {token}", sighting.holders.len())
                }
                (Some(label), Some(token)) => format!("{label} ({token})"),
                (None, Some(token)) => token.to_string(),
                (_, None) => sighting.oddity().unwrap_or("no holder").to_owned(),
            };
            let waits = if sighting.has_waiting_writer { ", a writer waits" } else { "" };
            match sighting.lifetime {
                Lifetime::Forever => format!("{holder}, without expiry"),
                Lifetime::For(_) if sighting.token().is_none() && sighting.oddity().is_some() => holder,
                Lifetime::For(_) if sighting.remaining.is_zero() => format!("{holder}, at rest{waits}"),
                Lifetime::For(_) => format!("{holder}, {} left{waits}", Human(sighting.remaining)),
            }
        }
    }
}

fn node_json(address: &str, seen: Result<Option<&Sighting>, &crate::connection::Trouble>) -> String {
    let node = Object::new().text("address", address);
    match seen {
        Err(trouble) => node.text("error", trouble),
        Ok(sighting) => node
            .maybe("token", sighting.and_then(Sighting::token).and_then(Token::digits))
            .raw("other_library", sighting.and_then(Sighting::token) == Some(&Token::OtherLibrary))
            .maybe("label", sighting.and_then(|seen| seen.content.label()))
            .maybe_raw(
                "remaining_ms",
                sighting.map(|seen| if seen.lifetime == Lifetime::Forever { -1 } else { millis(seen) }),
            )
            .raw("writer_waits", sighting.is_some_and(|seen| seen.has_waiting_writer)),
    }
    .to_string()
}

fn millis(sighting: &Sighting) -> i64 {
    i64::try_from(sighting.remaining.as_millis()).unwrap_or(i64::MAX)
}
