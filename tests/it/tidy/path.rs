//! The paths of an attempt, of a wait and of a release, as the tables in `src/engine/mod.rs` list
//! them: each function is in its file.

use super::{none, read, root};
use crate::prelude::*;

/// A reader of the path opens fewer files than this.
const MOST_FILES: usize = 20;

/// The rows of a table: each a function and its file below `src/`.
fn steps(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    let rows = rows.filter(|row| row.starts_with(|first: char| first.is_ascii_digit()));
    let code = |cell: &str| cell.split('`').nth(1).unwrap_or_default().to_owned();
    rows.map(|row| row.split(" | ").map(code).collect::<Vec<_>>())
        .map(|row| (row[2].clone(), row[3].clone()))
        .collect()
}

/// The steps of each path that is listed.
pub(crate) fn listed() -> Vec<Vec<(String, String)>> {
    read("src/engine/mod.rs")
        .split("\n//! # ")
        .map(steps)
        .filter(|steps| !steps.is_empty())
        .collect()
}

/// What is wrong with the path, given the text of each file.
fn findings(steps: &[(String, String)], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let files: BTreeSet<&str> = steps.iter().map(|(_, file)| &**file).collect();
    let mut findings = Vec::new();
    if files.len() >= MOST_FILES {
        findings.push(format!("a path leads through {} files", files.len()));
    }
    for (function, file) in steps {
        let name = function.rsplit("::").next().unwrap_or(function);
        let text = read(file).unwrap_or_default();
        let stands_there = [format!("fn {name}("), format!("fn {name}<")]
            .iter()
            .any(|text_of| text.contains(text_of));
        if !stands_there {
            findings.push(format!("{function} does not stand in {file}"));
        }
    }
    findings
}

#[test]
fn the_paths_of_an_attempt_a_wait_and_a_release_are_as_listed() {
    let paths = listed();
    let lengths: Vec<usize> = paths.iter().map(Vec::len).collect();
    assert!(matches!(lengths[..], [(16..), (6..), (6..)]), "{paths:?}");
    let text = |file: &str| fs::read_to_string(root().join("src").join(file)).ok();
    none(paths.iter().flat_map(|steps| findings(steps, text)));
}
