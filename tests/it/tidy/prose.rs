//! The rules of prose, executed: plain technical English, 100 columns, and references that a reader
//! can follow.
//!
//! The subject of a sentence is a component: the driver, a waiter, the node, the caller.
//! `.github/CONTRIBUTING.md` has the other rules. What counts as prose: all of a Markdown file or a
//! Python module, the comments and strings of a source file, and the comments of a script or a
//! manifest. Frequencies are counted in comments of Rust and in Markdown.

use super::source::code;
use super::{name_below, none, root, walk};
use crate::prelude::*;

/// Files and folders of the tree that hold no text of the repository: what tools write, and inputs
/// of the fuzzer.
const OUTSIDE: [&str; 7] = [
    ".git",
    "fuzz/artifacts",
    "fuzz/corpus",
    "fuzz/coverage",
    "fuzz/seeds",
    "fuzz/target",
    "target",
];

/// What may break a rule: error replies of servers, this list itself, and planted faults, whose
/// strings are code.
const EXEMPT: [&str; 3] = [
    "src/protocol/error_texts.txt",
    "tests/it/tidy/prose.rs",
    "tests/sim/mutants",
];

fn is_exempt(name: &str) -> bool {
    EXEMPT.iter().any(|exempt| name.starts_with(exempt))
}

/// Words that name a person where a component is meant, and words of everyday speech with an exact
/// term beside them.
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

/// Most columns of a line of prose in Rust and Markdown, as of code by the default of rustfmt.
const COLUMNS: usize = 100;
/// Most columns of a line of prose in other files, which no tool formats, and of what is not to be
/// broken: a string, an example, a drawing.
const OTHER_COLUMNS: usize = 120;

/// Words that hide which component does what, and how often the tree may use them. A phrase in
/// lower case counts in either case; one with a capital counts where it begins a sentence. A limit
/// is lowered when the tree has less.
const LIMITS: [Limit; 10] = [
    Limit::new(
        &["gives"],
        1.0,
        "a function returns, a server replies, a node grants",
    ),
    Limit::new(
        &["gave"],
        0.4,
        "a function returned, a call ended without the lock",
    ),
    Limit::new(
        &["says"],
        0.1,
        "a message contains, a rule requires, a log shows, a node reports",
    ),
    Limit::new(
        &["said", "say"],
        0.3,
        "a node has replied, a caller has set",
    ),
    Limit::new(
        &["stands"],
        0.15,
        "a key exists or holds, an item is in its file, a value remains",
    ),
    Limit::new(
        &["stand"],
        0.1,
        "keys exist or hold, items are in their files; a substitute",
    ),
    Limit::new(&["that of"], 0.15, "repeat the noun"),
    Limit::new(
        &["Of a", "Of the"],
        0.0,
        "the sentence begins with its subject, or with 'for a'",
    ),
    Limit::new(&["what is left"], 0.15, "the rest, or name what remains"),
    Limit::new(&["besides"], 0.05, "in addition to, apart from, also"),
];

struct Limit {
    phrases: &'static [&'static str],
    /// Most uses in 10 000 words.
    frequency: f64,
    /// The terms to write instead.
    instead: &'static str,
}

impl Limit {
    const fn new(phrases: &'static [&'static str], frequency: f64, instead: &'static str) -> Limit {
        Limit {
            phrases,
            frequency,
            instead,
        }
    }
}

#[test]
fn prose_is_plain_and_fits() {
    let texts = texts();
    assert!(texts.len() > 500, "texts are no longer found");
    let text = |wanted: &str| &texts.iter().find(|(name, _)| name == wanted).unwrap().1;
    // It lists the words.
    let listed = findings(EXEMPT[1], text(EXEMPT[1]));
    assert!(
        listed.len() >= BANNED.len(),
        "words are not recognised: {listed:?}"
    );
    let judged = texts.iter().filter(|(name, _)| !is_exempt(name));
    none(judged.flat_map(|(name, text)| findings(name, text)));
}

#[test]
fn vague_words_are_rare() {
    none(too_frequent(&texts()));
}

/// Every text of the tree, by its name below the root. A file that is not UTF-8 has no prose.
fn texts() -> Vec<(String, String)> {
    let name = |path: &Path| name_below(root(), path);
    let paths = walk(root(), |path| !OUTSIDE.contains(&&*name(path)));
    let text = |path: PathBuf| Some((name(&path), fs::read_to_string(path).ok()?));
    paths.into_iter().filter_map(text).collect()
}

fn too_frequent(texts: &[(String, String)]) -> Vec<String> {
    let lines: Vec<(String, &str)> = texts
        .iter()
        .flat_map(|(name, text)| lines_of_prose(name, text))
        .collect();
    let words: usize = lines.iter().map(|(_, line)| number_of_words(line)).sum();
    let uses = |limit: &Limit, line: &str| {
        let phrases = limit.phrases.iter();
        phrases
            .map(|phrase| occurrences(line, phrase))
            .sum::<usize>()
    };
    let all = LIMITS
        .iter()
        .flat_map(|limit| lines.iter().map(move |(_, line)| uses(limit, line)));
    let all: usize = all.sum();
    assert!(
        words > 100_000 && all > 20,
        "{all} uses in {words} words: no longer recognised"
    );
    let excess = |limit: &Limit| {
        let places: Vec<&str> = lines
            .iter()
            .flat_map(|(place, line)| std::iter::repeat_n(place.as_str(), uses(limit, line)))
            .collect();
        let frequency = places.len() as f64 * 10_000.0 / words as f64;
        (frequency > limit.frequency).then(|| {
            let Limit { phrases, frequency: most, instead } = limit;
            let places = places.join(", ");
            format!("{phrases:?}: {frequency:.2} uses in 10 000 words, more than {most}; write: {instead}. At {places}")
        })
    };
    LIMITS.iter().filter_map(excess).collect()
}

/// The comments of a Rust file, or a Markdown file without its code, line by line, each with its
/// place.
fn lines_of_prose<'t>(file: &str, text: &'t str) -> Vec<(String, &'t str)> {
    let is_markdown = file.ends_with(".md");
    if !is_markdown && !file.ends_with(".rs") {
        return Vec::new();
    }
    let mut is_verbatim = false;
    let lines = text.lines().enumerate().filter_map(|(at, line)| {
        let is_fence = is_markdown && line.trim_start().starts_with("```");
        is_verbatim ^= is_fence;
        let prose = match is_markdown {
            true => (!is_fence && !is_verbatim).then_some(line),
            false => comment(line),
        };
        Some((format!("{file}:{}", at + 1), prose?.trim()))
    });
    lines.collect()
}

fn comment(line: &str) -> Option<&str> {
    let before = if line.starts_with("//") {
        0
    } else {
        line.find(" //")? + 1
    };
    Some(line[before..].trim_start_matches(['/', '!']))
}

fn number_of_words(line: &str) -> usize {
    line.split(|letter: char| !(letter == '\'' || letter.is_ascii_alphabetic()))
        .filter(|word| !word.is_empty())
        .count()
}

/// How often a line contains a phrase as whole words.
fn occurrences(line: &str, phrase: &str) -> usize {
    let is_beginning = phrase.starts_with(|letter: char| letter.is_uppercase());
    let line = if is_beginning {
        line.to_owned()
    } else {
        line.to_ascii_lowercase()
    };
    let is_use = |at: usize| {
        let before = &line[..at];
        let after = &line[at + phrase.len()..];
        let is_whole = !before.ends_with(is_of_word) && !after.starts_with(is_of_word);
        let sentence = before.trim_end();
        is_whole
            && (!is_beginning || sentence.is_empty() || sentence.ends_with(['.', '!', '?', ':']))
    };
    line.match_indices(phrase)
        .filter(|&(at, _)| is_use(at))
        .count()
}

/// An underscore is part of a word: what a name is made of is no prose.
fn is_of_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Whether a comment is not to be broken: a drawing, which has gaps, or a single word, or none.
fn is_one_piece(text: &str) -> bool {
    text.trim().contains("   ") || is_one_word(text)
}

/// Or the definition of a link, which has to be in one line.
fn is_one_word(text: &str) -> bool {
    let is_definition = text.starts_with('[') && text.contains("]: https://");
    is_definition || text.split_whitespace().count() < 2
}

fn references(file: &str, text: &str) -> Vec<String> {
    let found = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains('§'));
    let what =
        "refers by § to a document outside of the repository; name a rule of src/docs/rules.md";
    found
        .map(|(at, _)| format!("{file}:{}: {what}", at + 1))
        .collect()
}

fn findings(file: &str, text: &str) -> Vec<String> {
    let is_markdown = file.ends_with(".md");
    let is_rust = file.ends_with(".rs");
    let is_source = [".rs", ".c", ".cpp", ".h", ".hpp"]
        .iter()
        .any(|kind| file.ends_with(kind));
    let prose = match (is_markdown || file.ends_with(".py"), is_source) {
        (true, _) => text.to_owned(),
        (_, true) => comments_and_strings(text),
        _ => comments_of_script(text, if file.ends_with(".lua") { "--" } else { "#" }),
    };
    let mut is_verbatim = false;
    let mut findings = references(file, text);
    for (at, (line, whole)) in prose.lines().zip(text.lines()).enumerate() {
        let mut found = |what: String| findings.push(format!("{file}:{}: {what}", at + 1));
        for word in banned_words(line) {
            found(format!("says {word:?}"));
        }
        let text = if is_rust {
            comment(whole).unwrap_or_default()
        } else {
            line
        };
        is_verbatim ^= (is_markdown || is_rust) && text.trim_start().starts_with("```");
        let columns = whole.chars().count();
        let is_wrapped = is_markdown || is_rust && !is_verbatim && !is_one_piece(text);
        let most = if is_wrapped { COLUMNS } else { OTHER_COLUMNS };
        let is_exempt = is_markdown && (is_verbatim || is_one_word(text));
        if columns > most && !is_exempt && !is_table(line) && !line.trim().is_empty() {
            found(format!("{columns} columns, more than {most}"));
        }
    }
    findings
}

fn banned_words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|letter: char| !is_of_word(letter));
    words.filter(|word| {
        BANNED
            .iter()
            .any(|banned| banned.eq_ignore_ascii_case(word))
    })
}

/// A row of a table, which Markdown does not let break.
fn is_table(line: &str) -> bool {
    line.trim_start_matches(['/', '!', ' ']).starts_with('|')
}

/// The text with everything blanked but what follows the sign of a comment: scripts and manifests.
fn comments_of_script(text: &str, sign: &str) -> String {
    let comment = |line: &str| {
        let before = if line.starts_with(sign) {
            Some(0)
        } else {
            line.find(&format!(" {sign}"))
        };
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
        let is_code = code
            .by_ref()
            .take(letter.len_utf8())
            .any(|&byte| !byte.is_ascii_whitespace());
        prose.push(if is_code { ' ' } else { letter });
    }
    prose
}

/// What a line may be longer for is told by lines before it and by what the line begins with.
#[test]
fn lines_that_are_too_long_are_found_and_those_that_may_be_are_not() {
    let long = "long ".repeat(30);
    let whole = "x".repeat(130);
    for (file, text, expected) in [
        ("a.md", long.clone(), 1),
        ("a.rs", format!("/// {long}"), 1),
        ("a.rs", format!("f(\n    \"{long}\"\n)"), 1),
        ("a.h", format!("/* {long} */"), 1),
        ("a/run", format!("x=1 # {long}"), 1),
        ("a.md", format!("```\n```\n{long}"), 1),
        ("a.md", format!("```\n{long}\n```"), 0),
        ("a.md", format!("| {long} |"), 0),
        ("a.rs", format!("//! | {long} |"), 0),
        ("a.rs", format!("let {long};"), 0),
        ("a.md", whole, 0),
        ("a.md", "ä b".repeat(33), 0),
    ] {
        assert_eq!(findings(file, &text).len(), expected, "{file}: {text}");
    }
}
