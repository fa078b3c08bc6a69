//! Builds the library as a C program links it, and compiles and runs such programs.
//!
//! What is missing on the machine is named, and fails the test: a compiler, an interpreter,
//! valgrind. `tests/run` installs them where it can. Sanitizers are a part of the compiler that not
//! each has; [`has_sanitizer`] asks.

use crate::prelude::*;
use crate::support::server::TLS_VARIABLE;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;

/// How long the library may take to be built, on a machine with much to do.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(500);
/// How long a compiler or a program may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);
/// Every warning is an error.
pub(crate) const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

/// What a program did.
pub(crate) struct Ending {
    pub(crate) status: ExitStatus,
    /// Output and errors.
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ending {
    /// What it printed. Fails when the program did.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert!(
            self.status.success(),
            "{}\n{}{}",
            self.status,
            self.output,
            self.errors
        );
        self.output
    }
}

/// A program that runs, and is ended when it takes too long or no test waits for it.
pub(crate) struct Running {
    pub(crate) child: Child,
    pipes: [Pipe; 2],
}

/// What a program has written so far.
struct Pipe {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Running {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = match command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
        {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("{name} is missing: {}", how_to_install(&name))
            }
            child => child.unwrap_or_else(|error| panic!("{name}: {error}")),
        };
        let pipes = [
            Pipe::read(child.stdout.take()),
            Pipe::read(child.stderr.take()),
        ];
        Running { child, pipes }
    }

    /// Waits until the program has printed this.
    #[track_caller]
    pub(crate) fn heard(&self, words: &str) {
        let said = || self.pipes[0].text.lock().unwrap().contains(words);
        assert!(
            eventually(LIMIT, said),
            "{}",
            self.pipes[1].text.lock().unwrap()
        );
    }

    #[track_caller]
    pub(crate) fn end(mut self, limit: Duration) -> Ending {
        let deadline = Instant::now() + limit;
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
            status = self.child.try_wait().expect("it is a child of ours");
        }
        let _ = self.child.kill();
        let [output, errors] = self.pipes.each_mut().map(Pipe::end);
        let status =
            status.unwrap_or_else(|| panic!("it did not end within {limit:?}\n{output}{errors}"));
        Ending {
            status,
            output,
            errors,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pipe {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Pipe {
        let text = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&text);
        let mut pipe = pipe.expect("a pipe");
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut bytes) {
                written
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Pipe {
            text,
            reader: Some(reader),
        }
    }

    /// All of it.
    fn end(&mut self) -> String {
        self.reader.take().expect("it ends once").join().unwrap();
        std::mem::take(&mut self.text.lock().unwrap())
    }
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Ending {
    Running::start(Command::new(program).args(arguments).stdin(Stdio::null())).end(LIMIT)
}

/// Cargo, with these words.
pub(crate) fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split(' '));
    command
}

/// Runs a program, which may build something, to an end without a failure. Returns what it printed.
#[track_caller]
pub(crate) fn finishes(command: &mut Command) -> String {
    let running = Running::start(command.stdin(Stdio::null()));
    running.end(BUILD_LIMIT).success()
}

/// The folder with `libquorumlock.so` and `libquorumlock.a`, built the first time. Where servers
/// listen by TLS, they are those of [`library_with_tls`].
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if std::env::var_os(TLS_VARIABLE).is_some() {
        return library_with_tls();
    }
    BUILT.get_or_init(|| build("capi", "capi"))
}

/// The same with TLS, and the system's root certificates.
pub(crate) fn library_with_tls() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("capi,tls-native-roots", "capi-tls"))
}

fn build(features: &str, folder: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(folder);
    // As in src/docs/operations.md; also as a crate, for programs in Rust. Line tables are for the
    // test that counts instructions by file.
    let mut command = cargo("rustc --release --lib --crate-type cdylib,staticlib,lib --features");
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    command.args([features, "--target-dir"]).arg(&target);
    finishes(command.current_dir(root()));
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
    let programs = library().with_file_name("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let program = programs.join(name);
    let compiler = if source.extension().is_some_and(|kind| kind == "cpp") {
        "c++"
    } else {
        "cc"
    };
    let mut command = Command::new(compiler);
    command
        .arg("-I")
        .arg(root().join("src/ffi"))
        .args(STRICT)
        .arg(&source)
        .arg("-o")
        .arg(&program);
    finishes(command.arg("-pthread").args(flags));
    program
}

/// Compiles a program in Rust, optimised, against the same build of the library, and returns its
/// path.
#[track_caller]
pub(crate) fn compile_rust(name: &str, source: &str) -> PathBuf {
    let programs = library().with_file_name("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let program = programs.join(name);
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command
        .args(["--edition", "2024", "-O", "-o"])
        .arg(&program)
        .arg(root().join(source));
    command.arg("--extern").arg(format!(
        "quorumlock={}",
        library().join("libquorumlock.rlib").display()
    ));
    command
        .arg("-L")
        .arg(format!("dependency={}", library().join("deps").display()));
    finishes(&mut command);
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
    let compiles = run("cc", arguments).status.success();
    let works = compiles && run(&program, [""; 0]).status.success();
    fs::remove_dir_all(folder).unwrap();
    if !works {
        println!("LEFT OUT: the C compiler has no {flag}");
    }
    works
}

/// The folder of this package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn how_to_install(program: &str) -> String {
    let package = match program {
        "cc" => "gcc",
        "c++" => "g++",
        "nm" | "strip" => "binutils",
        other => other,
    };
    format!("on Debian and Ubuntu, `apt-get install {package}`")
}
