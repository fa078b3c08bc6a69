//! `run --read`, `--write` and `--permits`: how many programs hold a lock at once.

use super::deployment::{Deployment, run, wait};
use crate::clients::SOON;
use crate::support::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[test]
fn as_many_programs_hold_a_lock_as_its_kind_allows() {
    let table: [(&[&str], usize, &[&str]); 4] = [
        (&["--read"], 2, &["--write"]),
        (&["--write"], 1, &["--read"]),
        (&["--write", "--fenced"], 1, &["--write"]),
        (&["--permits", "2"], 2, &["--permits", "2"]),
    ];
    for (options, count, refused) in table {
        let deployment = Deployment::of(3);
        let words = |options: &[&str], command: &str| -> Vec<String> {
            let words = [&["run", "-n", "--shell"], options, &["a", "--", command]].concat();
            words.into_iter().map(str::to_owned).collect()
        };
        let tool = |words: &[String]| {
            deployment.tool(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let mut holders = Vec::new();
        for number in 0..count {
            let started = deployment.servers[0]
                .directory()
                .join(format!("started-{number}"));
            holders.push(
                tool(&words(
                    options,
                    &format!("touch {}; exec sleep 99", started.display()),
                ))
                .spawn()
                .unwrap(),
            );
            assert!(
                eventually(SOON, || started.exists()),
                "{options:?}: {number}"
            );
        }
        let ended = run(tool(&words(refused, "echo never")));
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(75), ""),
            "{options:?}"
        );
        for holder in holders {
            kill(Pid::from_raw(holder.id().cast_signed()), Signal::SIGTERM).unwrap();
            assert_eq!(wait(holder).code, Some(143), "{options:?}");
        }
        let ended = run(tool(&words(refused, "echo free")));
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), "free\n"),
            "{options:?}: {}",
            ended.err
        );
    }
}

#[test]
fn a_reader_that_does_not_wait_is_refused_while_a_writer_waits() {
    let deployment = Deployment::of(3);
    let start = |side: &str| {
        let words = ["run", side, "a", "--", "sleep", "99"];
        deployment.tool(&words).spawn().unwrap()
    };
    let reads = || run(deployment.tool(&["run", "-n", "--read", "a", "--", "true"])).code;
    let reader = start("--read");
    assert!(eventually(SOON, || deployment.keys() == 3));
    assert_eq!(reads(), Some(0));
    let writer = start("--write");
    assert!(eventually(SOON, || deployment.keys() == 6));
    assert_eq!(reads(), Some(75));
    for waiting in [writer, reader] {
        kill(Pid::from_raw(waiting.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(wait(waiting).code, Some(143));
    }
    assert_eq!(reads(), Some(0));
}

#[test]
fn a_writer_has_a_number_on_demand() {
    let deployment = Deployment::of(1);
    let ended = run(deployment.tool(&[
        "run",
        "--write",
        "--fenced",
        "--shell",
        "a",
        "--",
        "echo $QUORUMLOCK_FENCE",
    ]));
    assert!(
        ended.out.trim().parse::<u64>().is_ok_and(|fence| fence > 0),
        "{}",
        ended.all()
    );
}

#[test]
fn kinds_that_are_no_lock_are_refused() {
    let deployment = Deployment::of(1);
    let table: [&[&str]; 7] = [
        &["--read", "--write"],
        &["--read", "--fenced"],
        &["--read", "--permits", "2"],
        &["--permits", "2", "--fenced"],
        &["--write", "--fair"],
        &["--permits", "0"],
        &["--permits", "257"],
    ];
    for options in table {
        let ended = run(deployment.tool(&[&["run"], options, &["a", "--", "true"]].concat()));
        assert_eq!(ended.code, Some(64), "{options:?}: {}", ended.all());
    }
}
