//! Small libraries in C that are loaded before the C library of a process, and change what a call
//! to it returns.

use crate::prelude::*;

/// The variable of the environment that names such a library.
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// Builds a library from this file below `tests/it`. It stays among what cargo builds, unless the
/// path of that has a blank or a colon, which separate the libraries in the variable.
pub(crate) fn library(source: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder(built);
    let source = root().join("tests/it").join(source);
    let name = source
        .file_stem()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let (mine, library) = (
        folder.join(format!("{name}.{}.so", std::process::id())),
        folder.join(format!("preload-{name}.so")),
    );
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&mine)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "a C compiler is needed: install cc"
    );
    // Whole or not at all, as another process may be starting with it.
    fs::rename(mine, &library).expect("a library that was built");
    library
}

/// Where a library is that processes are told to load: this folder, or one of the system's for
/// temporary files.
fn folder(built: &Path) -> PathBuf {
    if !built.to_string_lossy().contains([' ', ':']) {
        return built.to_owned();
    }
    let folder = std::env::temp_dir().join("quorumlock-preload");
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

#[test]
fn a_library_has_a_path_that_the_variable_can_name() {
    let plain = Path::new("/target/tmp");
    assert_eq!(folder(plain), plain);
    for split in ["/a target/tmp", "/target:2/tmp"] {
        let folder = folder(Path::new(split));
        assert!(!folder.to_string_lossy().contains([' ', ':']), "{folder:?}");
    }
}
