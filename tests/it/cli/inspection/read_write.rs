//! Read-write locks: how they are listed, shown and broken, with and without a number.

use super::super::deployment::{Deployment, run};
use super::{OURS, set};
use crate::clients::{LONG_TTL, SOON, client};
use crate::support::process::eventually;
use crate::support::server::Answer;
use crate::support::sides::Sides;
use quorumlock::Redlock;

#[test]
fn readers_and_writers_are_listed_and_broken() {
    let deployment = Deployment::of(3);
    let clients: Vec<Redlock> = (0..2).map(|_| client(&deployment.servers)).collect();
    let of = |client: &Redlock| Sides::of(client, "a").ttl(LONG_TTL);
    let listed = |kind: &str| {
        let is_listed = || {
            let out = run(deployment.tool(&["ls", "a"])).out;
            let line = out.lines().nth(1).unwrap_or_default().to_owned();
            let holder = line
                .split_whitespace()
                .last()
                .unwrap_or_default()
                .to_owned();
            let is_whole =
                line.starts_with("a ") && line.contains(" held ") && line.contains(" 3/3 ");
            is_whole && line.contains(kind) && holder.ends_with('…') && holder.chars().count() == 7
        };
        assert!(
            eventually(SOON, is_listed),
            "{kind}: {}",
            run(deployment.tool(&["ls"])).all()
        );
        let scanned = run(deployment.tool(&["scan"]));
        assert_eq!((scanned.code, scanned.all().as_str()), (Some(0), ""));
    };
    let readers: Vec<_> = clients
        .iter()
        .map(|client| of(client).read.lock().unwrap())
        .collect();
    listed(" 2 readers ");
    let shown = run(deployment.tool(&["show", "a"]));
    assert!(
        shown
            .out
            .starts_with("read-write lock \"a\": held, 2 readers, by "),
        "{}",
        shown.all()
    );
    assert_eq!(
        shown.out.matches(": 2 readers, the last one ").count(),
        3,
        "{}",
        shown.all()
    );
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert!(
        broken.code == Some(0) && broken.out.contains("the holder may believe"),
        "{}",
        broken.all()
    );
    assert_eq!(deployment.keys(), 0);
    let writer = of(&clients[0]).write.lock().unwrap();
    listed(" writer ");
    assert_eq!(run(deployment.tool(&["break", "a"])).code, Some(64));
    assert_eq!(run(deployment.tool(&["break", "a", "--yes"])).code, Some(0));
    assert_eq!(deployment.keys(), 0);
    drop((readers, writer));
    set(&deployment, &[0, 1], "quorumlock-rw:a", OURS, "50000");
    let found = run(deployment.tool(&["scan"]));
    assert!(
        found.code == Some(1) && found.out.matches(": foreign: ").count() == 2,
        "{}",
        found.all()
    );
    set(
        &deployment,
        &[0, 1],
        "quorumlock-rw:a",
        &format!("r 1:{OURS}"),
        "50000",
    );
    let free = run(deployment.tool(&["ls", "--json"]));
    assert!(
        free.out
            .contains("\"read_write\":true,\"state\":\"free\",\"token\":null"),
        "{}",
        free.all()
    );
}

#[test]
fn the_number_of_a_writer_is_shown_and_outlives_it() {
    let deployment = Deployment::of(3);
    let client = client(&deployment.servers);
    let mutex = Sides::of(&client, "a").ttl(LONG_TTL).fenced();
    let value = || match deployment.servers[0]
        .command(&["GET", "quorumlock-rw:a"])
        .unwrap()
    {
        Answer::Text(value) => value,
        other => panic!("{other:?}"),
    };
    let shows = |state: &str, holder: &str, fence: u64| {
        let shown = run(deployment.tool(&["show", "a"]));
        let line = shown.out.lines().next().unwrap_or_default();
        let is_shown = line.starts_with(&format!("read-write lock \"a\": {state}"))
            && line.ends_with(&format!(", fence {fence}"));
        assert!(is_shown && line.contains(holder), "{}", shown.all());
        let json = run(deployment.tool(&["ls", "--json"]));
        let is_listed = json.out.contains(&format!("\"state\":\"{state}\""))
            && json.out.contains("\"read_write\":true");
        assert!(
            is_listed && json.out.contains(&format!("\"fence\":{fence}")),
            "{}",
            json.all()
        );
    };
    let writer = mutex.write.lock().unwrap();
    let fence = u64::from(writer.fence());
    shows("held", ", writer, by ", fence);
    assert_eq!(run(deployment.tool(&["scan"])).code, Some(0));
    let reader = writer.downgrade().unwrap();
    shows("held", ", 1 reader, by ", fence);
    let kept = value().split_inclusive(' ').take(3).collect::<String>();
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert!(
        broken.code == Some(0) && broken.out.matches(": deleted").count() == 3,
        "{}",
        broken.all()
    );
    assert_eq!(format!("{} ", value()), kept);
    drop(reader);
    shows("free", "", fence);
    let scanned = run(deployment.tool(&["scan"]));
    assert!(
        scanned.code == Some(1) && scanned.out.matches(": fence-at-rest: ").count() == 3,
        "{}",
        scanned.all()
    );
    let writer = mutex.write.lock().unwrap();
    assert!(u64::from(writer.fence()) > fence);
    assert_eq!(run(deployment.tool(&["break", "a", "--yes"])).code, Some(0));
    assert!(
        value().starts_with(&format!("f {} ", writer.fence())) && !value().contains('w'),
        "{}",
        value()
    );
    drop(writer);
    // A number that its node does not keep any more.
    set(
        &deployment,
        &[0, 1, 2],
        "quorumlock-rw:a",
        &format!("f 7 5 r 9999999999999:{OURS}"),
        "50000",
    );
    let shown = run(deployment.tool(&["show", "a"]));
    assert!(
        shown.out.contains("held, 1 reader, by") && !shown.out.contains("fence"),
        "{}",
        shown.all()
    );
    set(
        &deployment,
        &[0, 1, 2],
        "quorumlock-rw:a",
        "f 7 5 ",
        "50000",
    );
    assert_eq!(
        run(deployment.tool(&["scan"]))
            .out
            .matches(": foreign: ")
            .count(),
        3
    );
}
