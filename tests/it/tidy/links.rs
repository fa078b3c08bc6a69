//! What the pages of the repository point to exists: the files and headings that they link to, and the paths that they
//! name. And the page on operations has every setting.
//!
//! rustdoc checks the links to items of the crate.

use super::{name_below, none};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose paths a page may name in backticks.
const TOP: [&str; 6] = [".ci/", "benches/", "examples/", "fuzz/", "src/", "tests/"];

#[test]
fn every_link_and_path_of_a_page_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in [".github", "src/docs"] {
        pages.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "md"));
    assert!(pages.len() > 6, "pages are no longer found");
    none(pages.iter().flat_map(|page| findings(root, page, &fs::read_to_string(page).unwrap())).collect());
}

#[test]
fn every_setting_is_on_the_page_of_operations() {
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let page = read("src/docs/operations.md");
    let settings = ["src/api/builder/mod.rs", "src/api/mutex/mod.rs", "src/api/watchdog.rs"].map(read);
    let settings: Vec<&str> = settings.iter().flat_map(|text| setters(text)).collect();
    assert!(settings.len() > 12, "no longer recognised: {settings:?}");
    let absent = settings.iter().filter(|name| !page.contains(&format!("`{name}`")));
    none(absent.map(|name| format!("operations.md does not have {name}")).collect());
}

/// The names of the methods that change a value and give it back.
fn setters(text: &str) -> impl Iterator<Item = &str> {
    let public = text.lines().filter_map(|line| line.trim().strip_prefix("pub fn "));
    public.filter_map(|line| line.split_once("(mut self")).map(|(name, _)| name.split('<').next().unwrap_or(name))
}

fn findings(root: &Path, page: &Path, text: &str) -> Vec<String> {
    let name = name_below(root, page);
    let links = links(text).filter(|target| !leads_somewhere(page, text, target));
    let mut findings: Vec<String> = links.map(|target| format!("{name}: {target} leads nowhere")).collect();
    let paths = text.split('`').skip(1).step_by(2).filter(|path| TOP.iter().any(|top| path.starts_with(top)));
    let gone = paths.filter(|path| !path.contains([' ', '*', '<']) && !root.join(path).exists());
    findings.extend(gone.map(|path| format!("{name}: names {path}, which does not exist")));
    findings
}

/// The targets of links within the repository, by `](target)` and by `[label]: target`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = text.split("](").skip(1).filter_map(|behind| behind.split(')').next());
    let defined = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).map(|(_, target)| target);
    inline.chain(defined).filter(|target| !target.contains("://") && !target.starts_with("crate"))
}

fn leads_somewhere(page: &Path, text: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path: PathBuf = page.with_file_name(file);
    if file.is_empty() {
        return has_heading(text, heading);
    }
    path.exists() && (heading.is_empty() || has_heading(&fs::read_to_string(path).unwrap_or_default(), heading))
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
    let letters = heading.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    letters.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = |text: &str| findings(root, &root.join("src/docs/made-up.md"), text).join("; ");
    let sound = "# A `b` heading, so!\n[a](#a-b-heading-so) [b](rules.md#2-the-attempt) [c](https://x.y) `src/lib.rs` \
                 `tests/it` [d](../../README.md) [e](crate::Mutex)\n\n[f]: rules.md";
    assert_eq!(found(sound), "");
    for text in
        ["[a](#heading)", "[a](absent.md)", "[a](rules.md#absent)", "[a]\n\n[a]: absent.md", "see `src/absent.rs`"]
    {
        assert!(found(text).contains("made-up.md: "), "{text}");
    }
}
