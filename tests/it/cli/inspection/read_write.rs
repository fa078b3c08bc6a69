//! Read-write locks: how they are listed, shown and broken, with and without a number.

use super::super::deployment::Deployment;
use super::*;

#[test]
fn readers_and_writers_are_listed_and_broken() {
    let deployment = Deployment::of(3);
    let clients: Vec<Redlock> = (0..2).map(|_| client(&deployment.servers)).collect();
    let of = |client: &Redlock| Sides::of(client, "a").ttl(LONG_TTL);
    let listed = |kind: &str| {
        let is_listed = || {
            let out = deployment.run("ls a").out;
            let line = out.lines().nth(1).unwrap_or_default();
            let holder = line.split_whitespace().last().unwrap_or_default();
            let is_whole =
                line.starts_with("a ") && line.contains(" held ") && line.contains(" 3/3 ");
            is_whole && line.contains(kind) && holder.ends_with('…') && holder.chars().count() == 7
        };
        assert_soon!(is_listed(), "{kind}: {}", deployment.run("ls").all());
        deployment.succeeds("scan").writes_nothing();
    };
    let readers: Vec<_> = clients
        .iter()
        .map(|client| of(client).read.lock().unwrap())
        .collect();
    listed(" 2 readers ");
    deployment
        .run("show a")
        .begins("read-write lock \"a\": held, 2 readers, by ")
        .prints_times(": 2 readers, the last one ", 3);
    deployment
        .succeeds("break a --yes")
        .prints("the holder may believe");
    assert_eq!(deployment.keys(), 0);
    let writer = of(&clients[0]).write.lock().unwrap();
    listed(" writer ");
    deployment.ends(64, "break a");
    deployment.succeeds("break a --yes");
    assert_eq!(deployment.keys(), 0);
    drop((readers, writer));
    let key = "quorumlock-rw:a";
    set(&deployment, &[0, 1], key, OURS, "50000");
    deployment.ends(1, "scan").prints_times(": foreign: ", 2);
    set(&deployment, &[0, 1], key, &format!("r 1:{OURS}"), "50000");
    let free = "\"read_write\":true,\"state\":\"free\",\"token\":null";
    deployment.run("ls --json").prints(free);
}

#[test]
fn the_number_of_a_writer_is_shown_and_outlives_it() {
    let deployment = Deployment::of(3);
    let client = client(&deployment.servers);
    let mutex = Sides::of(&client, "a").ttl(LONG_TTL).fenced();
    let key = "quorumlock-rw:a";
    let value = || deployment.servers[0].text(&["GET", key]);
    let shows = |state: &str, holder: &str, fence: u64| {
        let shown = deployment.run("show a");
        let line = shown.out.lines().next().unwrap_or_default();
        let is_shown = line.starts_with(&format!("read-write lock \"a\": {state}"))
            && line.ends_with(&format!(", fence {fence}"));
        assert!(is_shown && line.contains(holder), "{}", shown.all());
        deployment
            .run("ls --json")
            .prints(&format!("\"state\":\"{state}\""))
            .prints("\"read_write\":true")
            .prints(&format!("\"fence\":{fence}"));
    };
    let writer = mutex.write.lock().unwrap();
    let fence = u64::from(writer.fence());
    shows("held", ", writer, by ", fence);
    deployment.succeeds("scan");
    let reader = writer.downgrade().unwrap();
    shows("held", ", 1 reader, by ", fence);
    let kept = value().split_inclusive(' ').take(3).collect::<String>();
    deployment
        .succeeds("break a --yes")
        .prints_times(": deleted", 3);
    assert_eq!(format!("{} ", value()), kept);
    drop(reader);
    shows("free", "", fence);
    deployment
        .ends(1, "scan")
        .prints_times(": fence-at-rest: ", 3);
    let writer = mutex.write.lock().unwrap();
    assert!(u64::from(writer.fence()) > fence);
    deployment.succeeds("break a --yes");
    assert!(
        value().starts_with(&format!("f {} ", writer.fence())) && !value().contains('w'),
        "{}",
        value()
    );
    drop(writer);
    // A number that its node does not keep any more.
    let old = format!("f 7 5 r 9999999999999:{OURS}");
    set(&deployment, &[0, 1, 2], key, &old, "50000");
    deployment
        .run("show a")
        .prints("held, 1 reader, by")
        .hides("fence");
    set(&deployment, &[0, 1, 2], key, "f 7 5 ", "50000");
    deployment.run("scan").prints_times(": foreign: ", 3);
}
