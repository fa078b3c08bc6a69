//! `run`: a command under a lock.
//!
//! 1. Signals are blocked, before any thread is there: [`signals`].
//! 2. The locks are taken, and a signal ends the wait: [`acquire`].
//! 3. The process of the command is started and waits at a gate: [`group`], [`exec_step`].
//! 4. The gate opens unless a signal has arrived or the lock was lost: nothing starts afterwards.
//! 5. Until nothing of its group is left, signals go to it, and it ends before the lease does:
//!    [`supervise`].
//! 6. The locks are released, or left for `--min-hold` if the command was started, and the exit
//!    code reports what happened: [`Held`], [`not_started`].
//!
//! None of these steps waits for a reader of what this program writes: [`output`].

mod acquire;
mod descriptor;
mod events;
mod exec_step;
mod group;
mod not_started;
mod options;
mod output;
mod signals;
#[cfg(target_os = "linux")]
mod strays;
mod supervise;
mod suspend;

pub(crate) use exec_step::{EXEC_STEP, exec_step};
pub(crate) use options::Options;

use crate::exit::{self, Exit, Failure};
use crate::json::object;
use crate::report;
use acquire::{Acquired, Held, Job, arrived};
use events::{Events, boot_time};
use group::Group;
use quorumlock::MutexGuard;
use quorumlock::kind::Any;
use signals::Signals;
use std::io::{PipeReader, Write, pipe};
use std::os::fd::AsFd;
use std::sync::Arc;
use supervise::{LOST, Outcome, Supervisor, is_readable};

pub(crate) fn run(mut options: Options) -> Result<Exit, Failure> {
    options.sort()?;
    let json_events = options.json_events.map(events::file).transpose()?;
    let signals = signals::block().map_err(Failure::system("block signals"))?;
    let events = Arc::new(Events::open(&options, json_events)?);
    let exit = with_lock(&options, &signals, &events).unwrap_or_else(|failure| {
        events.complain(&failure.message);
        failure.exit
    });
    events.drain();
    Ok(exit)
}

/// Takes the locks, and runs the command.
fn with_lock(options: &Options, signals: &Signals, events: &Arc<Events>) -> Result<Exit, Failure> {
    let deployment = options.settings.read()?;
    let (ttl, grace) = options.lock.times(&deployment)?;
    let redlock = deployment
        .builder
        .clone()
        .observer(events.observer())
        .build()?;
    let job = Job {
        options,
        deployment: &deployment,
        redlock: &redlock,
        signals,
        events,
        ttl,
        grace,
    };
    match job.acquire()? {
        Acquired::All(held) => under_lock(&job, held),
        Acquired::HeldElsewhere(name) => {
            events.say(&format!("{name:?} is held by another client"));
            Ok(options.held_exit_code)
        }
        Acquired::Stopped(signal) => Ok(exit::signal(signal as i32)),
    }
}

/// Runs the command, and releases the locks.
fn under_lock(job: &Job<'_>, held: Held) -> Result<Exit, Failure> {
    let Job {
        options,
        signals,
        events,
        ..
    } = *job;
    let loss = loss_pipe(&held)?;
    let (not_started, inherited) = not_started::pipe().map_err(Failure::system("make a pipe"))?;
    let variables = variables(options, &held);
    let group = Group::start(options, variables, inherited.as_fd())?;
    drop(inherited);
    // The last look: what has arrived by now starts nothing.
    let looked = boot_time();
    if let Some(signal) = arrived(signals) {
        group.abandon();
        return Ok(exit::signal(signal as i32));
    }
    if is_readable(&loss) || held.remaining().is_zero() {
        group.abandon();
        events.say("the lock was lost before the command was started");
        return Ok(exit::LOST);
    }
    group.open_gate();
    let supervisor = Supervisor {
        job,
        group,
        held: &held,
        not_started: &not_started,
        looked,
        loss: &loss,
    };
    let Outcome {
        exit,
        was_started,
        loss,
    } = supervisor.run();
    // A loss does not matter to what has not run.
    if !was_started {
        return Ok(exit);
    }
    let about = object! {
        "exit": exit,
        "lost": loss.is_some(),
        "left_us": held.remaining().as_micros(),
    };
    events.report("ended", about, "the command has ended");
    let is_late = held.release(events);
    Ok(match loss.or(is_late.then_some(LOST)) {
        Some(message) => {
            events.say(message);
            exit::LOST
        }
        None => exit,
    })
}

/// A pipe that becomes readable when one of the locks is lost.
fn loss_pipe(held: &Held) -> Result<PipeReader, Failure> {
    let (reader, writer) = pipe().map_err(Failure::system("make a pipe"))?;
    let writer = Arc::new(writer);
    for guard in &held.guards {
        let writer = Arc::clone(&writer);
        guard.on_lost(move || drop((&*writer).write_all(b"!")))?;
    }
    // The guards keep the other end open.
    Ok(reader)
}

/// What the command finds in its environment: of several locks one line each. Never a token.
fn variables(options: &Options, held: &Held) -> Vec<(&'static str, String)> {
    let expires = report::since_1970()
        .saturating_add(held.remaining())
        .as_millis();
    let mut variables = vec![
        ("QUORUMLOCK_NAME", options.names.join("\n")),
        ("QUORUMLOCK_EXPIRES_UNIX_MS", expires.to_string()),
    ];
    if options.lock.fenced {
        let fences = held
            .guards
            .iter()
            .filter_map(MutexGuard::<Any>::fence)
            .map(|fence| fence.to_string());
        variables.push(("QUORUMLOCK_FENCE", fences.collect::<Vec<_>>().join("\n")));
    }
    variables
}
