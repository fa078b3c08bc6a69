//! Small libraries in C that are loaded before the C library of a process, and change what a call
//! to it returns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable of the environment that names such a library.
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// Builds a library from this file below `tests/it`. It stays among what cargo builds.
pub(crate) fn library(source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(source);
    let name = source
        .file_stem()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let (mine, library) = (
        folder.join(format!("{name}.{}.so", std::process::id())),
        folder.join(format!("preload-{name}.so")),
    );
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&mine)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "a C compiler is needed: install cc"
    );
    // Whole or not at all, as another process may be starting with it.
    fs::rename(mine, &library).expect("a library that was built");
    library
}
