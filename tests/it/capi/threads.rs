//! The library and its programs under ThreadSanitizer: every access of every thread, on both sides
//! of the interface.
//!
//! A race detector that does not see the library's own synchronisation finds races where there are
//! none. So the library is built for it, Rust's own included. That takes a nightly compiler with
//! its source (`rustup component add rust-src --toolchain nightly`) and minutes, so it is done when
//! it is asked for: `cargo test --all-features --test it capi::threads -- --ignored`.

use super::library::{Running, STRICT, has_sanitizer, library, root};
use crate::support::server::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SANITIZER: &str = "-fsanitize=thread";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Rust's own library is built too.
const LIMIT: Duration = Duration::from_secs(550);

fn build() -> PathBuf {
    let target = library().with_file_name("thread-sanitizer");
    let mut command = Command::new("cargo");
    command.args([
        "+nightly",
        "rustc",
        "-Zbuild-std",
        "--release",
        "--lib",
        "--features",
        "capi",
    ]);
    command
        .args(["--crate-type", "cdylib", "--target", TARGET, "--target-dir"])
        .arg(&target);
    command
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .current_dir(root())
        .stdin(Stdio::null());
    // This process runs under a stable cargo, which makes its children use the same toolchain.
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    Running::start(&mut command).end(LIMIT).success();
    target.join(TARGET).join("release")
}

fn compile(folder: &Path, source: &str) -> PathBuf {
    // What the compiler of Rust calls, and an older runtime of the C compiler has under other
    // names.
    let names = folder.join("names.c");
    let functions = "#include <string.h>\n\
        void *__tsan_memset(void *to, int byte, size_t length) { return memset(to, byte, length); }\n\
        void *__tsan_memcpy(void *to, const void *from, size_t length) { return memcpy(to, from, length); }\n\
        void *__tsan_memmove(void *to, const void *from, size_t length) { return memmove(to, from, length); }\n";
    std::fs::write(&names, functions).unwrap();
    let program = folder.join("program");
    let mut command = Command::new("cc");
    command
        .args([
            SANITIZER,
            "-O1",
            "-fno-builtin",
            "-rdynamic",
            "-std=c99",
            "-pthread",
        ])
        .args(STRICT);
    command
        .arg("-I")
        .arg(root().join("src/ffi"))
        .arg(root().join(source))
        .arg(names)
        .arg("-o")
        .arg(&program);
    command
        .arg(format!("-L{0}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()));
    Running::start(command.arg("-lquorumlock").stdin(Stdio::null()))
        .end(LIMIT)
        .success();
    program
}

#[test]
#[ignore = "takes a nightly compiler with its source, and minutes"]
fn no_thread_races_another() {
    if !has_sanitizer(SANITIZER) {
        return;
    }
    let folder = build();
    for (source, arguments) in [
        ("tests/it/capi/misuse.c", &[][..]),
        ("examples/c/workers.c", &["8", "500"]),
    ] {
        let servers = Server::several(3).unwrap();
        let mut command = Command::new(compile(&folder, source));
        command
            .args(arguments)
            .args(servers.iter().map(Server::url))
            .stdin(Stdio::null());
        let ending = Running::start(&mut command).end(LIMIT);
        assert_eq!(ending.errors, "", "{source}");
        ending.success();
    }
}
