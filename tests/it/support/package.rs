//! The files of this package.

use std::fs;
use std::path::Path;

/// The folder of this package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of this package.
#[track_caller]
pub(crate) fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The code blocks of this language in a page, as they are printed.
pub(crate) fn blocks(text: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let parts = text.split(&begin).skip(1);
    let block = |part: &str| part.split("```").next().unwrap().to_owned();
    parts.map(block).collect()
}
