//! `doctor` names each fault that is planted, and finds none where there is none.

use super::*;

fn doctor(urls: &[String], options: &str) -> Ended {
    run(tool(&format!(
        "doctor --nodes {} {options}",
        urls.join(",")
    )))
}

/// Two sound nodes, and a third one.
fn with(third: String) -> (Deployment, Vec<String>) {
    let deployment = Deployment::of(2);
    let mut urls: Vec<String> = deployment.servers.each(Server::url);
    urls.push(third);
    (deployment, urls)
}

#[track_caller]
fn finds(urls: &[String], code: i32, texts: &[&str]) {
    let ended = doctor(urls, "").exits(code);
    ended.hides("hunter2").prints_all(texts);
}

#[test]
fn sound_nodes_are_fine_and_nothing_is_left_on_them() {
    let deployment = Deployment::of(5);
    let urls: Vec<String> = deployment.servers.each(Server::url);
    doctor(&urls, &format!("{PATIENT} --watch 300ms"))
        .exits(0)
        .prints("fine: all 5 nodes vote")
        .prints(" rate ");
    // Each node has answered an attempt and a release of each pair. One that is slow for a moment
    // is asked less.
    let has_asked_each = (0..3).any(|_| {
        let json = doctor(&urls, &format!("{PATIENT} --json"))
            .exits(0)
            .prints("\"findings\":[]");
        json.out.matches("\"lock_replies\":2").count() == 5
    });
    assert!(
        has_asked_each,
        "each time a node has answered less than two hundred times"
    );
    assert_eq!(deployment.keys(), 0);
}

#[test]
fn a_replica_is_named() {
    let master = Server::start().unwrap();
    let replica = replica_of(&master);
    let (_deployment, urls) = with(replica.url());
    finds(&urls, 1, &["fault: replica", "2 of 3 nodes vote"]);
}

#[test]
fn two_names_of_one_server_are_named() {
    let server = Server::start().unwrap();
    let urls = [server.url(), format!("redis://localhost:{}", server.port())];
    let fault = "fault: duplicate: the same server as 127.0.0.1:";
    finds(&urls, 2, &[fault, "cannot lock: 1 of 2"]);
}

#[test]
fn a_wrong_password_is_named() {
    let server = Server::with(&["--requirepass", "right"]).unwrap();
    let (_deployment, urls) = with(format!("redis://:hunter2@127.0.0.1:{}", server.port()));
    finds(&urls, 1, &["fault: login", "password"]);
}

#[test]
fn missing_rights_are_named_as_the_rule_to_add() {
    skip_unless!(has_users());
    let server = Server::start().unwrap();
    let user = |rights: &str| {
        server.command(&["ACL", "DELUSER", "locks"]).unwrap();
        let rule = format!("ACL SETUSER locks on >hunter2 ~* &* +@all {rights}");
        command_each(std::slice::from_ref(&server), &rule);
        format!("redis://locks:hunter2@127.0.0.1:{}", server.port())
    };
    let (_deployment, urls) = with(user("-publish"));
    finds(&urls, 1, &["warning: acl", "ACL SETUSER locks +publish\n"]);
    user("-pexpire -time");
    finds(&urls, 1, &["ACL SETUSER locks +", "+pexpire", "+time\n"]);
    // What each group of rights is for is named with it.
    let groups = [
        (
            "-zadd",
            "waiting needs: calls poll, and fair locks and the order of readers and writers do not work",
        ),
        (
            "-time",
            "fenced locks need: they do not work, other locks do",
        ),
        (
            "-pexpire",
            "read-write locks need: they do not work, other locks do",
        ),
        ("-getrange", "quorumlock show and run -n need: locks work"),
    ];
    for (right, lost) in groups {
        user(right);
        let remedy = format!(
            "warning: acl: the user lacks rights that {lost}; ACL SETUSER locks {}\n",
            right.replace('-', "+")
        );
        finds(&urls, 1, &[&remedy]);
    }
    let table: [(&str, i32, &[&str]); 6] = [
        (
            "-set",
            1,
            &["fault: acl: the user cannot lock here", "+set"],
        ),
        ("resetchannels", 1, &["&quorumlock:"]),
        (
            "-info",
            1,
            &[
                "warning: no-info: the user may not run INFO",
                "ACL SETUSER locks +info",
            ],
        ),
        // Of fair and of read-write locks, of the names that the user's own patterns show.
        (
            "resetkeys ~jobs/* ~quorumlock-fence:jobs/* ~quorumlock-queue:quorumlock-fence:jobs/*",
            1,
            &["warning: acl", "ACL SETUSER locks ~quorumlock-*:jobs/*\n"],
        ),
        (
            "resetchannels &quorumlock:quorumlock-trial-* &quorumlock:quorumlock-fence:*",
            1,
            &["ACL SETUSER locks &quorumlock:*\n"],
        ),
        // The rule that is shown is enough.
        ("", 0, &["fine: all 3 nodes vote"]),
    ];
    for (rights, code, texts) in table {
        user(rights);
        finds(&urls, code, texts);
    }
}

#[test]
fn save_points_that_stop_writes_are_named() {
    let server = Server::start().unwrap();
    ask(&server, &["CONFIG", "SET", "save", "3600 1"]);
    let (_deployment, urls) = with(server.url());
    finds(&urls, 1, &["warning: save-points", "3600 1"]);
    command_each(
        std::slice::from_ref(&server),
        "CONFIG SET stop-writes-on-bgsave-error no",
    );
    finds(&urls, 0, &["fine"]);
}

#[test]
fn a_clock_that_is_off_is_named() {
    let clock = folder().join("clock");
    fs::write(&clock, 3_000_000_i64.to_ne_bytes()).unwrap();
    let library = preload::library("nemesis/clock.c");
    let plan = Server::plan()
        .variable(preload::VARIABLE, library)
        .variable("QUORUMLOCK_NEMESIS_CLOCK", clock.as_os_str());
    let server = plan.start().unwrap();
    let (_deployment, urls) = with(server.url());
    let difference = "differs from that of this machine by +";
    finds(&urls, 1, &["warning: clock", difference]);
}

#[test]
fn a_stopped_and_an_absent_node_are_named() {
    let server = Server::start().unwrap();
    server.pause().unwrap();
    let (_deployment, mut urls) = with(server.url());
    finds(&urls, 1, &["fault: no-answer"]);
    server.resume().unwrap();
    urls[2] = dead();
    finds(&urls, 1, &["fault: connect: connection refused"]);
    urls[2] = "redis://no-such-host.invalid".to_owned();
    finds(&urls, 1, &["fault: resolve"]);
}

#[test]
fn a_node_that_is_too_slow_is_shown_to_be() {
    let (_server, proxy) = Proxy::and_server();
    let (_deployment, mut urls) = with(format!("redis://127.0.0.1:{}", proxy.port()));
    proxy.delay(Duration::from_millis(60));
    let ended = doctor(&urls, "--node-timeout 20ms");
    let line = ended
        .out
        .lines()
        .rfind(|line| line.contains("node_timeout of 20 ms would cut"))
        .unwrap();
    let (cut, all) = line.rsplit_once(" of ").unwrap();
    assert!(
        cut.ends_with(&format!(" {all}")),
        "all of them: {}",
        ended.all()
    );
    // A majority of such nodes cannot lock.
    urls.drain(..2);
    doctor(&urls, "--node-timeout 20ms --unavailable-after 300ms").exits(2);
    doctor(&urls, PATIENT).prints("a lock of all nodes: taken");
}

#[test]
fn the_compose_file_makes_sound_nodes() {
    let file = text_of("packaging/compose.yaml");
    let command = file
        .lines()
        .find_map(|line| line.trim().strip_prefix("command: valkey-server "))
        .unwrap();
    let words: Vec<&str> = command
        .split(' ')
        .map(|word| word.trim_matches('"'))
        .collect();
    assert_eq!(file.matches("<<: *node").count(), 3);
    let servers: Vec<Server> = (0..3).map(|_| Server::with(&words).unwrap()).collect();
    let urls: Vec<String> = servers.each(Server::url);
    finds(&urls, 0, &["fine: all 3 nodes vote"]);
}
