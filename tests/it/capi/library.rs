//! Builds the library as a C program links it, and compiles and runs such programs.
//!
//! What is missing on the machine is named, and fails the test: a compiler, an interpreter,
//! valgrind. `tests/run` installs them where it can. Sanitizers are a part of the compiler that not
//! each has; [`has_sanitizer`] asks.

use crate::prelude::*;
use crate::readme::blocks;
use crate::support::{program, program::BUILD_LIMIT, program::Ended};

/// Every warning is an error.
pub(crate) const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Ended {
    program::run(program::program(program).args(arguments))
}

/// Cargo, with these words.
pub(crate) fn cargo(words: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = program::program(cargo);
    command.args(words.split(' '));
    command
}

/// Runs a program, which may build something, to an end without a failure. Returns what it printed.
#[track_caller]
pub(crate) fn finishes(command: &mut Command) -> String {
    Running::start(command).end(BUILD_LIMIT).exits(0).out
}

/// The folder with `libquorumlock.so` and `libquorumlock.a`, built the first time. Where servers
/// listen by TLS, they are those of [`library_with_tls`].
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if std::env::var_os(TLS_VARIABLE).is_some() {
        return library_with_tls();
    }
    BUILT.get_or_init(|| build(&build_command(), "capi"))
}

/// The same with TLS, and the system's root certificates.
pub(crate) fn library_with_tls() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let command = || build_command().replace(" capi ", " capi,tls-native-roots ");
    BUILT.get_or_init(|| build(&command(), "capi-tls"))
}

/// The command that README.md prints.
pub(crate) fn build_command() -> String {
    let command = blocks("README.md", "## From C", "sh").remove(0);
    command.trim_end().to_owned()
}

/// Runs this command, with another folder for `target`.
fn build(command: &str, folder: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(folder);
    // Also as a crate, for programs in Rust. Line tables are for the test that counts instructions
    // by file.
    let mut command = cargo(command.strip_prefix("cargo ").unwrap());
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    command.env("CARGO_TARGET_DIR", &target);
    finishes(command.args(["--crate-type", "lib"]).current_dir(root()));
    target.join("release")
}

/// Compiles a program against the header and the shared library, and returns its path.
#[track_caller]
pub(crate) fn compile(name: &str, source: impl AsRef<Path>, flags: &[&str]) -> PathBuf {
    compile_against(library(), name, source, flags)
}

/// Compiles a program against the header and the shared library of this folder.
#[track_caller]
pub(crate) fn compile_against(
    library: &Path,
    name: &str,
    source: impl AsRef<Path>,
    flags: &[&str],
) -> PathBuf {
    let shared = [
        format!("-L{}", library.display()),
        format!("-Wl,-rpath,{}", library.display()),
    ];
    let flags = flags
        .iter()
        .copied()
        .chain(shared.iter().map(String::as_str))
        .chain(["-lquorumlock"]);
    compile_with(name, source, flags)
}

/// Compiles a program against the header, and whatever else is named.
#[track_caller]
pub(crate) fn compile_with<'f>(
    name: &str,
    source: impl AsRef<Path>,
    flags: impl IntoIterator<Item = &'f str>,
) -> PathBuf {
    let source = root().join(source);
    let program = in_folder(name);
    let is_cpp = source.extension().is_some_and(|kind| kind == "cpp");
    let mut command = program::program(if is_cpp { "c++" } else { "cc" });
    command.args(STRICT).arg("-I").arg(root().join("src/ffi"));
    command.arg(&source).arg("-o").arg(&program);
    finishes(command.arg("-pthread").args(flags));
    program
}

/// The path of a program with this name.
pub(crate) fn in_folder(name: &str) -> PathBuf {
    let folder = library().with_file_name("programs");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Compiles a program in Rust, optimised, against the same build of the library, and returns its
/// path.
#[track_caller]
pub(crate) fn compile_rust(name: &str, source: &str) -> PathBuf {
    let program = in_folder(name);
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = program::program(compiler);
    command.args(["--edition", "2024", "-O", "-o"]);
    command.arg(&program).arg(root().join(source));
    let built = library().join("libquorumlock.rlib");
    let built = format!("quorumlock={}", built.display());
    let needed = format!("dependency={}", library().join("deps").display());
    finishes(command.args(["--extern", &built, "-L", &needed]));
    program
}

/// Whether the C compiler has this sanitizer. When it has not, that is printed.
#[allow(clippy::print_stdout)]
pub(crate) fn has_sanitizer(flag: &str) -> bool {
    // Tests ask at once, some in processes of their own: a program that a compiler still writes
    // cannot be started.
    let folder = new_folder("empty");
    let source = folder.join("empty.c");
    let program = folder.join("empty");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let arguments = [
        OsStr::new(flag),
        source.as_ref(),
        "-o".as_ref(),
        program.as_ref(),
    ];
    let compiles = run("cc", arguments).code == Some(0);
    let works = compiles && run(&program, [""; 0]).code == Some(0);
    fs::remove_dir_all(folder).unwrap();
    if !works {
        println!("LEFT OUT: the C compiler has no {flag}");
    }
    works
}
