//! Public enums: variants can be added to each of them, and no outcome is ignored by accident.

use std::collections::BTreeSet;

/// Folders all of whose public enums are part of the interface, whether `lib.rs` names them or
/// their module.
const PUBLIC: [&str; 3] = ["api/", "embedded/", "events/"];

/// Public enums without the attributes that they need.
pub(super) fn findings(lib: &str, files: &[(String, String)]) -> Vec<String> {
    let exported = exported(lib);
    let (mut enums, mut outcomes) = (0, 0);
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
            enums += 1;
            outcomes += usize::from(name.ends_with("Outcome"));
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
    assert!(
        enums > 12 && outcomes > 1,
        "no longer recognised: {enums}, {outcomes}"
    );
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
