//! The header: C and C++ of every age take it, and the library offers exactly what it declares.

use super::*;

#[test]
fn the_header_compiles_as_every_language_that_may_include_it() {
    for (language, compiler, standards) in [
        ("c", "cc", &["c99", "c11", "c17"][..]),
        ("c++", "c++", &["c++11", "c++17", "c++20"]),
    ] {
        for standard in standards {
            let mut command = program::program(compiler);
            command.args([&format!("-std={standard}"), "-x", language, "-fsyntax-only"]);
            command
                .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-include"])
                .arg(header())
                .arg("/dev/null");
            finishes(&mut command);
        }
    }
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let mut nm = program::program("nm");
    nm.args(["-D", "--defined-only", "--format=posix"]);
    let listed = finishes(nm.arg(library().join("libquorumlock.so")));
    let exported: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let text = std::fs::read_to_string(header()).unwrap();
    let declared: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '*', '#']) && !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    assert!(declared.len() > 70, "{declared:?}");
    assert_eq!(exported, declared);
}

fn header() -> PathBuf {
    root().join("src/ffi/quorumlock.h")
}
