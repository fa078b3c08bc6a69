//! The command line of quorumlock: runs a program under a lock, and shows what the nodes hold.
//!
//! ```text
//!   main ── arguments ──► a command ──► Exit
//!              │             │
//!           settings      the library's public interface, and Connection for what no lock client asks
//! ```
//!
//! One file or folder for each command. [`settings`] puts environment, file and options together; [`deployment`] asks
//! all nodes at once; [`report`] writes text or JSON. A closed pipe ends the output, not the program.

#[cfg(not(unix))]
compile_error!("the command line needs processes and signals of Unix");

mod arguments;
mod bench;
mod break_lock;
mod complete;
mod connection;
mod deployment;
mod doctor;
mod exit;
mod help;
mod json;
mod list;
mod locks;
mod nodes;
mod printable;
mod protection;
mod report;
mod run;
mod scan;
mod settings;
mod show;
mod times;

use arguments::Arguments;
use exit::{Exit, Failure};
use std::ffi::OsStr;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let command = words.next();
    // The second half of `run` in the process of the child: not for users, so it is neither parsed nor listed.
    if command.as_deref() == Some(OsStr::new(run::EXEC_STEP)) {
        return run::exec_step(words).into();
    }
    let name = command.as_deref().and_then(OsStr::to_str).unwrap_or_default();
    let done = dispatch(name, Arguments::new(words));
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            report::complain(&failure.message);
            failure.exit.into()
        }
    }
}

fn dispatch(name: &str, arguments: Arguments) -> Result<Exit, Failure> {
    if arguments.wants_help() {
        return help::show(name);
    }
    match name {
        "run" => run::run(arguments),
        "nodes" => nodes::nodes(arguments),
        "show" => show::show(arguments),
        "ls" => list::list(arguments),
        "scan" => scan::scan(arguments),
        "break" => break_lock::break_lock(arguments),
        "doctor" => doctor::doctor(arguments),
        "bench" => bench::bench(arguments),
        "complete" => complete::complete(arguments),
        "manual" => help::manual(arguments),
        "-h" | "--help" | "help" => help::show(arguments.first().unwrap_or_default()),
        "-V" | "--version" | "version" => {
            report::line(format_args!("quorumlock {}", env!("CARGO_PKG_VERSION")));
            Ok(Exit::OK)
        }
        _ => Err(help::unknown(name)),
    }
}
