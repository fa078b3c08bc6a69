//! The script of fenced locks: how it is called, where it cannot run, and what it leaves alone or
//! refuses.

use super::*;
use crate::read_write::long;

#[test]
fn a_floor_is_no_further_than_a_minute_before_the_servers_clock() {
    for server in servers() {
        for (script, ttl) in [
            (kinds::fenced::SCRIPT, &["0"][..]),
            (kinds::read_write::SCRIPT, &["1", "w"]),
        ] {
            let acquire = |floor: &str, owner: &str| {
                let owner = owner.repeat(40);
                let words = [
                    &["EVAL", script.text, "1", script.sha1, "acquire", &owner],
                    ttl,
                    &["600000", floor],
                ];
                match server.command(&words.concat()).unwrap() {
                    Answer::Text(fence) => fence.parse::<u64>().unwrap(),
                    answer => panic!("{answer:?}"),
                }
            };
            let first = acquire("9007199254740991", "1");
            let ahead = first.checked_sub(micros()).expect("ahead of the clock");
            assert!((50_000_000..=60_000_000).contains(&ahead), "{ahead}");
            thread::sleep(Duration::from_millis(5));
            assert!(
                acquire("1", "2") == first + 1,
                "the fence that was given out counts all the same"
            );
        }
    }
}

#[test]
fn what_no_fenced_lock_has_written_is_left_alone() {
    let (server, client) = single();
    let mutex = long_lock(&client, "k").fenced();
    for text in ["", "1", "hunter2", "0 0 ", "1 0 x", "9007199254740992 0 "] {
        set(&server, text);
        let error = failure(&mutex);
        assert_eq!(
            causes(&error),
            [(server.address(), Phase::Reply, Cause::UnexpectedValue)],
            "{text}"
        );
        assert_eq!(
            (error.kind(), value(&server, KEY).as_deref()),
            (ErrorKind::Unavailable, Some(text))
        );
        assert!(!error.to_string().contains("hunter2"));
    }
    server.command(&["DEL", KEY]).unwrap();
    server.command(&["LPUSH", KEY, "x"]).unwrap();
    assert_eq!(
        causes(&failure(&mutex)),
        [(server.address(), Phase::Reply, Cause::UnexpectedValue)]
    );
    assert_eq!(server.command(&["LLEN", KEY]).unwrap(), Answer::Number(1));
    // A minority does not prevent a lock.
    let others = Server::several(2).unwrap();
    let guard = take(&long_lock(&self::client([&server, &others[0], &others[1]]), "k").fenced());
    unlock(guard);
}

#[test]
fn nodes_without_scripts_say_so() {
    for server in servers_with(&["--rename-command", "EVAL", ""]) {
        let mutex = long_lock(&client([&server]), "k").fenced();
        for _ in 0..2 {
            let error = failure(&mutex);
            has_cause(&error, &server.address(), Phase::Reply, Cause::NoScripts);
            shows(&error, "runs no scripts");
        }
        assert!(
            long_lock(&client([&server]), "k")
                .try_lock()
                .unwrap()
                .is_some(),
            "a plain lock needs none to be taken"
        );
    }
    for server in with_users(servers()) {
        let mutex = |rights: &str| long_lock(&client_of([user(&server, rights)]), "k").fenced();
        let denied = |rights: &str| cause(&mutex(rights));
        assert_eq!(denied("~* +@all -eval -evalsha"), Cause::NoScripts);
        assert_eq!(denied("~other +@all"), Cause::NoPermission);
        let enough = mutex("~quorumlock-fence:* +eval +evalsha +get +set +time");
        let by_text = mutex("~* +@all -evalsha");
        for mutex in [enough, by_text] {
            for _ in 0..3 {
                unlock(take(&mutex));
            }
        }
    }
}

#[test]
fn the_script_is_sent_once_and_called_by_its_hash_unless_the_server_forgets_it() {
    for server in servers() {
        let mutex = long_lock(&client([&server]), "k").fenced();
        for _ in 0..3 {
            unlock(take(&mutex));
        }
        // And the note of the node.
        assert_eq!(
            ["eval", "evalsha"].map(|command| calls(&server, command)),
            [1 + 1, 5]
        );
        let mut last = FencingToken::try_from(0_u64).unwrap();
        for _ in 0..5 {
            server.command(&["SCRIPT", "FLUSH"]).unwrap();
            let guard = take(&mutex);
            assert!(guard.fence() > last);
            last = guard.fence();
            server.command(&["SCRIPT", "FLUSH"]).unwrap();
            unlock(guard);
        }
    }
}

#[test]
fn an_attempt_that_was_given_up_is_not_sent_again_behind_its_release() {
    // A server that has forgotten the script when the second attempt comes and keeps it waiting.
    // When the release comes, another client has loaded the script again.
    let is_script = |command: &[String], name: &str, deed: &str| {
        command.first().is_some_and(|word| word == name)
            && command.get(4).is_some_and(|word| word == deed)
    };
    let node = Fake::on_command(move |command| match command {
        _ if is_script(command, "EVAL", "acquire") => vec![say("$16\r\n1700000000000000\r\n")],
        _ if is_script(command, "EVALSHA", "acquire") => Vec::new(),
        _ if is_script(command, "EVALSHA", "release") && command[3].ends_with(":first") => {
            vec![say(":1\r\n")]
        }
        _ if is_script(command, "EVALSHA", "release") => {
            vec![say("-NOSCRIPT No matching script.\r\n:1\r\n")]
        }
        _ => vec![Act::Say(healthy(command))],
    });
    let client = client_within([node.url()], Duration::from_millis(100));
    unlock(take(&long_lock(&client, "first").fenced()));
    assert_eq!(
        cause(&long_lock(&client, "second").fenced()),
        Cause::TimedOut
    );
    assert!(node.wait_for("EVALSHA", 3, SOON));
    // The next call reads the answers.
    assert_soon!(client.mutex("plain").try_lock().is_ok());
    thread::sleep(Duration::from_millis(50));
    let sent = node
        .commands()
        .iter()
        .filter(|command| command.get(4).is_some_and(|word| word == "acquire"))
        .count();
    assert_eq!(sent, 2, "it is not sent again");
}

#[test]
fn full_memory_costs_nothing_that_is_held() {
    let kinds: [fn(&Redlock) -> Mutex<Any>; 4] = [
        |client| long_lock(client, "k").fenced().erase(),
        |client| long_lock(client, "k").fenced().fair().erase(),
        |client| long(client).read.erase(),
        |client| long(client).fenced().write.erase(),
    ];
    for (server, mutex) in kinds
        .iter()
        .flat_map(|mutex| servers().into_iter().map(move |server| (server, mutex)))
    {
        let client = client([&server]);
        let mutex = mutex(&client);
        let guard = take(&mutex);
        ask(&server, &["CONFIG", "SET", "maxmemory", "1"]);
        let full = |cause: &quorumlock::NodeFault| cause.cause() == Cause::OutOfMemory;
        // It asks for no memory.
        extend(&guard, LONG_TTL * 2);
        assert!(guard.remaining() > LONG_TTL);
        assert_eq!(
            guard.unlock().unwrap(),
            ReleaseOutcome::Released,
            "nor does a release"
        );
        assert!(failure(&mutex).causes().iter().all(full));
        ask(&server, &["CONFIG", "SET", "maxmemory", "0"]);
        unlock(take(&mutex));
    }
}
