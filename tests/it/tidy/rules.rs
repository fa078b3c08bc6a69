//! Pages that name things of the tests: each numbered rule of `src/docs/rules.md` names the tests
//! that show it, and those tests exist; `.github/CONTRIBUTING.md` lists every variable that the
//! tests read.
//!
//! A rule is a paragraph that begins with its number, such as `**2.4**`. Behind `*Tests:*`, in a
//! rule or in another paragraph, are test names in backticks:
//! - `lib::name` is a test function anywhere below `src/`;
//! - `it::waiting::name` is a test function in `tests/it/waiting.rs`, and `sim::recovery::name` one
//!   in `tests/sim/recovery.rs`;
//! - `models::relay::name` likewise;
//! - `it::waiting`, or `sim` alone, is a whole file or folder of tests.

use super::{from_top, none, read};

/// A rule's number and the tests that it names.
struct Rule<'a> {
    number: &'a str,
    tests: Vec<&'a str>,
}

#[test]
fn every_rule_names_tests_that_exist() {
    let page = read("src/docs/rules.md");
    assert!(rules(&page).len() > 50, "rules are no longer recognised");
    none(findings(&page, &all_tests()));
}

#[test]
fn every_rule_that_a_comment_names_exists() {
    let page = read("src/docs/rules.md");
    let tests = all_tests();
    let named = || {
        tests
            .iter()
            .flat_map(|(file, text)| references(text).map(move |number| (file, number)))
    };
    assert!(named().count() > 10, "references are no longer recognised");
    let rules = rules(&page);
    let absent = named().filter(|(_, number)| rules.iter().all(|rule| rule.number != *number));
    none(
        absent.map(|(file, number)| format!("{file}: names rule {number}, and rules.md has none")),
    );
}

/// The numbers of rules that a text names, as in `rule 2.4`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let found = text.split("rule ").skip(1).map(|behind| {
        let end = behind
            .find(|letter: char| !(letter == '.' || letter.is_ascii_digit()))
            .unwrap_or(behind.len());
        behind[..end].trim_end_matches('.')
    });
    found.filter(|number| number.contains('.'))
}

#[test]
fn every_variable_of_the_tests_is_listed() {
    let page = read(".github/CONTRIBUTING.md");
    let listed = |name: &str| page.contains(&format!("`{name}`"));
    let tests = all_tests();
    let names = || tests.iter().flat_map(|(_, text)| variables(text));
    assert!(names().count() > 20, "variables are no longer recognised");
    let unlisted = names().filter(|name| !listed(name));
    none(unlisted.map(|name| format!("CONTRIBUTING.md does not list {name}")));
    let read = |name: &str| tests.iter().any(|(_, text)| text.contains(name));
    let gone = page
        .split('`')
        .filter(|name| variable(name).is_some() && !read(name));
    none(gone.map(|name| format!("CONTRIBUTING.md lists {name}, and no test reads it")));
}

/// The names of variables that a file quotes. The results of the C interface begin alike and have
/// no such word behind it.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter_map(variable)
}

fn variable(word: &str) -> Option<&str> {
    let kinds = [
        "FAIR_",
        "FENCE_",
        "FUZZ_",
        "NEMESIS_",
        "OTHER_",
        "PROOF_",
        "READ_WRITE_",
        "REDIS_",
        "REENTRANT_",
        "SEMAPHORE_",
        "SERVERS",
        "SETS_",
        "SIM_",
        "STALE_",
        "TEST_",
        "TLS_",
        "VERSIONS_",
        "WRITE_",
    ];
    let name = word.strip_prefix("QUORUMLOCK_")?;
    let is_one = name
        .chars()
        .all(|letter| letter == '_' || letter.is_ascii_uppercase());
    (is_one && kinds.iter().any(|kind| name.starts_with(kind))).then_some(word)
}

fn rules(page: &str) -> Vec<Rule<'_>> {
    page.split("\n\n")
        .filter_map(|paragraph| rule(paragraph.trim()))
        .collect()
}

fn rule(paragraph: &str) -> Option<Rule<'_>> {
    let (number, text) = paragraph.strip_prefix("**")?.split_once("** ")?;
    number.split_once('.')?.1.parse::<u32>().ok()?;
    Some(Rule {
        number,
        tests: named_tests(text).collect(),
    })
}

/// The tests that a paragraph names.
fn named_tests(paragraph: &str) -> impl Iterator<Item = &str> {
    let tests = paragraph.split_once("*Tests:*");
    let tests = tests.map_or("", |(_, tests)| tests);
    tests.split('`').skip(1).step_by(2)
}

/// Pairs of path and text, of every file that may hold tests.
fn all_tests() -> Vec<(String, String)> {
    from_top(&["src", "tests"], "rs")
}

fn findings(page: &str, tests: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut before = (0, 0);
    for Rule {
        number,
        tests: named,
    } in rules(page)
    {
        let (section, item) = number.split_once('.').unwrap_or_default();
        let place = (section.parse().unwrap_or(0), item.parse().unwrap_or(0));
        if place != (before.0, before.1 + 1) && (place.0 <= before.0 || place.1 != 1) {
            findings.push(format!(
                "rules.md: rule {number} follows rule {}.{}",
                before.0, before.1
            ));
        }
        before = place;
        if named.is_empty() {
            findings.push(format!("rules.md: rule {number} names no test"));
        }
    }
    let named = page.split("\n\n").flat_map(named_tests);
    let absent = named.filter(|name| !exists(name, tests));
    findings.extend(absent.map(|name| format!("rules.md names {name}, and there is no such test")));
    findings
}

fn exists(name: &str, tests: &[(String, String)]) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    let Some((&last, path)) = parts.split_last() else {
        return false;
    };
    tests.iter().any(|(file, text)| {
        leads_to(&parts, file)
            || leads_to(path, file) && names_of_tests(text).any(|name| name == last)
    })
}

/// Whether the parts of a file's path are among them in this order. `lib` is all of `src/`.
fn leads_to(parts: &[&str], file: &str) -> bool {
    let mut path = file
        .trim_end_matches(".rs")
        .split('/')
        .map(|part| if part == "src" { "lib" } else { part });
    !parts.is_empty() && parts.iter().all(|part| path.any(|found| found == *part))
}

/// The names of the test functions of a file.
pub(super) fn names_of_tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim).filter_map(move |line| {
        let was_test = is_test;
        is_test = line == "#[test]" || is_test && line.starts_with(['#', '/']);
        let name = line.strip_prefix("fn ")?.split('(').next();
        name.filter(|_| was_test)
    })
}
