//! Public enums: variants can be added to each of them, and no outcome is ignored by accident.

use std::collections::BTreeSet;

/// Folders all of whose public enums are part of the interface, whether `lib.rs` names them or
/// their module.
const PUBLIC: [&str; 3] = ["api/", "embedded/", "events/"];

/// Public enums without the attributes that they need.
pub(super) fn findings(lib: &str, files: &[(String, String)]) -> Vec<String> {
    let exported = exported(lib);
    let mut findings = Vec::new();
    // The kinds of locks are enums without values.
    for (file, text) in files.iter().filter(|(file, _)| file != "api/kind/mod.rs") {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = line
                .strip_prefix("pub enum ")
                .and_then(|rest| rest.split([' ', '<']).next())
            else {
                continue;
            };
            if !exported.contains(name) && !PUBLIC.iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            let attributes: Vec<&&str> = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .collect();
            if !attributes
                .iter()
                .any(|line| line.starts_with("#[non_exhaustive]"))
            {
                findings.push(format!("{file}: {name} is not #[non_exhaustive]"));
            }
            if name.ends_with("Outcome")
                && !attributes.iter().any(|line| line.starts_with("#[must_use"))
            {
                findings.push(format!("{file}: {name} is not #[must_use]"));
            }
        }
    }
    findings
}

/// The names that `lib.rs` exports and shows.
fn exported(lib: &str) -> BTreeSet<&str> {
    let mut before = "";
    let mut names = BTreeSet::new();
    for line in lib.lines() {
        if let Some(path) = line
            .strip_prefix("pub use ")
            .filter(|_| before != "#[doc(hidden)]")
        {
            let leaves = path.rsplit_once("::").map_or(path, |(_, leaves)| leaves);
            names.extend(
                leaves
                    .split(['{', '}', ',', ' ', ';'])
                    .filter(|name| !name.is_empty()),
            );
        }
        before = line;
    }
    names
}

#[test]
fn an_enum_without_its_attributes_is_found() {
    let lib =
        "pub use a::{Seen, Shown};\n#[doc(hidden)]\npub use a::Hidden;\npub use a::Outcome;\n";
    let enums = "#[derive(Debug)]\npub enum Seen {}\n#[non_exhaustive]\npub enum Shown {}\npub enum Hidden {}\n\
                 pub enum Own {}\n#[must_use = \"why\"]\n#[non_exhaustive]\npub enum Outcome {}\n\
                 #[non_exhaustive]\npub enum LateOutcome {}\n";
    let found = |file: &str| findings(lib, &[(file.to_owned(), enums.to_owned())]);
    assert_eq!(found("a.rs"), ["a.rs: Seen is not #[non_exhaustive]"]);
    let inside = found("api/a.rs");
    assert_eq!(inside.len(), 4, "{inside:?}");
    assert!(
        inside.contains(&"api/a.rs: LateOutcome is not #[must_use]".to_owned()),
        "{inside:?}"
    );
}
