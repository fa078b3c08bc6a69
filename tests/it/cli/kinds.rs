//! `run --read`, `--write` and `--permits`: how many programs hold a lock at once.

use super::*;

#[test]
fn as_many_programs_hold_a_lock_as_its_kind_allows() {
    for (options, count, refused) in [
        ("--read", 2, "--write"),
        ("--write", 1, "--read"),
        ("--write --fenced", 1, "--write"),
        ("--permits 2", 2, "--permits 2"),
    ] {
        let deployment = Deployment::of(3);
        let mut holders = Vec::new();
        for number in 0..count {
            let started = deployment.servers[0]
                .directory()
                .join(format!("started-{number}"));
            let mut tool = deployment.tool(&format!("run -n --shell {options} a --"));
            tool.arg(format!("touch {}; exec sleep 99", started.display()));
            holders.push(Running::start(tool));
            assert_soon!(started.exists(), "{options}: {number}");
        }
        let other = format!("run -n {refused} a -- echo run");
        assert_eq!(deployment.ends(75, &other).out, "", "{options}");
        holders.into_iter().for_each(Running::terminate);
        assert_eq!(deployment.succeeds(&other).out, "run\n", "{options}");
    }
}

#[test]
fn a_reader_that_does_not_wait_is_refused_while_a_writer_waits() {
    let deployment = Deployment::of(3);
    let reads = |code| drop(deployment.ends(code, "run -n --read a -- true"));
    let reader = deployment.hold("--read a");
    reads(0);
    let writer = deployment.hold("--write a");
    reads(75);
    writer.terminate();
    reader.terminate();
    reads(0);
}

#[test]
fn a_writer_has_a_number_on_demand() {
    let deployment = Deployment::of(1);
    let ended = deployment.run("run --write --fenced --shell a -- echo $QUORUMLOCK_FENCE");
    assert!(
        ended.out.trim().parse::<u64>().is_ok_and(|fence| fence > 0),
        "{}",
        ended.all()
    );
}

#[test]
fn kinds_that_are_no_lock_are_refused() {
    let deployment = Deployment::of(1);
    for options in [
        "--read --write",
        "--read --fenced",
        "--read --permits 2",
        "--permits 2 --fenced",
        "--write --fair",
        "--permits 0",
        "--permits 257",
    ] {
        let ended = deployment.run(&format!("run {options} a -- true"));
        assert_eq!(ended.code, Some(64), "{options}: {}", ended.all());
    }
}
