//! The house rules of src/docs/architecture.md and .github/CONTRIBUTING.md, executed: these tests
//! read the source tree and report where it breaks a rule.
//!
//! Each rule is a function from text to findings, sentences that name the file. Each is tried on
//! made-up text that breaks it before it is trusted with the tree. [`source`] tells code from
//! comments and strings; [`layers`] knows the layers, [`prose`] the words, [`links`] where pages
//! point to, [`path`] the functions that an attempt passes, [`api`] the public enums, [`rules`]
//! which tests show which rule of the manual, and [`proofs`] which code the proofs are about.

mod api;
mod commands;
mod layers;
mod links;
pub(crate) mod path;
mod proofs;
mod prose;
mod rules;
mod source;

use std::fs;
use std::path::Path;

use layers::{Layer, Tree};
use source::{code, imports, tokens, without_tests};

/// A file that is longer has more than one subject.
const LONGEST_FILE: usize = 600;

/// What the pure layers must not name: clocks, sockets, threads, entropy and files.
const IMPURE: [&str; 11] = [
    "Instant::now",
    "SystemTime::now",
    "getrandom",
    "rustix",
    "socket2",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
];

/// Where unsafe code may exist apart from `ffi/`: files below `src/`, or beside it. The compiler
/// denies it wherever it is not allowed by name; this list names the files that may allow it.
const UNSAFE: [&str; 4] = [
    "../tests/it/support/child.rs",
    "../tests/it/support/handler.rs",
    "bin/quorumlock/run/signals.rs",
    "os/fork.rs",
];

#[test]
fn every_file_opens_with_its_purpose() {
    none(each_file("rs", unopened));
}

#[test]
fn no_file_is_too_long() {
    none(each_file("rs", too_long));
}

#[test]
fn modules_import_downward_only() {
    none(Tree::read(&files("src", "rs")).upward());
}

#[test]
fn imports_form_no_cycle() {
    none(Tree::read(&files("src", "rs")).cycles());
}

#[test]
fn the_protocol_is_pure() {
    none(each_file_but_tests(impure));
}

#[test]
fn unsafe_code_has_its_place() {
    none(each_file("rs", misplaced_unsafe));
    for folder in [
        "benches",
        "examples",
        "fuzz/bodies",
        "fuzz/fuzz_targets",
        "tests",
    ] {
        let files = files(folder, "rs").into_iter();
        none(
            files
                .flat_map(|(file, text)| misplaced_unsafe(&format!("../{folder}/{file}"), &text))
                .collect(),
        );
    }
}

#[test]
fn nothing_unwraps_outside_tests() {
    none(each_file_but_tests(unwraps));
}

#[test]
fn every_script_says_what_it_takes_and_returns() {
    none(each_file("lua", undocumented_script));
}

#[test]
fn every_dependency_has_its_reason() {
    for package in [
        "",
        "benches/compare/rust",
        "examples/opentelemetry",
        "fuzz",
        "tests/models",
        "tests/properties",
        "tests/sim",
        "tests/stale_writers",
        "tests/tokio",
    ] {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(package)
            .join("Cargo.toml");
        none(unexplained_dependencies(
            &fs::read_to_string(manifest).unwrap(),
        ));
    }
}

#[test]
fn public_enums_may_grow_and_outcomes_are_looked_at() {
    none(api::findings(
        &fs::read_to_string("src/lib.rs").unwrap(),
        &files("src", "rs"),
    ));
}

/// Not a rule: shows the median, with `--nocapture`.
#[test]
#[allow(clippy::print_stdout)]
fn sizes_are_shown() {
    let mut lengths: Vec<usize> = files("src", "rs")
        .iter()
        .map(|(_, text)| text.lines().count())
        .collect();
    lengths.sort_unstable();
    assert!(!lengths.is_empty(), "no files below src/");
    let count = lengths.len();
    let median = lengths[lengths.len() / 2];
    let longest = lengths[lengths.len() - 1];
    println!("src/: {count} files, median {median} lines, longest {longest}");
}

fn unopened(file: &str, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let opened = first
        .strip_prefix("//!")
        .is_some_and(|line| !line.trim().is_empty());
    if opened {
        Vec::new()
    } else {
        vec![format!(
            "{file}: does not open with a `//!` line that says what it is"
        )]
    }
}

fn too_long(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if lines <= LONGEST_FILE {
        Vec::new()
    } else {
        vec![format!("{file}: {lines} lines, more than {LONGEST_FILE}")]
    }
}

fn impure(file: &str, text: &str) -> Vec<String> {
    if !matches!(Layer::of(file), Some(Layer::Algorithm | Layer::Protocol)) {
        return Vec::new();
    }
    let (code, _) = without_tests(&code(text));
    let words = tokens(&code);
    let imports = imports(&code);
    // In one piece, or by the leaves of a use tree: `use std::{fmt, io}`.
    let named = |path: &&&str| {
        let wanted = tokens(path);
        let leaf: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|&word| word != "::")
            .collect();
        words.windows(wanted.len()).any(|found| found == wanted)
            || imports.iter().any(|path| path.starts_with(&leaf))
    };
    IMPURE
        .iter()
        .filter(named)
        .map(|path| format!("{file}: names {path}, and is to be pure"))
        .collect()
}

fn misplaced_unsafe(file: &str, text: &str) -> Vec<String> {
    if Layer::of(file) == Some(Layer::Ffi) || UNSAFE.contains(&file) {
        return Vec::new();
    }
    lines_with(
        file,
        &code(text),
        |line| line.contains(&"unsafe"),
        "unsafe code outside its files",
    )
}

/// A file may have an `expect` of its own, as parsers do; there, only the one with nothing but a
/// message is meant.
fn unwraps(file: &str, text: &str) -> Vec<String> {
    let (code, _) = without_tests(&code(text));
    let own = tokens(&code)
        .windows(2)
        .any(|pair| pair == ["fn", "expect"]);
    let called = |line: &[&str]| {
        line.windows(4)
            .any(|call| call == [".", "unwrap", "(", ")"] || call == [".", "expect", "(", ")"])
            || !own && line.windows(3).any(|call| call == [".", "expect", "("])
    };
    lines_with(file, &code, called, "a panic in waiting outside tests")
}

fn undocumented_script(file: &str, text: &str) -> Vec<String> {
    let opening: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("--"))
        .collect();
    let missing = ["KEYS", "ARGV", "returns"]
        .into_iter()
        .filter(|word| !opening.concat().contains(word));
    missing
        .map(|word| format!("{file}: its opening comment does not name {word}"))
        .collect()
}

/// Each `name = …` in a table of dependencies, and each table that is one dependency, needs a
/// comment right above.
fn unexplained_dependencies(manifest: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut in_table = false;
    let mut open_brackets = 0;
    let mut before = "";
    for line in manifest.lines().map(str::trim) {
        let explained = before.starts_with('#');
        let mut dependency = None;
        if open_brackets == 0 && line.starts_with('[') {
            let table = line.trim_matches(['[', ']']);
            in_table = table.ends_with("dependencies");
            let (parent, name) = table.rsplit_once('.').unwrap_or_default();
            dependency = parent.ends_with("dependencies").then_some(name);
        } else {
            if open_brackets == 0 && in_table && !line.starts_with('#') {
                dependency = line.split_once('=').map(|(name, _)| name.trim());
            }
            let text = line.split('#').next().unwrap_or_default();
            open_brackets += text.matches(['[', '{']).count();
            open_brackets -= text.matches([']', '}']).count().min(open_brackets);
        }
        if let Some(name) = dependency.filter(|_| !explained) {
            findings.push(format!(
                "Cargo.toml: no comment above {name} says what it is for"
            ));
        }
        before = line;
    }
    findings
}

fn lines_with(file: &str, code: &str, wanted: impl Fn(&[&str]) -> bool, what: &str) -> Vec<String> {
    let found = code
        .lines()
        .enumerate()
        .filter(|(_, line)| wanted(&tokens(line)));
    found
        .map(|(at, _)| format!("{file}:{}: {what}", at + 1))
        .collect()
}

fn each_file(kind: &str, rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    files("src", kind)
        .iter()
        .flat_map(|(file, text)| rule(file, text))
        .collect()
}

fn each_file_but_tests(rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let files = files("src", "rs");
    let tests = layers::test_files(&files);
    files
        .iter()
        .filter(|(file, _)| !tests.contains(file))
        .flat_map(|(file, text)| rule(file, text))
        .collect()
}

/// The files of a kind below a folder of this package: their paths below it, and their text.
fn files(folder: &str, kind: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == kind) {
                found.push((name_below(&root, &path), fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn name_below(root: &Path, path: &Path) -> String {
    let parts = path
        .strip_prefix(root)
        .unwrap()
        .iter()
        .map(|part| part.to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

/// Each sound text has no finding, and each wrong one has one.
#[track_caller]
fn tells_apart(count: impl Fn(&str) -> usize, sound: &[&str], wrong: &[&str]) {
    for text in sound {
        assert_eq!(count(text), 0, "{text}");
    }
    for text in wrong {
        assert_eq!(count(text), 1, "{text}");
    }
}

#[track_caller]
fn none(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn rules_find_what_is_planted() {
    assert!(unopened("a.rs", "//! A thing.\n").is_empty());
    assert_eq!(
        unopened("a.rs", "//!\nuse b;").len()
            + unopened("a.rs", "use b;").len()
            + unopened("a.rs", "").len(),
        3
    );

    assert!(too_long("a.rs", &"x\n".repeat(LONGEST_FILE)).is_empty());
    assert_eq!(too_long("a.rs", &"x\n".repeat(LONGEST_FILE + 1)).len(), 1);

    for text in [
        "Instant::now()",
        "use std::{fmt, io};",
        "use std::net::IpAddr;",
        "rustix::event::poll()",
    ] {
        assert_eq!(impure("protocol/vote.rs", text).len(), 1, "{text}");
        assert!(impure("engine/link.rs", text).is_empty());
    }
    for text in [
        "// std::net",
        "\"std::net\"",
        "use std::{fmt, iter};",
        "now: Instant",
        "#[cfg(test)] use std::fs;",
    ] {
        assert!(impure("protocol/vote.rs", text).is_empty(), "{text}");
    }

    assert_eq!(
        misplaced_unsafe("engine/link.rs", "fn f() {\n    unsafe { g() }\n}"),
        ["engine/link.rs:2: unsafe code outside its files"]
    );
    for file in ["sync.rs", "../tests/it/forking.rs"] {
        assert_eq!(misplaced_unsafe(file, "unsafe { f() }").len(), 1);
    }
    assert!(misplaced_unsafe("engine/link.rs", "#![forbid(unsafe_code)] // unsafe").is_empty());
    assert!(
        misplaced_unsafe("ffi/mod.rs", "unsafe {}").is_empty()
            && misplaced_unsafe("os/fork.rs", "unsafe {}").is_empty()
    );

    assert_eq!(
        unwraps("a.rs", "f().unwrap();\ng()\n    .expect(\"h\");").len(),
        2
    );
    assert!(
        unwraps(
            "a.rs",
            "f().unwrap_or(1); /// g().unwrap()\n#[cfg(test)] mod tests { h().unwrap(); }"
        )
        .is_empty()
    );
    assert!(
        unwraps(
            "a.rs",
            "fn expect(self, what: Kind) {} fn f() { self.expect(Kind::Number) }"
        )
        .is_empty()
    );
    assert_eq!(
        unwraps(
            "a.rs",
            "fn expect(self, what: Kind) {} fn f() { g().expect(\"h\") }"
        )
        .len(),
        1
    );
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\n# Why.\na = \"1\"\n\
                    b = { version = \"1\", features = [\n    \"x\",\n] }\n\
                    [target.'cfg(unix)'.dev-dependencies]\n# Why.\nc = [\n  \"d\",\n]\ne.workspace = true\n\
                    [dependencies.f]\nversion = \"1\"\n# Why.\n[dev-dependencies.g]\nversion = \"1\"\n\
                    [features]\nh = []\n";
    let named: Vec<String> = unexplained_dependencies(manifest);
    let names: Vec<&str> = named
        .iter()
        .filter_map(|line| line.split(' ').nth(4))
        .collect();
    assert_eq!(names, ["b", "e.workspace", "f"]);
}
