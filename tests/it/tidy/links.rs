//! What pages and comments point to exists: the files and headings that pages link to, and the
//! paths that pages and comments name. And the page on operations has every setting.
//!
//! rustdoc checks the links to items of the crate.

use super::{files, from_top, none, read, root};
use crate::prelude::*;

/// Folders whose paths a page may name in backticks.
const TOP: [&str; 7] = [
    ".ci/",
    "benches/",
    "examples/",
    "fuzz/",
    "packaging/",
    "src/",
    "tests/",
];

/// How a path in a comment may begin. The path of a page below `src/` is named from the top as
/// well.
const NAMED: [&str; 8] = [
    ".ci/",
    ".github/",
    "benches/",
    "docs/",
    "examples/",
    "fuzz/",
    "src/",
    "tests/",
];

/// Where the package's page links to: the manual, and the files of the package.
const MANUAL: &str = "https://docs.rs/quorumlock/latest/quorumlock/docs/";
const FILES: &str = "https://docs.rs/crate/quorumlock/latest/source/";

/// How a path in a comment ends.
const KINDS: [&str; 7] = [".h", ".lua", ".md", ".py", ".rs", ".toml", ".txt"];

#[test]
fn every_link_and_path_of_a_page_leads_somewhere() {
    let mut pages = from_top(&[".github", "src/docs"], "md");
    pages.extend(["README.md", "CHANGELOG.md"].map(|page| (page.to_owned(), read(page))));
    assert!(pages.len() > 6, "pages are no longer found");
    let targets: Vec<&str> = pages.iter().flat_map(|(_, text)| links(text)).collect();
    let count = |is: &dyn Fn(&str) -> bool| targets.iter().filter(|target| is(target)).count();
    assert!(
        count(&|to| to.starts_with(MANUAL)) > 5
            && count(&|to| to.starts_with(FILES)) > 1
            && count(&|to| to.contains(".md")) > 30
            && pages.iter().flat_map(|(_, text)| paths(text)).count() > 100,
        "no longer recognised: {targets:?}"
    );
    none(pages.iter().flat_map(|(page, text)| findings(page, text)));
}

#[test]
fn every_path_in_a_comment_leads_somewhere() {
    let files = from_top(&["benches", "examples", "fuzz", "src", "tests"], "rs");
    let named = files.iter().flat_map(|(_, text)| paths_in_comments(text));
    assert!(named.count() > 20, "no longer recognised");
    none(files.iter().flat_map(|(file, text)| gone(file, text)));
}

#[test]
fn every_setting_is_on_the_page_of_operations() {
    let page = read("src/docs/operations.md");
    let files = [
        "builder/mod.rs",
        "mutex/kinds.rs",
        "mutex/mod.rs",
        "watchdog.rs",
    ];
    let settings = files.iter().map(|file| read(&format!("src/api/{file}")));
    let settings: Vec<String> = settings
        .flat_map(|text| setters(&text).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(settings.len() > 12, "no longer recognised: {settings:?}");
    let absent = settings
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")));
    none(absent.map(|name| format!("operations.md does not have {name}")));
}

/// The names of the methods that change a value and give it back.
fn setters(text: &str) -> impl Iterator<Item = &str> {
    let public = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub fn "));
    public
        .filter_map(|line| line.split_once("(mut self"))
        .map(|(name, _)| name.split('<').next().unwrap_or(name))
}

fn findings(name: &str, text: &str) -> Vec<String> {
    let lost = links(text).filter(|target| !leads_somewhere(name, text, target));
    let mut findings: Vec<String> = lost
        .map(|target| format!("{name}: {target} leads nowhere"))
        .collect();
    let gone = paths(text).filter(|path| !root().join(path).exists());
    findings.extend(gone.map(|path| format!("{name}: names {path}, which does not exist")));
    // rustdoc shows the manual too: a link to another page has a definition there, which
    // `src/docs/mod.rs` replaces.
    let is_of_manual = name.starts_with("src/docs/");
    let pages = inline_links(text).filter(|target| is_of_manual && target.contains(".md"));
    findings.extend(
        pages.map(|target| {
            format!("{name}: {target} leads nowhere in the documentation of the crate")
        }),
    );
    let undefined = defined(text)
        .filter(|(label, target)| is_of_manual && target.contains(".md") && !replaces(name, label));
    findings.extend(
        undefined.map(|(label, _)| format!("{name}: src/docs/mod.rs does not define {label}")),
    );
    // The page of the package has this file alone.
    let is_of_package = name == "README.md";
    let relative = links(text).filter(|target| !target.contains("://") && !target.starts_with('#'));
    findings.extend(
        relative
            .filter(|_| is_of_package)
            .map(|target| format!("{name}: {target} leads nowhere on the page of the package")),
    );
    findings
}

/// Whether the module of a page of the manual defines this label.
fn replaces(page: &str, label: &str) -> bool {
    let modules = include_str!("../../../src/docs/mod.rs");
    let include = format!("include_str!({:?})", page.trim_start_matches("src/docs/"));
    let before = modules.split(&include).next().unwrap_or_default();
    let of_page = before.rsplit("pub mod").next().unwrap_or_default();
    of_page.contains(&format!("\"[{label}]: crate::docs::"))
}

/// The paths in backticks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|path| TOP.iter().any(|top| path.starts_with(top)))
        .filter(|path| !path.contains([' ', '*', '<']))
}

/// The paths that comments name and that do not exist.
fn gone(file: &str, text: &str) -> Vec<String> {
    let gone = paths_in_comments(text)
        .into_iter()
        .filter(|path| !root().join(path).exists());
    gone.map(|path| format!("{file}: names {path}, which does not exist"))
        .collect()
}

/// The words of comments that look like paths in this repository.
fn paths_in_comments(text: &str) -> Vec<&str> {
    let comments = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("//"));
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let words = comments.flat_map(|line| line.split(move |letter| !is_of_path(letter)));
    let is_path = |word: &&str| {
        NAMED.iter().any(|top| word.starts_with(top))
            && KINDS.iter().any(|kind| word.ends_with(kind))
    };
    words
        .map(|word| word.trim_end_matches('.'))
        .filter(is_path)
        .collect()
}

/// The targets of links to what is in the repository, by `](target)` and by `[label]: target`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let defined = defined(text).map(|(_, target)| target);
    inline_links(text).chain(defined).filter(|target| {
        let is_ours = target.starts_with(MANUAL) || target.starts_with(FILES);
        is_ours || !target.contains("://") && !target.starts_with("crate")
    })
}

/// The labels and targets of links by `[label]: target`.
fn defined(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
}

/// The targets of links by `](target)`.
fn inline_links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|behind| behind.split(')').next())
}

fn leads_somewhere(page: &str, text: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path: PathBuf = if let Some(path) = file.strip_prefix(FILES) {
        return is_packaged(path) && root().join(path).exists();
    } else if let Some(module) = file.strip_prefix(MANUAL) {
        root().join(format!("src/docs/{}.md", module.trim_end_matches('/')))
    } else {
        root().join(page).with_file_name(file)
    };
    if file.is_empty() {
        return has_heading(text, heading);
    }
    path.exists()
        && (heading.is_empty()
            || has_heading(&fs::read_to_string(path).unwrap_or_default(), heading))
}

/// Whether the package has this file, by the manifest.
fn is_packaged(path: &str) -> bool {
    let manifest = include_str!("../../../Cargo.toml");
    let include = manifest.lines().find(|line| line.starts_with("include = "));
    let mut entries = include.unwrap_or_default().split('"').skip(1).step_by(2);
    entries.any(|entry| path.starts_with(entry.trim_end_matches('*')))
}

#[test]
fn every_heading_of_the_manual_that_the_documentation_names_exists() {
    let sources = ["md", "rs"].map(|kind| files("src", kind)).concat();
    let named = || {
        sources
            .iter()
            .flat_map(|(file, text)| headings(text).map(move |to| (file, to)))
    };
    assert!(named().count() > 10, "no longer recognised");
    let absent = named().filter(|(_, (page, heading))| {
        let path = root().join(format!("src/docs/{page}.md"));
        !has_heading(&fs::read_to_string(path).unwrap_or_default(), heading)
    });
    none(absent.map(|(file, (page, heading))| format!("{file}: {page}#{heading} leads nowhere")));
}

/// The pages and headings of links such as `docs::operations#waiting`.
fn headings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_of_heading = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    text.split("docs::").skip(1).filter_map(move |behind| {
        let (page, rest) = behind.split_once('#')?;
        let end = rest
            .find(|letter: char| !is_of_heading(letter))
            .unwrap_or(rest.len());
        page.chars()
            .all(is_of_heading)
            .then_some((page, &rest[..end]))
    })
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let mut is_verbatim = false;
    text.lines().any(|line| {
        is_verbatim ^= line.starts_with("```");
        !is_verbatim && line.starts_with('#') && slug(line.trim_start_matches('#').trim()) == wanted
    })
}

/// As GitHub and rustdoc name a heading in a link.
fn slug(heading: &str) -> String {
    let letters = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    letters
        .map(|letter| {
            if letter == ' ' {
                '-'
            } else {
                letter.to_ascii_lowercase()
            }
        })
        .collect()
}
