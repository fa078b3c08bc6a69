//! The rules of prose, executed: plain technical English, 120 columns, and references that a reader can follow.
//!
//! The subject of a sentence is a component: the driver, a waiter, the node, the caller. `.github/CONTRIBUTING.md` says
//! the rest. What counts as prose: all of a Markdown file or a Python module, the comments and strings of a source
//! file, and the comments of a script or a manifest.

use super::source::code;
use super::{name_below, none};
use std::fs;
use std::path::{Path, PathBuf};

/// Files, and folders with all that is below them, that keep the rules. The list grows until it is the whole tree.
const COVERED: [&str; 34] = [
    ".ci",
    ".github",
    "CHANGELOG.md",
    "Cargo.toml",
    "README.md",
    "benches",
    "examples",
    "fuzz/Cargo.toml",
    "fuzz/bodies",
    "fuzz/fuzz_targets",
    "src/algorithm",
    "src/api",
    "src/bin",
    "src/docs",
    "src/embedded",
    "src/engine/busy_poll.rs",
    "src/engine/calls.rs",
    "src/engine/driver",
    "src/engine/interrupt.rs",
    "src/engine/local_queue",
    "src/engine/mod.rs",
    "src/engine/node_connection",
    "src/engine/nodes",
    "src/engine/rounds",
    "src/engine/socket_state.rs",
    "src/engine/subscriber.rs",
    "src/engine/wait_registry.rs",
    "src/engine/watchdog_thread",
    "src/events",
    "src/ffi",
    "src/lib.rs",
    "src/os",
    "src/protocol",
    "tests",
];

/// Below those, what may break a rule: this list itself, and the table of planted faults, whose strings are code.
const EXEMPT: [&str; 3] = ["src/protocol/error_texts.txt", "tests/it/tidy/prose.rs", "tests/sim/mutants"];

fn is_exempt(name: &str) -> bool {
    EXEMPT.iter().any(|exempt| name.starts_with(exempt))
}

/// Words that name a person where a component is meant, and words of everyday speech with an exact term beside them.
const BANNED: [&str; 22] = [
    "anybody",
    "anyone",
    "everybody",
    "everyone",
    "he",
    "her",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "mend",
    "mended",
    "mends",
    "nobody",
    "she",
    "somebody",
    "someone",
    "who",
    "whoever",
    "whom",
    "whomever",
];

/// Most columns of a line of prose, as of code (`max_width` of rustfmt).
const COLUMNS: usize = 120;

#[test]
fn prose_is_plain_and_fits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = COVERED.iter().flat_map(|path| all_below(&root.join(path))).collect();
    files.sort();
    let names = files.iter().map(|path| (name_below(root, path), path));
    let names = names.filter(|(name, _)| !is_exempt(name));
    none(names.flat_map(|(name, path)| findings(&name, &fs::read_to_string(path).unwrap())).collect());
}

/// In the whole tree, also where the other rules are not kept yet.
#[test]
fn no_reference_leads_out_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["benches", "examples", "fuzz/bodies", "fuzz/fuzz_targets", "src", "tests"];
    let files = folders.iter().flat_map(|path| all_below(&root.join(path)));
    let names = files.map(|path| (name_below(root, &path), path)).filter(|(name, _)| !is_exempt(name));
    none(names.flat_map(|(name, path)| references(&name, &fs::read_to_string(path).unwrap_or_default())).collect());
}

fn references(file: &str, text: &str) -> Vec<String> {
    let found = text.lines().enumerate().filter(|(_, line)| line.contains('§'));
    let what = "refers by § to a document outside of the repository; name a rule of src/docs/rules.md";
    found.map(|(at, _)| format!("{file}:{}: {what}", at + 1)).collect()
}

fn all_below(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    fs::read_dir(path).unwrap().flat_map(|entry| all_below(&entry.unwrap().path())).collect()
}

fn findings(file: &str, text: &str) -> Vec<String> {
    let is_markdown = file.ends_with(".md");
    let is_source = [".rs", ".c", ".cpp", ".h", ".hpp"].iter().any(|kind| file.ends_with(kind));
    let prose = match (is_markdown || file.ends_with(".py"), is_source) {
        (true, _) => text.to_owned(),
        (_, true) => comments_and_strings(text),
        _ => comments_of_script(text, if file.ends_with(".lua") { "--" } else { "#" }),
    };
    let mut is_verbatim = false;
    let mut findings = references(file, &prose);
    for (at, (line, whole)) in prose.lines().zip(text.lines()).enumerate() {
        let mut found = |what: String| findings.push(format!("{file}:{}: {what}", at + 1));
        for word in banned_words(line) {
            found(format!("says {word:?}"));
        }
        is_verbatim ^= is_markdown && line.trim_start().starts_with("```");
        let columns = whole.chars().count();
        if columns > COLUMNS && !is_verbatim && !is_table(line) && !line.trim().is_empty() {
            found(format!("{columns} columns, more than {COLUMNS}"));
        }
    }
    findings
}

fn banned_words(line: &str) -> impl Iterator<Item = &str> {
    // An underscore is part of a word: what a name is made of is no prose.
    let words = line.split(|letter: char| !(letter == '_' || letter.is_alphanumeric()));
    words.filter(|word| BANNED.iter().any(|banned| banned.eq_ignore_ascii_case(word)))
}

/// A row of a table, which Markdown does not let break.
fn is_table(line: &str) -> bool {
    line.trim_start_matches(['/', '!', ' ']).starts_with('|')
}

/// The text with everything blanked but what stands behind the sign of a comment: scripts and manifests.
fn comments_of_script(text: &str, sign: &str) -> String {
    let comment = |line: &str| {
        let before = if line.starts_with(sign) { Some(0) } else { line.find(&format!(" {sign}")) };
        before.map_or_else(String::new, |at| " ".repeat(at) + &line[at..])
    };
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// The text with everything blanked that the compiler acts on, but for strings.
fn comments_and_strings(text: &str) -> String {
    let code = code(text);
    let mut code = code.as_bytes().iter();
    let mut prose = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_code = code.by_ref().take(letter.len_utf8()).any(|&byte| !byte.is_ascii_whitespace());
        prose.push(if is_code { ' ' } else { letter });
    }
    prose
}

#[test]
fn planted_prose_is_found() {
    let count = |file: &str, text: &str| findings(file, text).len();
    for text in ["Nobody waits.", "for his sake", "See SPEC §2.4.", "He", &"long ".repeat(30)] {
        assert_eq!(count("docs/a.md", text), 1, "{text}");
        assert_eq!(count("src/a.rs", &format!("/// {text}")), 1, "{text}");
        assert_eq!(count("src/a.h", &format!("/* {text} */")), 1, "{text}");
    }
    assert_eq!(findings("src/a.rs", "let a = f(\n    \"somebody\", // whoever\n);").len(), 2);
    assert_eq!(findings("src/a.rs", "fn f() {}\n// who")[0], "src/a.rs:2: says \"who\"");

    let long = "x".repeat(COLUMNS + 1);
    for text in ["The", "a_lock_that_nobody_waits_for", "whole", &format!("| {long} |"), &format!("```\n{long}\n```")] {
        assert_eq!(count("docs/a.md", text), 0, "{text}");
    }
    for text in ["let who = told(he);", &format!("let {long};"), &format!("//! | {long} |"), "'a'"] {
        assert_eq!(count("src/a.rs", text), 0, "{text}");
    }
    assert_eq!(findings("a/run", "told=1 # nobody\n#he"), ["a/run:1: says \"nobody\"", "a/run:2: says \"he\""]);
    assert_eq!(findings("src/a.lua", "-- who\nlocal he = #told")[..], ["src/a.lua:1: says \"who\""]);
    assert_eq!(count("docs/a.md", &"ä".repeat(COLUMNS)), 0, "columns are characters");
}
