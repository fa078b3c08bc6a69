//! `scan`: keys that no lock should have left, or that are none.

use crate::exit::{self, Exit, Failure};
use crate::json::{Object, list, object};
use crate::locks::sighting::Sighting;
use crate::locks::survey::Survey;
use crate::report::{self, write_line};
use crate::settings::CommonOptions;
use clap::Args;
use quorumlock::algorithm::time::Human;
use std::time::Duration;

/// Something that `scan` finds.
struct Finding<'s> {
    address: &'s str,
    key: &'s str,
    /// The name of the lock.
    name: &'s str,
    kind: &'static str,
    what: String,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// leave out no-expiry, too-long, foreign or fence-at-rest
    #[arg(long, value_name = "KIND", value_parser = ["no-expiry", "too-long", "foreign", "fence-at-rest"])]
    #[arg(hide_possible_values = true)]
    ignore: Vec<String>,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn scan(options: Options) -> Result<Exit, Failure> {
    let deployment = options.common.settings.read()?;
    let max_ttl = deployment.settings().max_ttl;
    let survey = Survey::of_pattern(&deployment, "*");
    let mut findings = findings(&survey, max_ttl);
    findings.retain(|finding| !options.ignore.iter().any(|kind| kind == finding.kind));
    if options.common.json {
        report::line(list(findings.iter().map(Finding::json)));
    } else {
        for Finding {
            address,
            key,
            kind,
            what,
            ..
        } in &findings
        {
            write_line!("{address}: {kind}: {key:?}, {what}");
        }
    }
    survey.complain_of_silent();
    Ok(survey.exit(if findings.is_empty() {
        exit::OK
    } else {
        exit::FINDINGS
    }))
}

impl Finding<'_> {
    fn json(&self) -> Object {
        object! {
            "address" = self.address,
            "name" = self.name,
            "key" = self.key,
            "kind" = self.kind,
            "message" = self.what,
        }
    }
}

fn findings(survey: &Survey, max_ttl: Duration) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for (node, address) in survey.nodes.iter().zip(&survey.addresses) {
        for (key, sighting) in node.iter().flat_map(|node| &node.locks) {
            let faults = faults(sighting, max_ttl).into_iter();
            let name = survey.name_of(key);
            findings.extend(faults.map(|(kind, what)| Finding {
                address,
                key,
                name,
                kind,
                what,
            }));
        }
    }
    findings
}

/// What is wrong with one key: the kind, and in words.
fn faults(sighting: &Sighting, max_ttl: Duration) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    if sighting.expires_in.is_none() {
        faults.push((
            "no-expiry",
            "it is never freed; delete it unless a program holds the lock".to_owned(),
        ));
    }
    let is_long = sighting.expires_in.is_some() && sighting.remaining > max_ttl;
    match sighting.fence {
        _ if sighting.lock.is_none() => {
            faults.push(("foreign", "its value is none of this library".to_owned()));
        }
        Some(fence) if sighting.remaining.is_zero() => {
            faults.push((
                "fence-at-rest",
                format!("fence {fence}, kept for later acquisitions"),
            ));
        }
        _ if is_long => {
            let left = Human(sighting.remaining);
            let limit = Human(max_ttl);
            faults.push((
                "too-long",
                format!("{left} left, more than max_ttl ({limit})"),
            ));
        }
        _ => {}
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::sighting::Stored;

    #[test]
    fn each_fault_has_its_kind() {
        let token = "ab".repeat(20);
        let of = |name: &str, value: &str, expires_in| {
            let sighting = Sighting::of(
                name,
                Stored::Text(value.as_bytes().to_vec()),
                expires_in,
                1000,
            );
            faults(&sighting, Duration::from_secs(60))
                .into_iter()
                .map(|(kind, _)| kind)
                .collect::<Vec<_>>()
        };
        let minute = Some(Duration::from_secs(60));
        let day = Some(Duration::from_secs(86_400));
        assert!(of("a", &token, minute).is_empty());
        assert_eq!(of("a", &token, day), ["too-long"]);
        assert_eq!(of("a", &token, None), ["no-expiry"]);
        assert_eq!(of("a", "x", minute), ["foreign"]);
        assert_eq!(of("quorumlock-fence:a", "7 0 ", day), ["fence-at-rest"]);
        assert!(of("quorumlock-fence:a", &format!("7 2000 {token}"), day).is_empty());
        assert_eq!(
            of("quorumlock-fence:a", &format!("7 90000 {token}"), day),
            ["too-long"]
        );
        assert!(of("quorumlock-rw:a", &format!("r 2000:{token}"), minute).is_empty());
        // What a later version adds.
        assert!(of("quorumlock-rw:a", &format!("r 2000:{token} +x"), minute).is_empty());
        assert_eq!(of("quorumlock-rw:a", "f 7 5000", day), ["fence-at-rest"]);
        assert!(of("quorumlock-rw:a", &format!("f 7 5000 w 2000 {token}"), day).is_empty());
        assert_eq!(
            of("quorumlock-rw:a", &format!("f 7 5000 w 90000 {token}"), day),
            ["too-long"]
        );
        assert_eq!(
            of("quorumlock-rw:a", &format!("w 90000 {token}"), day),
            ["too-long"]
        );
        assert_eq!(of("quorumlock-rw:a", &token, minute), ["foreign"]);
    }
}
