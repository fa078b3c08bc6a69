//! Fenced locks on real servers: what stands on the nodes, what grows, what is refused, and what is reported.
//!
//! `QUORUMLOCK_SERVERS` names further servers, separated by colons; where a server's version could matter, all are
//! asked.

use crate::clients::{
    LONG_TTL, SOON, builder, calls, causes, client, client_of, failure, left, long_lock, take, value,
};
use crate::support::capable::with_users;
use crate::support::fake::{Act, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server, binaries};
use quorumlock::kind::Fenced;
use quorumlock::protocol::kinds;
use quorumlock::{
    Cause, ErrorKind, ExtendOutcome, FencedGuard, FencingToken, Lease, Phase, Redlock, ReleaseOutcome, RestartPolicy,
    Watchdog,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const KEY: &str = "quorumlock-fence:k";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SHORT: Duration = Duration::from_millis(150);

fn token(guard: &FencedGuard) -> FencingToken {
    guard.fence()
}

/// One server of each kind at hand.
fn servers() -> Vec<Server> {
    binaries().unwrap().into_iter().map(|binary| Server::plan().binary(binary).start().unwrap()).collect()
}

/// Fence, deadline and owner, as a node has them.
fn fields(server: &Server) -> (u64, u64, String) {
    let value = value(server, KEY).expect("the key stays");
    let fields: Vec<_> = value.split(' ').collect();
    (fields[0].parse().unwrap(), fields[1].parse().unwrap(), fields[2].to_owned())
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

fn set(server: &Server, text: &str) {
    assert_eq!(server.command(&["SET", KEY, text]).unwrap(), Answer::Text("OK".into()));
}

fn scripts_run(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}

/// Servers that keep what they have granted.
fn durable(count: usize) -> Vec<Server> {
    (0..count).map(|_| Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap()).collect()
}

/// A user with these rights and no others, and the URL with which to log in.
fn user(server: &Server, rights: &[&str]) -> String {
    let words = [&["ACL", "SETUSER", "locker", "reset", "on", ">secret"], rights].concat();
    assert_eq!(server.command(&words).unwrap(), Answer::Text("OK".into()));
    format!("redis://locker:secret@{}", server.address())
}

#[test]
fn every_acquisition_has_a_greater_number_whichever_client_makes_it() {
    let servers = Server::several(3).unwrap();
    let mutexes = [client(&servers), client(&servers)].map(|client| long_lock(&client, "k").fenced());
    let begun = micros();
    let mut last = FencingToken::try_from(begun).unwrap();
    for round in 0..50 {
        let guard = take(&mutexes[round % 2]);
        assert!(token(&guard) > last && token(&guard).get() < micros() + 1000, "{last} {guard:?}");
        last = token(&guard);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    }
    // One to take and one to release: one round trip each. And the note of each node, once.
    assert!(eventually(SOON, || servers.iter().all(|server| scripts_run(server) == 100 + 1)));
    let _held = take(&mutexes[0]);
    assert!(mutexes[1].try_lock().unwrap().is_none());
    assert!(long_lock(&client(&servers), "k").try_lock().unwrap().unwrap().erase().fence().is_none());
}

#[test]
fn a_node_keeps_fence_deadline_and_owner_and_after_the_release_the_fence() {
    for server in servers() {
        let mutex = client([&server]).mutex("k").ttl(Duration::from_secs(60)).fenced();
        let guard = take(&mutex);
        let (fence, deadline, owner) = fields(&server);
        assert_eq!((fence, owner.len()), (token(&guard).get(), 40));
        let now = micros() / 1000;
        assert!((now + 50_000..=now + 61_000).contains(&deadline), "{deadline}");
        let is_kept = |time: Duration| time > DAY - SOON && time <= DAY;
        assert!(left(&server, KEY).is_some_and(is_kept));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!(fields(&server), (fence, 0, String::new()));
        assert!(left(&server, KEY).is_some_and(is_kept));
        let kept = builder([&server]).fence_retention(2 * DAY).build().unwrap();
        drop(take(&long_lock(&kept, "k").fenced()));
        assert!(eventually(SOON, || fields(&server).2.is_empty()));
        assert!(left(&server, KEY).is_some_and(|time| time > 2 * DAY - SOON));
        let long = builder([&server]).max_ttl(3 * DAY).build().unwrap();
        drop(take(&long_lock(&long, "k").fenced()));
        // As long as any lock lasts, and two minutes more.
        let least = 3 * DAY + Duration::from_secs(120);
        assert!(eventually(SOON, || left(&server, KEY).is_some_and(|time| time > least - SOON && time <= least)));
    }
}

#[test]
fn a_plain_lock_of_the_same_name_is_another_lock() {
    let server = Server::start().unwrap();
    let client = builder([&server]).prefix("app:").build().unwrap();
    let (plain, fenced) = (long_lock(&client, "k"), long_lock(&client, "k").fenced());
    assert_eq!((plain.name(), fenced.name(), fenced.clone().erase().name()), ("k", "k", "k"));
    let (one, other) = (take(&plain), take(&fenced));
    assert_eq!((one.name(), other.name()), ("k", "k"));
    let (one, other) = (one.erase(), other.erase());
    assert_eq!((one.fence(), other.fence().is_some()), (None, true));
    assert!(value(&server, "app:k").is_some() && value(&server, "quorumlock-fence:app:k").is_some());
}

#[test]
fn fences_that_differ_are_raised_to_the_greatest() {
    for count in [3, 5] {
        let servers = Server::several(count).unwrap();
        let mutex = long_lock(&client(&servers), "k").fenced();
        drop(take(&mutex));
        assert!(eventually(SOON, || servers.iter().all(|server| fields(server).2.is_empty())));
        // A client with a clock that is ahead by a day took it, and no other client saw that.
        let ahead = micros() + 86_400_000_000;
        for (index, server) in servers.iter().enumerate() {
            set(server, &format!("{} 0 ", ahead + 10 * index as u64));
        }
        let before: u64 = servers.iter().map(scripts_run).sum();
        let guard = take(&mutex);
        let has_it = |server: &&Server| fields(server).0 == token(&guard).get();
        assert!(token(&guard).get() > ahead, "of a quorum, one other's");
        assert!(servers.iter().filter(has_it).count() > count / 2, "a quorum has it before it is known");
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        let ran = servers.iter().map(scripts_run).sum::<u64>() - before;
        assert!(ran > 2 * count as u64, "{ran}: some were raised");
        assert!(token(&take(&mutex)) > FencingToken::try_from(ahead).unwrap());
    }
}

#[test]
fn a_lease_that_ended_gives_way_to_a_greater_fence() {
    let servers = Server::several(3).unwrap();
    let short = client(&servers).mutex("k").ttl(SHORT).fenced();
    let late = take(&short);
    thread::sleep(SHORT);
    let next = short.lock_timeout(SOON).unwrap().expect("its time is up");
    assert!(token(&next) > token(&late));
    assert!(late.remaining().is_zero());
    assert_eq!(late.unlock().unwrap(), ReleaseOutcome::Expired);
    assert!(!next.remaining().is_zero(), "the late release has freed nothing");
    assert!(short.try_lock().unwrap().is_none());
}

#[test]
fn a_fenced_lock_is_extended_and_watched() {
    for server in servers() {
        let client = client([&server]);
        let guard = take(&client.mutex("k").ttl(Duration::from_secs(5)).fenced());
        let number = token(&guard);
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        let (fence, deadline, _) = fields(&server);
        assert!(fence == number.get() && token(&guard) == number && deadline > micros() / 1000 + 50_000);
        // Another client has taken it away.
        set(&server, &format!("{} {deadline} {}", fence + 1, "0".repeat(40)));
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
        assert_eq!(fields(&server).0, fence + 1);
        set(&server, "1 0 ");

        let watched = take(&client.mutex("k").ttl(SHORT).fenced().watchdog(Watchdog::new()));
        thread::sleep(SHORT * 3);
        assert!(!watched.remaining().is_zero());
        assert_eq!(fields(&server).0, token(&watched).get());
        assert_eq!(watched.unlock().unwrap(), ReleaseOutcome::Released);
    }
}

#[test]
fn a_node_that_lost_its_data_gets_the_key_again_and_no_smaller_fence() {
    let mut servers = Server::several(3).unwrap();
    let guard = take(&long_lock(&client(&servers), "k").fenced());
    assert!(eventually(SOON, || servers.iter().all(|server| value(server, KEY).is_some())));
    servers[0].restart().unwrap();
    assert_eq!(value(&servers[0], KEY), None);
    let is_repaired = || {
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        value(&servers[0], KEY).is_some()
    };
    assert!(eventually(SOON, is_repaired));
    let ([fence, other], owners) =
        ([0, 1].map(|node: usize| fields(&servers[node]).0), [0, 1].map(|node: usize| fields(&servers[node]).2));
    assert!(fence >= other && owners[0] == owners[1], "{fence} {other}");
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || servers.iter().all(|server| fields(server).2.is_empty())));
}

#[test]
fn nodes_that_all_lost_their_data_go_on_above_what_they_gave_out() {
    let mut servers = Server::several(3).unwrap();
    // What they gave out is forgotten, and no client guards against that.
    let client = builder(&servers).restart_policy(RestartPolicy::Off).build().unwrap();
    let before = token(&take(&long_lock(&client, "k").fenced()));
    servers.iter_mut().for_each(|server| server.restart().unwrap());
    let again = || long_lock(&client, "k").fenced().try_lock().ok().flatten().map(|guard| token(&guard));
    let mut after = None;
    assert!(eventually(SOON, || {
        after = again();
        after.is_some()
    }));
    assert!(after > Some(before), "by the clock alone");
}

#[test]
fn a_floor_is_no_further_than_a_minute_before_the_servers_clock() {
    for server in servers() {
        let acquire = |floor: &str, owner: &str| {
            let words =
                ["EVAL", kinds::fenced::SCRIPT.text, "1", "f", "acquire", &owner.repeat(40), "0", "60000", floor];
            match server.command(&words).unwrap() {
                Answer::Text(fence) => fence.parse::<u64>().unwrap(),
                answer => panic!("{answer:?}"),
            }
        };
        let first = acquire("9007199254740991", "1");
        let ahead = first.checked_sub(micros()).expect("ahead of the clock");
        assert!((50_000_000..=60_000_000).contains(&ahead), "{ahead}");
        thread::sleep(Duration::from_millis(3));
        assert!(acquire("1", "2") == first + 1, "the fence that was given out counts all the same");
    }
}

#[test]
fn what_no_fenced_lock_has_written_is_left_alone() {
    let server = Server::start().unwrap();
    let client = client([&server]);
    let mutex = long_lock(&client, "k").fenced();
    for text in ["", "1", "hunter2", "0 0 ", "1 0 x", "9007199254740992 0 "] {
        set(&server, text);
        let error = failure(&mutex);
        assert_eq!(causes(&error), [(server.address(), Phase::Reply, Cause::UnexpectedValue)], "{text}");
        assert_eq!((error.kind(), value(&server, KEY).as_deref()), (ErrorKind::Unavailable, Some(text)));
        assert!(!error.to_string().contains("hunter2"));
    }
    server.command(&["DEL", KEY]).unwrap();
    server.command(&["LPUSH", KEY, "x"]).unwrap();
    assert_eq!(causes(&failure(&mutex)), [(server.address(), Phase::Reply, Cause::UnexpectedValue)]);
    assert_eq!(server.command(&["LLEN", KEY]).unwrap(), Answer::Number(1));
    // A minority does not prevent a lock.
    let others = Server::several(2).unwrap();
    let guard = take(&long_lock(&self::client([&server, &others[0], &others[1]]), "k").fenced());
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn nodes_without_scripts_say_so() {
    for binary in binaries().unwrap() {
        let server = Server::plan().binary(binary).arguments(&["--rename-command", "EVAL", ""]).start().unwrap();
        let mutex = long_lock(&client([&server]), "k").fenced();
        for _ in 0..2 {
            let error = failure(&mutex);
            assert_eq!(causes(&error), [(server.address(), Phase::Reply, Cause::NoScripts)]);
            assert!(error.to_string().contains("runs no scripts"), "{error}");
        }
        assert!(
            long_lock(&client([&server]), "k").try_lock().unwrap().is_some(),
            "a plain lock needs none to be taken"
        );
    }
    for server in with_users(servers()) {
        let mutex = |rights: &[&str]| long_lock(&client_of([user(&server, rights)]), "k").fenced();
        let denied = |rights: &[&str]| causes(&failure(&mutex(rights)))[0].2;
        assert_eq!(denied(&["~*", "+@all", "-eval", "-evalsha"]), Cause::NoScripts);
        assert_eq!(denied(&["~other", "+@all"]), Cause::NoPermission);
        let enough = mutex(&["~quorumlock-fence:*", "+eval", "+evalsha", "+get", "+set", "+time"]);
        let by_text = mutex(&["~*", "+@all", "-evalsha"]);
        for mutex in [enough, by_text] {
            for _ in 0..3 {
                assert_eq!(take(&mutex).unlock().unwrap(), ReleaseOutcome::Released);
            }
        }
    }
}

#[test]
fn the_script_is_sent_once_and_called_by_its_hash_unless_the_server_forgets_it() {
    for server in servers() {
        let hash = server.command(&["SCRIPT", "LOAD", kinds::fenced::SCRIPT.text]).unwrap();
        assert_eq!(hash, Answer::Text(kinds::fenced::SCRIPT.sha1.to_owned()));
        let mutex = long_lock(&client([&server]), "k").fenced();
        for _ in 0..3 {
            assert_eq!(take(&mutex).unlock().unwrap(), ReleaseOutcome::Released);
        }
        // And the note of the node.
        assert_eq!(["eval", "evalsha"].map(|command| calls(&server, command)), [1 + 1, 5]);
        let mut last = FencingToken::try_from(0_u64).unwrap();
        for _ in 0..5 {
            server.command(&["SCRIPT", "FLUSH"]).unwrap();
            let guard = take(&mutex);
            assert!(token(&guard) > last);
            last = token(&guard);
            server.command(&["SCRIPT", "FLUSH"]).unwrap();
            assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        }
    }
}

#[test]
fn an_attempt_that_was_given_up_is_not_sent_again_behind_its_release() {
    // A server that has forgotten the script when the second attempt comes and keeps it waiting. When the release
    // comes, another client has loaded the script again.
    let is_script = |command: &[String], name: &str, deed: &str| {
        command.first().is_some_and(|word| word == name) && command.get(4).is_some_and(|word| word == deed)
    };
    let node = Fake::on_command(move |command| match command {
        _ if is_script(command, "EVAL", "acquire") => vec![say("$16\r\n1700000000000000\r\n")],
        _ if is_script(command, "EVALSHA", "acquire") => Vec::new(),
        _ if is_script(command, "EVALSHA", "release") && command[3].ends_with(":first") => vec![say(":1\r\n")],
        _ if is_script(command, "EVALSHA", "release") => vec![say("-NOSCRIPT No matching script.\r\n:1\r\n")],
        _ => vec![Act::Say(healthy(command))],
    });
    let client = Redlock::builder().node(node.url()).node_timeout(Duration::from_millis(100)).build().unwrap();
    assert_eq!(take(&long_lock(&client, "first").fenced()).unlock().unwrap(), ReleaseOutcome::Released);
    assert_eq!(causes(&failure(&long_lock(&client, "second").fenced()))[0].2, Cause::TimedOut);
    assert!(node.wait_for("EVALSHA", 3, SOON));
    // The next call reads the answers.
    assert!(eventually(SOON, || client.mutex("plain").try_lock().is_ok()));
    thread::sleep(Duration::from_millis(50));
    let sent = node.commands().iter().filter(|command| command.get(4).is_some_and(|word| word == "acquire")).count();
    assert_eq!(sent, 2, "it is not sent again");
}

#[test]
fn a_pending_release_is_that_of_a_fenced_lock() {
    let mut servers = durable(3);
    let client = client(&servers);
    let guard = take(&long_lock(&client, "k").fenced());
    assert!(eventually(SOON, || value(&servers[0], KEY).is_some()));
    // The lock's own key may be released in the instant in which the node is back.
    servers[0].command(&["SET", "kept", "1"]).unwrap();
    servers[0].kill();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    servers[0].restart().unwrap();
    assert!(value(&servers[0], "kept").is_some(), "it came back without its data");
    let is_paid = || {
        let _ = client.mutex("other").try_lock();
        fields(&servers[0]).2.is_empty()
    };
    assert!(eventually(SOON, is_paid));
}

#[test]
fn full_memory_costs_nothing_that_is_held() {
    for server in servers() {
        let client = client([&server]);
        let guard = take(&client.mutex("k").ttl(LONG_TTL).fenced());
        server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        let full = |cause: &quorumlock::NodeFault| cause.cause() == Cause::OutOfMemory;
        assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended, "it asks for no memory");
        assert!(guard.remaining() > LONG_TTL);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released, "nor does a release");
        assert!(failure(&client.mutex("other").fenced()).causes().iter().all(full));
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        assert_eq!(take(&client.mutex("k").fenced()).unlock().unwrap(), ReleaseOutcome::Released);
    }
}

#[test]
fn a_waiter_is_woken_by_a_release() {
    let servers = Server::several(3).unwrap();
    let slow = Duration::from_secs(5);
    let [holder, waiter] = [(); 2].map(|()| builder(&servers).retry_delay(slow, slow).build().unwrap());
    let guard = take(&long_lock(&holder, "k").fenced());
    let number = token(&guard);
    let waiting = thread::spawn(move || {
        let guard = long_lock(&waiter, "k").fenced().lock_timeout(SOON).unwrap().expect("it is released");
        (token(&guard), Instant::now())
    });
    thread::sleep(Duration::from_millis(300));
    let released = Instant::now();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    let (next, taken) = waiting.join().unwrap();
    assert!(next > number && taken < released + slow / 2, "{:?}", taken - released);
}

#[test]
fn a_fenced_lock_changes_hands_with_its_number() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
    let guard = take(&long_lock(&mine, "k").fenced());
    let number = token(&guard);
    let lease = guard.detach().unwrap();
    assert_eq!((lease.key(), lease.fence()), (KEY, number));
    let text = lease.into_text();
    let again = || text.expose().parse::<Lease<Fenced>>().unwrap();
    let plain = text.expose().parse::<Lease>().unwrap_err();
    assert_eq!(plain.kind(), ErrorKind::Config, "a plain lock is another one");
    assert_eq!(theirs.mutex("other").fenced().attach(again()).unwrap_err().kind(), ErrorKind::Config);
    let guard = theirs.attach(again()).unwrap();
    assert_eq!((token(&guard), guard.name()), (number, "k"));
    assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(token(&take(&long_lock(&mine, "k").fenced())) > number);
    let plain = take(&long_lock(&mine, "plain")).detach().unwrap().into_text();
    assert_eq!(plain.expose().parse::<Lease<Fenced>>().unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn a_minority_that_hangs_or_is_gone_costs_no_number() {
    let mut servers = durable(5);
    let nodes = servers.iter().map(|server| format!("{}?durable=true", server.url()));
    let client = Redlock::builder().nodes(nodes).node_timeout(Duration::from_secs(1)).build().unwrap();
    let mutex = long_lock(&client, "k").fenced();
    let mut last = token(&take(&mutex));
    let mut next = || {
        let guard = mutex.lock_timeout(SOON).unwrap().expect("a majority answers");
        assert!(token(&guard) > last);
        last = token(&guard);
    };
    for round in 0..5 {
        servers[round].pause().unwrap();
        servers[(round + 1) % 5].kill();
        next();
        servers[round].resume().unwrap();
        next();
        servers[(round + 1) % 5].restart().unwrap();
        next();
    }
}
