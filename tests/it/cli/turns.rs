//! `run --fair`: programs take turns.

use super::deployment::{Deployment, run, wait};
use crate::clients::SOON;
use crate::support::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

const NAMES: [&str; 3] = ["first", "second", "third"];

#[test]
fn commands_run_in_the_order_in_which_their_programs_came() {
    for kind in [
        &["--fair"][..],
        &["--fair", "--fenced", "--place-lease", "2s"],
    ] {
        let deployment = Deployment::of(3);
        let order = deployment.servers[0].directory().join("order");
        let start = |command: &str| {
            let words = [&["run"], kind, &["--shell", "a", "--", command]].concat();
            deployment.tool(&words).spawn().unwrap()
        };
        let shows =
            |text: &str| eventually(SOON, || run(deployment.tool(&["ls"])).out.contains(text));
        let holder = start("exec sleep 99");
        assert!(shows(" held "), "{kind:?}");
        let mut waiters = Vec::new();
        for name in NAMES {
            waiters.push(start(&format!(
                "echo \"{name} $QUORUMLOCK_FENCE\" >> {}",
                order.display()
            )));
            let count = waiters.len();
            assert!(
                shows(&format!("…, {count} wait")),
                "{kind:?}: {}",
                run(deployment.tool(&["ls"])).all()
            );
        }
        kill(Pid::from_raw(holder.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(wait(holder).code, Some(143));
        assert!(
            waiters
                .into_iter()
                .all(|waiter| wait(waiter).code == Some(0)),
            "{kind:?}"
        );
        let lines = fs::read_to_string(&order).unwrap();
        let (names, fences): (Vec<&str>, Vec<&str>) = lines
            .lines()
            .filter_map(|line| line.split_once(' '))
            .unzip();
        assert_eq!(names, NAMES, "{kind:?}");
        let has_fences = fences.iter().all(|fence| fence.parse::<u64>().is_ok());
        assert!(
            has_fences == kind.contains(&"--fenced") && fences.is_sorted(),
            "{kind:?}: {fences:?}"
        );
    }
}
