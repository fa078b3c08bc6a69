//! The house rules of src/docs/architecture.md and .github/CONTRIBUTING.md, executed: these tests
//! read the source tree and report where it breaks a rule.
//!
//! Each rule is a function from text to findings, sentences that name the file. Each test counts
//! what its rule has looked at: one that recognises nothing any more fails. [`source`] tells code
//! from comments and strings; [`layers`] knows the layers, [`prose`] the words, [`links`] where
//! pages point to, [`path`] the functions that an attempt passes, [`api`] the public enums,
//! [`rules`] which tests show which rule of the manual, and [`proofs`] which code the proofs are
//! about.

mod api;
mod commands;
mod layers;
mod links;
pub(crate) mod path;
mod proofs;
mod prose;
mod rules;
mod source;

use crate::support::package::{root, text_of as read};
use std::fs;
use std::path::{Path, PathBuf};

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
const UNSAFE: [&str; 5] = [
    "../tests/it/support/child.rs",
    "../tests/it/support/handler.rs",
    "bin/quorumlock/run/descriptor.rs",
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
    // A bench is a crate of its own, as a program is. It has one module from the tests.
    let benches = files("benches", "rs")
        .into_iter()
        .chain([("floor/server.rs".into(), String::new())]);
    let benches = benches.map(|(file, text)| (format!("bin/{file}"), text));
    none(Tree::read(&benches.collect::<Vec<_>>()).cycles());
}

#[test]
fn the_protocol_is_pure() {
    let elsewhere: usize = files("src", "rs")
        .iter()
        .map(|(_, text)| impurities(text).len())
        .sum();
    assert!(elsewhere > 50, "{elsewhere}: no longer recognised");
    none(each_file_but_tests(impure));
}

#[test]
fn unsafe_code_has_its_place() {
    let sources = files("src", "rs");
    let lines = sources
        .iter()
        .flat_map(|(file, text)| unsafe_lines(file, text));
    assert!(lines.count() > 20, "no longer recognised");
    none(each_file("rs", misplaced_unsafe));
    let folders = [
        "benches",
        "examples",
        "fuzz/bodies",
        "fuzz/fuzz_targets",
        "tests",
    ];
    let others = from_top(&folders, "rs").into_iter();
    none(others.flat_map(|(file, text)| misplaced_unsafe(&format!("../{file}"), &text)));
}

#[test]
fn nothing_unwraps_outside_tests() {
    let tests = files("tests/it", "rs");
    let calls = tests.iter().flat_map(|(file, text)| unwraps(file, text));
    assert!(calls.count() > 500, "no longer recognised");
    none(each_file_but_tests(unwraps));
}

#[test]
fn every_script_says_what_it_takes_and_returns() {
    none(each_file("lua", undocumented_script));
}

#[test]
fn every_dependency_has_its_reason() {
    let mut count = 0;
    for package in [
        "",
        "benches/compare/rust",
        "examples/opentelemetry",
        "fuzz",
        "tests/models",
        "tests/planter",
        "tests/sim",
        "tests/stale_writers",
        "tests/tokio",
    ] {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        let dependencies = dependencies(&manifest);
        count += dependencies.len();
        let unexplained = dependencies.iter().filter(|(_, explained)| !explained);
        none(unexplained.map(|(name, _)| {
            format!("{package}/Cargo.toml: {name} has no comment above it that explains it")
        }));
    }
    assert!(count > 40, "{count}: no longer recognised");
}

#[test]
fn public_enums_may_grow_and_outcomes_are_looked_at() {
    none(api::findings(&read("src/lib.rs"), &files("src", "rs")));
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
    let found = impurities(text).into_iter();
    found
        .map(|path| format!("{file}: names {path}, and is to be pure"))
        .collect()
}

/// What a file names that a pure one must not.
fn impurities(text: &str) -> Vec<&'static str> {
    let (code, _) = without_tests(&code(text));
    let words = tokens(&code);
    let imports = imports(&code);
    // In one piece, or by the leaves of a use tree: `use std::{fmt, io}`.
    let named = |path: &&str| {
        let wanted = tokens(path);
        let leaf: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|&word| word != "::")
            .collect();
        words.windows(wanted.len()).any(|found| found == wanted)
            || imports.iter().any(|path| path.starts_with(&leaf))
    };
    IMPURE.into_iter().filter(named).collect()
}

fn misplaced_unsafe(file: &str, text: &str) -> Vec<String> {
    if Layer::of(file) == Some(Layer::Ffi) || UNSAFE.contains(&file) {
        return Vec::new();
    }
    unsafe_lines(file, text)
}

fn unsafe_lines(file: &str, text: &str) -> Vec<String> {
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

/// Each `name = …` in a table of dependencies, and each table that is one dependency, with whether
/// there is a comment right above.
fn dependencies(manifest: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
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
        found.extend(dependency.map(|name| (name, explained)));
        before = line;
    }
    found
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
    let others = || files.iter().filter(|(file, _)| !tests.contains(file));
    assert!(
        others().count() > 200,
        "files are taken for tests: {tests:?}"
    );
    others().flat_map(|(file, text)| rule(file, text)).collect()
}

/// The files of a kind below a folder of this package: their paths below it, and their text.
fn files(folder: &str, kind: &str) -> Vec<(String, String)> {
    let folder = root().join(folder);
    let mut paths = walk(&folder, |_| true);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    assert!(!paths.is_empty(), "no {kind} files below {folder:?}");
    let text = |path: PathBuf| {
        (
            name_below(&folder, &path),
            fs::read_to_string(path).unwrap(),
        )
    };
    paths.into_iter().map(text).collect()
}

/// The files of a kind below folders of this package: their paths below the top, and their text.
fn from_top(folders: &[&str], kind: &str) -> Vec<(String, String)> {
    let below = |folder: &&str| {
        let path = |(file, text)| (format!("{folder}/{file}"), text);
        files(folder, kind)
            .into_iter()
            .map(path)
            .collect::<Vec<_>>()
    };
    folders.iter().flat_map(below).collect()
}

/// The paths of all files below a folder, in their order, without those and without the folders
/// that are not wanted.
fn walk(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let (below, here): (Vec<_>, Vec<_>) = paths
            .filter(|path| is_wanted(path))
            .partition(|path| path.is_dir());
        folders.extend(below);
        files.extend(here);
    }
    files.sort();
    files
}

fn name_below(root: &Path, path: &Path) -> String {
    let parts = path
        .strip_prefix(root)
        .unwrap()
        .iter()
        .map(|part| part.to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

#[track_caller]
fn none(findings: impl IntoIterator<Item = String>) {
    let findings: Vec<String> = findings.into_iter().collect();
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}
