//! Facts about our own process, for tests that count what remains afterwards. Linux only: it reads
//! `/proc`.
//!
//! Tests run side by side in one process, so a bare count of threads or descriptors shows nothing
//! about one test. There are two ways to a count that means something: ask for what only this test
//! has (the connections to its own servers, threads of a certain name), or run the test [`alone`]
//! in a process of its own.

use std::any::type_name;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the process that [`alone`] starts.
const ALONE_VARIABLE: &str = "QUORUMLOCK_TEST_ALONE";

/// A thread of this process. The kernel keeps the first 15 bytes of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) name: String,
}

impl Thread {
    /// How long it has run, on any processor.
    pub(crate) fn processor_time(&self) -> Duration {
        let times = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.id))
            .unwrap_or_default();
        let running = times.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(running.unwrap_or_default())
    }
}

/// How long the threads of this process have run, those that have ended too, to a hundredth of a
/// second.
pub(crate) fn processor_time() -> Duration {
    processor_time_of("self")
}

/// The same of another process.
pub(crate) fn processor_time_of(process: impl Display) -> Duration {
    let text =
        fs::read_to_string(format!("/proc/{process}/stat")).expect("what the system counts for it");
    // Behind the name, which may contain blanks: the 12th and 13th field.
    let fields = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2);
    fields
        .map(|ticks| Duration::from_millis(10) * ticks.parse::<u32>().expect("a number"))
        .sum()
}

/// A TCP socket that this process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) descriptor: u32,
    pub(crate) remote_port: u16,
    pub(crate) state: SocketState,
}

/// The states of the kernel that a leak test distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketState {
    /// The other side has closed and we have not.
    CloseWait,
    Connecting,
    Established,
    Listening,
    Other,
}

/// A new folder for files of a test, whose name begins so. What an ended process with the same id
/// has left there is removed.
pub(crate) fn new_folder(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{name}-{}-{number}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).expect("an old folder is removed");
    }
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// Runs a program that must succeed, and returns what it prints. Its errors are shown as the test's
/// own.
#[allow(clippy::print_stderr)]
#[track_caller]
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}:\n{out}{errors}");
    eprint!("{errors}");
    out
}

/// Runs the body in a process of its own, where nothing else runs: `alone(|| …)`.
///
/// The test that calls it is the function that has the body in it. The test binary is started again
/// for this one test and there, on the test's thread, the body runs. A failure there is shown and
/// fails the test here.
pub(crate) fn alone(body: impl FnOnce()) {
    alone_with(&[], body);
}

/// [`alone`], in an environment with these variables.
#[allow(clippy::print_stdout)]
pub(crate) fn alone_with<B: FnOnce()>(variables: &[(&str, &Path)], body: B) {
    // `it::leaks::no_thread_stays::{{closure}}`, whatever is behind the name of the test.
    let path = type_name::<B>();
    let path = path.split_once("::{{").map_or(path, |(path, _)| path);
    let test = path.split_once("::").map_or("", |(_, test)| test);
    if std::env::var_os(ALONE_VARIABLE).is_some_and(|name| name == test) {
        return body();
    }
    let binary = std::env::current_exe().expect("the path of this test binary");
    let mut command = Command::new(binary);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE_VARIABLE, test);
    command.envs(variables.iter().copied());
    let text = succeeds(&mut command);
    assert!(
        text.contains("1 passed"),
        "{test} is not the name of this test:\n{text}"
    );
    // What it measures is shown as in a test that is not alone.
    print!("{text}");
}

/// The threads of this process.
///
/// A thread has its parent's name for a moment after its birth, and is still listed for a moment
/// after it was joined: ask [`eventually`].
pub(crate) fn threads() -> Vec<Thread> {
    let ids = numbers_in("/proc/self/task");
    // A thread that ends while we look has no name any more, and is not there any more.
    let name = |id| fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok();
    ids.into_iter()
        .filter_map(|id| {
            Some(Thread {
                id,
                name: name(id)?.trim_end().to_owned(),
            })
        })
        .collect()
}

/// The threads whose name begins so.
pub(crate) fn threads_named(prefix: &str) -> Vec<Thread> {
    threads()
        .into_iter()
        .filter(|thread| thread.name.starts_with(prefix))
        .collect()
}

/// The open descriptors of this process and what they lead to, such as `socket:[123]`.
pub(crate) fn descriptors() -> HashMap<u32, String> {
    let target = |number| fs::read_link(format!("/proc/self/fd/{number}")).ok();
    let numbers = numbers_in("/proc/self/fd").into_iter();
    // The descriptor that lists this directory is closed by now and drops out.
    numbers
        .filter_map(|number| Some((number, target(number)?.to_string_lossy().into_owned())))
        .collect()
}

/// The TCP sockets of this process.
pub(crate) fn sockets() -> Vec<Socket> {
    let descriptors = descriptors();
    let by_inode: HashMap<&str, u32> = descriptors
        .iter()
        .filter_map(|(&number, target)| {
            Some((target.strip_prefix("socket:[")?.strip_suffix(']')?, number))
        })
        .collect();
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let mut sockets: Vec<Socket> = lines.filter_map(|line| socket(line, &by_inode)).collect();
    // The kernel lists a socket again when others come and go while it is read.
    sockets.sort_by_key(|socket| socket.descriptor);
    sockets.dedup_by_key(|socket| socket.descriptor);
    sockets
}

/// The connections of this process that lead to one of these ports, whatever their state.
pub(crate) fn connections_to(ports: &[u16]) -> Vec<Socket> {
    let mut sockets = sockets();
    sockets.retain(|socket| {
        socket.state != SocketState::Listening && ports.contains(&socket.remote_port)
    });
    sockets
}

/// Whether a process with this id exists, as a zombie at least.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Looks until the condition holds; false when it does not in time. For what happens soon, but not
/// at once.
pub(crate) fn eventually(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Looks for so long whether the condition always holds.
pub(crate) fn stays_for(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    !eventually(time, || !condition())
}

/// One line of the kernel's table: `sl local remote state queues timer retransmits uid timeout
/// inode …`.
fn socket(line: &str, by_inode: &HashMap<&str, u32>) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let port = |field: usize| u16::from_str_radix(fields.get(field)?.rsplit_once(':')?.1, 16).ok();
    let state = match *fields.get(3)? {
        "01" => SocketState::Established,
        "02" => SocketState::Connecting,
        "08" => SocketState::CloseWait,
        "0A" => SocketState::Listening,
        _ => SocketState::Other,
    };
    let descriptor = *by_inode.get(fields.get(9)?)?;
    Some(Socket {
        descriptor,
        remote_port: port(2)?,
        state,
    })
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).expect("/proc is there").flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}
