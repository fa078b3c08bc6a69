//! The command line of quorumlock: runs a program under a lock, and shows what the nodes hold.
//!
//! ```text
//!   main ── arguments ──► a command ──► Exit
//!              │             │
//!           settings      the library's public interface, and Connection for what no lock client asks
//! ```
//!
//! One file or folder for each command. [`settings`] puts environment, file and options together;
//! [`deployment`] asks all nodes at once; [`report`] writes text or JSON. A closed pipe ends the
//! output, not the program.

#[cfg(not(unix))]
compile_error!("the command line needs processes and signals of Unix");

mod arguments;
mod bench;
mod break_lock;
mod connection;
mod deployment;
mod doctor;
mod exit;
mod json;
mod list;
mod locks;
mod nodes;
mod printable;
mod protection;
mod report;
mod restart;
mod run;
mod scan;
mod settings;
mod show;
mod times;

use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use exit::{Exit, Failure};
use std::ffi::OsStr;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let command = words.next();
    // What this program is in the process of a child: not for users, so it is neither parsed nor
    // listed.
    match command.as_deref().and_then(OsStr::to_str) {
        Some(run::EXEC_STEP) => return run::exec_step(words).into(),
        Some(restart::SHELL_STEP) => return restart::shell_step(words.next()).into(),
        _ => {}
    }
    let done = match Arguments::try_parse() {
        Ok(arguments) => dispatch(arguments.command),
        // A help text, or the version.
        Err(asked) if !asked.use_stderr() => {
            report::page(&asked.to_string());
            Ok(exit::OK)
        }
        Err(error) => Err(arguments::refusal(&error)),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            report::complain(&failure.message);
            failure.exit.into()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => return run::run(*options),
        Command::Nodes(options) => return nodes::nodes(options),
        Command::Show(options) => return show::show(options),
        Command::Ls(options) => return list::list(options),
        Command::Scan(options) => return scan::scan(options),
        Command::Break(options) => return break_lock::break_lock(options),
        Command::Doctor(options) => return doctor::doctor(options),
        Command::Bench(options) => return bench::bench(options),
        Command::Complete { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "quorumlock", &mut script);
            report::page(&String::from_utf8_lossy(&script));
        }
        Command::Manual => report::page(include_str!("quorumlock.1")),
        Command::Version => report::page(&Arguments::command().render_version()),
    }
    Ok(exit::OK)
}
