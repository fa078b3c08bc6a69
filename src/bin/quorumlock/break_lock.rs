//! `break`: takes a lock from its holder, by deleting what was read, if it is still there.

use crate::connection::{Connection, Trouble};
use crate::deployment::{Deployment, at_once};
use crate::exit::{self, Exit, Failure};
use crate::json::{Object, list, maybe, object};
use crate::locks::sighting::{LONGEST_LOCK, Sighting, Stored};
use crate::locks::survey::Survey;
use crate::locks::verdict::Verdict;
use crate::report::{self, write_line};
use crate::settings::CommonOptions;
use crate::show::headline;
use clap::Args;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::key_space;
use quorumlock::protocol::kinds::{permit, plain};
use std::time::Duration;

/// Deletes what cannot be compared, unless a value that can be has replaced it: a lock, perhaps.
const DELETE_ODD: &[u8] = b"\
local value = redis.pcall('getrange', KEYS[1], 0, ARGV[1])
return (type(value) == 'table' or #value > tonumber(ARGV[1])) and redis.call('del', KEYS[1]) or 0";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// the name of a lock
    name: String,
    /// really delete what was read, if it is still there
    #[arg(long)]
    yes: bool,
    /// delete also what is no lock: without expiry, of another type, too long to be compared
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn break_lock(options: Options) -> Result<Exit, Failure> {
    let name = options.name;
    let is_json = options.common.json;
    let deployment = options.common.settings.read()?;
    let survey = Survey::of_lock(&deployment, &name);
    let held: Vec<Verdict> = survey
        .keys()
        .into_iter()
        .filter(|key| deletable(&survey, key).iter().any(Option::is_some))
        .map(|key| Verdict::of(&survey, key))
        .collect();
    let addresses = &survey.addresses;
    survey.complain_of_silent();
    if survey.lacks_quorum() {
        return Err(Failure::new(
            exit::UNAVAILABLE,
            "too few nodes answer: nothing is deleted",
        ));
    }
    if !is_json {
        held.iter()
            .for_each(|verdict| report::line(headline(verdict, addresses.len())));
        if held.is_empty() {
            write_line!("{name:?} is not held");
        }
    }
    if let Some(odd) = oddity(&survey, &held).filter(|_| !options.force) {
        return Err(Failure::usage(format!(
            "{odd}: nothing is deleted; add --force to delete what is no lock"
        )));
    }
    if !options.yes && !held.is_empty() {
        return Err(Failure::usage(
            "nothing is deleted; add --yes to break the lock",
        ));
    }
    let break_all = || {
        held.iter()
            .map(|verdict| break_key(&deployment, &survey, &verdict.key))
            .collect()
    };
    let broken: Vec<Broken> = report::during("deleting the lock", break_all);
    if is_json {
        let object = |(broken, verdict): (&Broken, &Verdict)| broken.json(verdict, addresses);
        report::line(list(broken.iter().zip(&held).map(object)));
    } else {
        broken.iter().for_each(|broken| broken.show(addresses));
    }
    let mut nodes = broken.iter().flat_map(|broken| &broken.nodes);
    let is_done = nodes.all(|node| !matches!(node, Err(_) | Ok(Some(false))));
    Ok(if is_done { exit::OK } else { exit::FINDINGS })
}

/// What came of one key.
struct Broken {
    /// Of each node: whether what was read was deleted; none where nothing was.
    nodes: Vec<Result<Option<bool>, Trouble>>,
    /// For how long the holder may go on in good faith. None where the key had no expiry.
    believed: Option<Duration>,
}

impl Broken {
    fn show(&self, addresses: &[String]) {
        for (node, address) in self.nodes.iter().zip(addresses) {
            match node {
                Ok(Some(true)) => write_line!("  {address}: deleted"),
                Ok(Some(false)) => write_line!("  {address}: changed meanwhile, left as it is"),
                Ok(None) => {}
                Err(trouble) => write_line!("  {address}: {trouble}"),
            }
        }
        report::line(self.warning());
    }

    fn warning(&self) -> String {
        match self.believed {
            Some(Duration::ZERO) => "no program held it".to_owned(),
            Some(time) => format!(
                "the holder may believe in its lock for another {}, until {}: it is not notified",
                Human(time),
                report::utc(until(time))
            ),
            None => "the key had no expiry: if a program holds the lock, it does not learn of this"
                .to_owned(),
        }
    }

    fn json(&self, verdict: &Verdict, addresses: &[String]) -> Object {
        let node = |(node, address): (&Result<Option<bool>, Trouble>, &String)| match node {
            Ok(deleted) => object! { "address" = address, "deleted": maybe(*deleted) },
            Err(trouble) => object! { "address" = address, "error" = trouble },
        };
        object! {
            _: verdict.json(addresses),
            "broken": list(self.nodes.iter().zip(addresses).map(node)),
            "believed_until_unix_ms": maybe(self.believed.map(|time| until(time).as_millis())),
        }
    }
}

fn until(time: Duration) -> Duration {
    report::since_1970().saturating_add(time)
}

/// What each node has that can be deleted: nothing where the lock has ended by itself.
fn deletable<'s>(survey: &'s Survey, key: &'s str) -> Vec<Option<&'s Sighting>> {
    let is_held = |seen: &&Sighting| seen.oddity().is_some() || !seen.remaining.is_zero();
    let sightings = survey.sightings(key);
    sightings
        .map(|seen| seen.ok().flatten().filter(is_held))
        .collect()
}

/// The first node that has something else than a lock under one of these keys, and what it has.
fn oddity(survey: &Survey, held: &[Verdict]) -> Option<String> {
    let odd = |seen: &Sighting, address: &str| {
        let expiry = if seen.expires_in.is_none() {
            ", without expiry"
        } else {
            ""
        };
        Some(format!("{address}: {}{expiry}", seen.oddity()?))
    };
    let of_key = |verdict: &Verdict| {
        let mut seen = survey.sightings(&verdict.key).zip(&survey.addresses);
        seen.find_map(|(seen, address)| odd(seen.ok()??, address))
    };
    held.iter().find_map(of_key)
}

/// Deletes what each node was seen to have; a fence stays.
fn break_key(deployment: &Deployment, survey: &Survey, key: &str) -> Broken {
    let retention = deployment
        .settings()
        .fence_retention
        .as_millis()
        .to_string();
    let seen = deletable(survey, key);
    let nodes = at_once(seen.iter().enumerate(), |(index, seen)| {
        let delete = |seen: &Sighting| release(&mut deployment.open(index)?, key, seen, &retention);
        seen.map(delete).transpose()
    });
    let times = || seen.iter().flatten();
    let has_expiry = times().all(|seen| seen.expires_in.is_some());
    let longest = times().map(|seen| seen.remaining).max().unwrap_or_default();
    Broken {
        nodes,
        believed: has_expiry.then_some(longest),
    }
}

/// Compares and deletes, as a release does, so that the call that is first in the queue is told.
/// What else the key holds remains. Whether anything was there still.
fn release(
    connection: &mut Connection,
    name: &str,
    seen: &Sighting,
    retention: &str,
) -> Result<bool, Trouble> {
    let key = name.as_bytes();
    let Stored::Text(value) = &seen.stored else {
        // It was named, and is to be deleted by force.
        let longest = LONGEST_LOCK.to_string();
        let words = [b"EVAL", DELETE_ODD, b"1", key, longest.as_bytes()];
        return Ok(connection.ask(&words)?.integer("EVAL")? == 1);
    };
    // What is no lock is compared as a whole.
    let kind = seen
        .lock
        .as_ref()
        .and(key_space::lock(name))
        .map_or(&plain::KEYS, |(kind, _)| kind);
    let signatures: Vec<&[u8]> = match &seen.lock {
        None => vec![value],
        Some(lock) => lock.holds.iter().map(|hold| &*hold.signature).collect(),
    };
    // A slot of a semaphore has the key of a plain lock, and another queue.
    let is_slot = *kind == plain::KEYS && key_space::semaphore_of_slot(name).is_some();
    let script = if is_slot { permit::SCRIPT } else { kind.script };
    let mut is_any_done = false;
    for signature in signatures {
        let words = [
            b"EVAL",
            script.text.as_bytes(),
            b"1",
            key,
            b"release",
            signature,
            b"",
            b"",
            retention.as_bytes(),
        ];
        is_any_done |= connection.ask(&words)?.integer("EVAL")? >= 1;
    }
    Ok(is_any_done)
}
