//! The probe: this program again, as a child that does nothing but lock and unlock, for a tool to
//! watch.
//!
//! `floor --probe library 1 1000 127.0.0.1:6379 …` does a thousand pairs on one thread. It is also
//! what to run under a profiler, with servers of one's own.

use crate::comparison::repeat;
use crate::floor::Floor;
use crate::library;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;

/// The first argument of a probe.
pub(crate) const MARK: &str = "--probe";

/// What the tool watches.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    Floor,
    Library,
}

/// What to run: a tool with its arguments, then this program as a probe. Each thread does so many
/// pairs.
pub(crate) fn command(
    tool: &[&str],
    subject: Subject,
    (threads, pairs): (usize, usize),
    addresses: &[SocketAddr],
) -> Command {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(tool[0]);
    command.args(&tool[1..]).arg(program);
    command.args([
        MARK,
        subject.name(),
        &threads.to_string(),
        &pairs.to_string(),
    ]);
    command.args(addresses.iter().map(ToString::to_string));
    command
}

/// Runs the order in the rest of the command line.
pub(crate) fn run(order: &[&str]) {
    let [subject, threads, pairs, addresses @ ..] = order else {
        panic!("--probe subject threads pairs address…")
    };
    let subject = Subject::named(subject).expect("library or floor");
    let addresses: Vec<SocketAddr> = addresses
        .iter()
        .map(|address| address.parse().expect("an address"))
        .collect();
    let (threads, pairs): (usize, usize) = (
        threads.parse().expect("a number"),
        pairs.parse().expect("a number"),
    );
    let client = library::client(&addresses);
    thread::scope(|scope| {
        for thread in 0..threads {
            let resource = format!("probe/{thread}");
            let client = &client;
            let addresses = &addresses;
            scope.spawn(move || match subject {
                Subject::Floor => {
                    let mut floor = Floor::connect(addresses, &resource, 1);
                    repeat(pairs, || floor.pair());
                }
                Subject::Library => {
                    let mutex = library::mutex(client, &resource);
                    repeat(pairs, || library::pair(&mutex));
                }
            });
        }
    });
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Subject::Floor => "floor",
            Subject::Library => "library",
        }
    }

    fn named(name: &str) -> Option<Subject> {
        [Subject::Floor, Subject::Library]
            .into_iter()
            .find(|subject| subject.name() == name)
    }
}
