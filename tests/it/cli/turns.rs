//! `run --fair`: programs take turns.

use super::*;

const NAMES: [&str; 3] = ["first", "second", "third"];

#[test]
fn commands_run_in_the_order_in_which_their_programs_came() {
    for kind in ["--fair", "--fair --fenced --place-lease 2s"] {
        let deployment = Deployment::of(3);
        let order = deployment.servers[0].directory().join("order");
        let start = |command: &str| {
            let mut tool = deployment.tool(&format!("run {kind} --shell a --"));
            tool.arg(command);
            Running::start(tool)
        };
        let shows = |text: &str| {
            let is_shown = || deployment.run("ls").out.contains(text);
            let all = || deployment.run("ls").all();
            assert_soon!(is_shown(), "{kind}: {}", all());
        };
        let holder = start("exec sleep 99");
        shows(" held ");
        let mut waiters = Vec::new();
        for name in NAMES {
            let path = order.display();
            waiters.push(start(&format!(
                "echo \"{name} $QUORUMLOCK_FENCE\" >> {path}"
            )));
            shows(&format!("…, {} wait", waiters.len()));
        }
        holder.terminate();
        for waiter in waiters {
            waiter.wait().exits(0);
        }
        let lines = fs::read_to_string(&order).unwrap();
        let (names, fences): (Vec<&str>, Vec<&str>) = lines
            .lines()
            .filter_map(|line| line.split_once(' '))
            .unzip();
        assert_eq!(names, NAMES, "{kind}");
        let has_fences = fences.iter().all(|fence| fence.parse::<u64>().is_ok());
        assert!(
            has_fences == kind.contains("--fenced") && fences.is_sorted(),
            "{kind}: {fences:?}"
        );
    }
}
