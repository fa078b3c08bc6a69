//! The script of read-write locks: how it is called, where it cannot run, and what it leaves alone
//! or refuses.

use super::*;

#[test]
fn the_65th_program_finds_the_lock_held() {
    let server = Server::start().unwrap();
    let mutex = long(&client([&server]));
    for number in 0..64 {
        assert_eq!(
            ask(
                &server,
                &["acquire", &format!("{number:040x}"), "60000", "r"]
            ),
            Answer::Number(1)
        );
    }
    assert!(!can_read(&mutex));
    thread::scope(|scope| {
        let reads = scope.spawn(|| mutex.read.lock().unwrap());
        queues::has_entries([&server], KEY, 1);
        queues::has_channels([&server], 1);
        assert_eq!(
            ask(&server, &["release", &format!("{:040x}", 7)]),
            Answer::Number(2),
            "the one that waits is told"
        );
        drop(reads.join().unwrap());
    });
    assert_soon!(entries(&server) == ('r', 63));
}

#[test]
fn nodes_without_scripts_say_so() {
    for server in servers_with(&["--rename-command", "EVAL", ""]) {
        let mutex = long(&client([&server]));
        let fenced = mutex.clone().fenced().write.try_lock().map(drop);
        for error in [
            mutex.read.try_lock().map(drop),
            mutex.write.try_lock().map(drop),
            fenced,
        ]
        .map(Result::unwrap_err)
        {
            has_cause(&error, &server.address(), Phase::Reply, Cause::NoScripts);
        }
    }
    for server in with_users(servers()) {
        let user = |rights: &str| long(&client_of([user(&server, rights)]));
        let denied = user("~* +@all -eval -evalsha");
        assert_eq!(cause(&denied.read), Cause::NoScripts);
        let mutex = user("~quorumlock-rw:* +eval +evalsha +get +set +del +pexpire +time");
        for _ in 0..3 {
            drop(write(&mutex).downgrade().unwrap());
            assert_soon!(can_write(&mutex));
            drop(wait_for(&mutex.clone().fenced().write).downgrade().unwrap());
            assert_soon!(can_write(&mutex));
        }
    }
}

#[test]
fn the_script_goes_by_its_hash_and_what_others_have_written_is_left_alone() {
    for server in servers() {
        let hash = server
            .command(&["SCRIPT", "LOAD", kinds::read_write::SCRIPT.text])
            .unwrap();
        assert_eq!(
            hash,
            Answer::Text(kinds::read_write::SCRIPT.sha1.to_owned())
        );
        let mutex = long(&client([&server]));
        for text in [
            "junk",
            "w 1",
            "r 1:2",
            "q x",
            "w 1 2 q 3",
            &format!("r 1:{} q", "a".repeat(40)),
        ] {
            server.command(&["SET", KEY, text]).unwrap();
            let error = mutex.read.try_lock().unwrap_err();
            assert_eq!(causes(&error)[0].2, Cause::UnexpectedValue);
            assert_eq!(value(&server, KEY).as_deref(), Some(text));
        }
        server.command(&["DEL", KEY]).unwrap();
        assert!(can_read(&mutex));
    }
}
