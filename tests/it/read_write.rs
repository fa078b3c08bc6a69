//! Read-write locks on real servers: what stands on the nodes, which entries exclude which, what a waiting writer does,
//! and what is refused.
//!
//! [`fenced`] is about the numbers of writers, [`sharing`] about threads that share a lease, [`under_faults`] about
//! processes while everything breaks, and [`as_embedded`] compares real servers with the embedded node.

pub(crate) mod as_embedded;
mod fenced;
mod sharing;
mod under_faults;

use crate::clients::{LONG_TTL, NODE_TIMEOUT, SOON, builder, causes, client, client_of, gone_for_good, left, value};
use crate::support::capable::with_users;
use crate::support::fake::{Act, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::queues;
use crate::support::server::{Answer, Server, binaries};
use crate::support::sides::Sides;
use quorumlock::kind::{Read, Write};
use quorumlock::protocol::kinds;
use quorumlock::{
    Cause, ErrorKind, ExtendOutcome, Lease, Phase, Redlock, ReleaseOutcome, RwReadGuard, RwWriteGuard, Wait, Watchdog,
};
use std::thread;
use std::time::{Duration, Instant};

const KEY: &str = "quorumlock-rw:k";
const TTL: Duration = Duration::from_secs(1);
/// Long enough for anything that follows at once, on a machine that stands still for a moment.
const AT_ONCE: Duration = Duration::from_secs(1);

fn long(client: &Redlock) -> Sides {
    Sides::of(client, "k").ttl(LONG_TTL)
}

#[track_caller]
fn read(mutex: &Sides) -> RwReadGuard {
    mutex.read.try_lock().expect("enough nodes answer").expect("no writer has it")
}

#[track_caller]
fn write(mutex: &Sides) -> RwWriteGuard {
    mutex.write.try_lock().expect("enough nodes answer").expect("the lock is free")
}

fn can_read(mutex: &Sides) -> bool {
    mutex.read.try_lock().expect("enough nodes answer").is_some()
}

fn can_write(mutex: &Sides) -> bool {
    mutex.write.try_lock().expect("enough nodes answer").is_some()
}

/// How many entries a key has, and of which kind they are.
fn entries(server: &Server) -> (char, usize) {
    let value = value(server, KEY).unwrap_or_default();
    let words = value.split(' ').skip(if value.starts_with("f ") { 3 } else { 0 });
    let words: Vec<&str> = words.take_while(|word| *word != "q").collect();
    match words.first() {
        Some(&"w") => ('w', 1),
        Some(&"r") => ('r', words.len() - 1),
        _ => ('-', 0),
    }
}

/// Whether a writer waits.
fn is_marked(server: &Server) -> bool {
    queues::entries(server, KEY).iter().any(|entry| entry[16..].starts_with('w'))
}

/// Runs the script, as another program would.
fn ask(server: &Server, words: &[&str]) -> Answer {
    let words = [&["EVAL", kinds::read_write::SCRIPT.text, "1", KEY], words].concat();
    server.command(&words).unwrap()
}

/// One server of each kind at hand.
fn servers() -> Vec<Server> {
    binaries().unwrap().into_iter().map(|binary| Server::plan().binary(binary).start().unwrap()).collect()
}

#[test]
fn readers_share_the_lock_and_a_writer_has_it_alone() {
    let servers = Server::several(3).unwrap();
    let [one, other] = [client(&servers), client(&servers)].map(|client| long(&client));
    let (first, second) = (read(&one), read(&other));
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server) == ('r', 2))));
    assert!(!can_write(&one) && !can_write(&other));
    assert_eq!(first.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(!can_write(&one));
    drop(second);
    // A node that ran that too late would be without the writer.
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server).1 == 0)));
    assert!(can_write(&one));
    let guard = one.write.lock_timeout(SOON).unwrap().expect("the lock is free");
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server) == ('w', 1))));
    assert!(!can_read(&one) && !can_read(&other) && !can_write(&other) && !can_write(&one));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_reader_that_has_gone_costs_its_own_time_and_no_more() {
    let servers = Server::several(3).unwrap();
    let [dead, alive, writer] = [(); 3].map(|()| client(&servers));
    let begun = Instant::now();
    // Its program crashes.
    drop(dead.read_mutex("k").ttl(TTL).lock().unwrap().detach().unwrap());
    let guard = read(&Sides::of(&alive, "k").ttl(LONG_TTL));
    assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
    drop(guard);
    // An extension and an end of another reader change nothing about it: neither more nor less.
    let writer = Sides::of(&writer, "k").ttl(TTL);
    if begun.elapsed() < TTL / 2 {
        assert!(!can_write(&writer));
    }
    assert!(writer.write.lock_timeout(SOON).unwrap().is_some());
    assert!(begun.elapsed() >= TTL * 98 / 100, "{:?}", begun.elapsed());
    assert!(begun.elapsed() < TTL * 3, "{:?}", begun.elapsed());
}

#[test]
fn the_end_of_an_early_reader_does_not_cut_others_short() {
    let servers = Server::several(3).unwrap();
    let [early, late, writer] = [(); 3].map(|()| client(&servers));
    let guard = read(&Sides::of(&late, "k").ttl(LONG_TTL));
    drop(early.read_mutex("k").ttl(Duration::from_millis(50)).lock().unwrap().detach().unwrap());
    thread::sleep(Duration::from_millis(100));
    assert!(!can_write(&long(&writer)));
    assert!(!guard.remaining().is_zero());
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released, "its entry is there");
}

#[test]
fn a_writer_that_waits_keeps_new_readers_out_and_gets_its_turn() {
    let servers = Server::several(3).unwrap();
    let [reader, other, writer] = [(); 3].map(|()| client(&servers));
    let guard = read(&long(&reader));
    assert!(!can_write(&long(&writer)));
    assert!(can_read(&long(&other)), "an attempt that does not wait keeps no reader out");
    thread::scope(|scope| {
        let writes = scope.spawn(|| long(&writer).write.lock().unwrap());
        assert!(eventually(SOON, || servers.iter().all(is_marked)));
        let until = Instant::now() + AT_ONCE;
        while Instant::now() < until {
            assert!(!can_read(&long(&other)));
            thread::sleep(Duration::from_millis(20));
        }
        assert!(!can_read(&long(&reader)), "nor does a thread of a program that reads get in");
        assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended, "it refuses new readers only");
        drop(guard);
        let released = Instant::now();
        let guard = writes.join().unwrap();
        assert!(released.elapsed() < AT_ONCE, "{:?}", released.elapsed());
        drop(guard);
    });
    queues::no_entry_stays(&servers);
    assert!(eventually(SOON, || can_read(&long(&other))));
}

#[test]
fn a_writer_that_gives_up_lets_readers_in() {
    let servers = Server::several(3).unwrap();
    let [reader, other, writer] = [(); 3].map(|()| client(&servers));
    let guard = read(&long(&reader));
    let second = thread::scope(|scope| {
        let writes = scope.spawn(|| long(&writer).write.lock_timeout(Duration::from_millis(500)).unwrap().is_none());
        assert!(eventually(SOON, || servers.iter().all(is_marked)));
        let reads =
            scope.spawn(|| (long(&other).read.lock_timeout(SOON).unwrap().expect("no writer waits"), Instant::now()));
        assert!(writes.join().unwrap());
        let given_up = Instant::now();
        let (second, had) = reads.join().unwrap();
        let took = had.saturating_duration_since(given_up);
        assert!(took < AT_ONCE, "{took:?}");
        second
    });
    drop((guard, second));
    queues::no_entry_stays(&servers);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_writer_waits_no_longer_than_for_the_readers_that_were_there() {
    let servers = Server::several(3).unwrap();
    let readers = [(); 3].map(|()| client(&servers));
    let writer = Sides::of(&client(&servers), "k").ttl(TTL);
    let until = Instant::now() + Duration::from_secs(2);
    let mut longest = Duration::ZERO;
    thread::scope(|scope| {
        for client in &readers {
            for _ in 0..2 {
                // There is always a reader, and some crash.
                scope.spawn(|| {
                    let mutex = Sides::of(client, "k").ttl(TTL);
                    for round in 0.. {
                        if Instant::now() >= until {
                            break;
                        }
                        let Some(guard) = mutex.read.lock_timeout(SOON).unwrap() else { continue };
                        thread::sleep(Duration::from_millis(20));
                        if round % 20 == 7 {
                            // Unless the other thread reads as well.
                            drop(guard.detach());
                        }
                    }
                });
            }
        }
        while Instant::now() < until {
            let begun = Instant::now();
            let guard = writer.write.lock().unwrap();
            longest = longest.max(begun.elapsed());
            drop(guard);
            thread::sleep(Duration::from_millis(10));
        }
    });
    // A machine that stands still does so for a second.
    assert!(longest < TTL + AT_ONCE, "{longest:?}");
}

#[test]
fn a_writer_becomes_a_reader_without_another_writer_in_between() {
    let servers = Server::several(3).unwrap();
    let [one, other] = [client(&servers), client(&servers)].map(|client| long(&client));
    let guard = write(&one);
    let lost = guard.lost().unwrap();
    let guard = guard.downgrade().unwrap();
    assert!(lost.recv().is_err(), "the channel of the lock to write is disconnected");
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server) == ('r', 1))));
    assert!(!can_write(&other));
    let second = read(&other);
    assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
    assert!(guard.remaining() > LONG_TTL);
    drop(guard);
    assert!(!can_write(&one));
    assert_eq!(second.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || can_write(&one)));
}

#[test]
fn a_downgrade_holds_while_a_node_hangs_and_reaches_it_with_the_next_extension() {
    let servers = Server::several(3).unwrap();
    let [one, other] = [(); 2].map(|()| long(&builder(&servers).node_timeout(NODE_TIMEOUT).build().unwrap()));
    let guard = write(&one);
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server) == ('w', 1))));
    servers[0].pause().unwrap();
    servers[1].pause().unwrap();
    let guard = guard.downgrade().expect("its lease lasts");
    assert!(guard.remaining() > LONG_TTL / 2);
    for server in &servers[..2] {
        server.resume().unwrap();
    }
    assert!(eventually(SOON, || servers.iter().all(|server| entries(server) == ('r', 1))), "they run it now");
    assert!(eventually(SOON, || other.read.try_lock().is_ok_and(|guard| guard.is_some())));
    drop(guard);
    // A lock that has ended is none.
    let mutex = Sides::of(&client(&servers), "other").ttl(Duration::from_millis(30));
    let guard = mutex.write.lock().unwrap();
    thread::sleep(Duration::from_millis(40));
    assert_eq!(guard.downgrade().unwrap_err().kind(), ErrorKind::LeaseLost);
}

#[test]
fn a_late_extension_of_the_writer_does_not_undo_a_downgrade() {
    let server = Server::start().unwrap();
    let [ours, theirs] = ["a".repeat(40), "b".repeat(40)];
    assert_eq!(ask(&server, &["acquire", &ours, "60000", "w"]), Answer::Number(1));
    assert_eq!(ask(&server, &["extend", &ours, "60000", "r"]), Answer::Number(1));
    assert_eq!(ask(&server, &["acquire", &theirs, "60000", "r"]), Answer::Number(1));
    assert_eq!(ask(&server, &["extend", &ours, "60000", "w"]), Answer::Number(-1));
    assert_eq!(entries(&server), ('r', 2));
    // Nor does one that is late make an entry shorter, or set one that has gone.
    assert_eq!(ask(&server, &["extend", &ours, "1", "r"]), Answer::Number(1));
    assert!(left(&server, KEY).unwrap() > LONG_TTL / 2);
    assert_eq!(ask(&server, &["release", &ours]), Answer::Number(1));
    assert_eq!(ask(&server, &["extend", &ours, "60000", "r"]), Answer::Number(0));
    assert_eq!(ask(&server, &["release", &ours]), Answer::Number(0));
    assert_eq!(entries(&server), ('r', 1));
}

#[test]
fn what_has_ended_is_not_extended() {
    let server = Server::start().unwrap();
    let [ours, theirs] = ["a".repeat(40), "b".repeat(40)];
    assert_eq!(ask(&server, &["acquire", &ours, "20", "r"]), Answer::Number(1));
    assert_eq!(ask(&server, &["acquire", &theirs, "60000", "r"]), Answer::Number(1));
    thread::sleep(Duration::from_millis(30));
    assert_eq!(entries(&server), ('r', 2), "it stands there until the next write");
    assert_eq!(ask(&server, &["extend", &ours, "60000", "r"]), Answer::Number(0));
    assert_eq!(ask(&server, &["release", &theirs]), Answer::Number(1));
    assert_eq!(ask(&server, &["acquire", &theirs, "60000", "w"]), Answer::Number(1));
}

#[test]
fn the_65th_program_finds_the_lock_held() {
    let server = Server::start().unwrap();
    let mutex = long(&client([&server]));
    for number in 0..64 {
        assert_eq!(ask(&server, &["acquire", &format!("{number:040x}"), "60000", "r"]), Answer::Number(1));
    }
    assert!(!can_read(&mutex));
    thread::scope(|scope| {
        let reads = scope.spawn(|| mutex.read.lock().unwrap());
        queues::has_entries([&server], KEY, 1);
        queues::has_channels([&server], 1);
        assert_eq!(ask(&server, &["release", &format!("{:040x}", 7)]), Answer::Number(2), "the one that waits is told");
        drop(reads.join().unwrap());
    });
    assert!(eventually(SOON, || entries(&server) == ('r', 63)));
}

#[test]
fn a_lease_of_a_reader_or_a_writer_goes_on_elsewhere() {
    let servers = Server::several(3).unwrap();
    let [one, other] = [client(&servers), client(&servers)];
    let text = write(&long(&one)).detach().unwrap().into_text();
    assert_eq!(text.expose().parse::<Lease>().unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(text.expose().parse::<Lease<Read>>().unwrap_err().kind(), ErrorKind::Config);
    let guard = long(&other).write.attach(text.expose().parse().unwrap()).unwrap();
    assert!(!can_read(&long(&one)));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    let text = read(&long(&one)).detach().unwrap().into_text();
    assert_eq!(text.expose().parse::<Lease<Write>>().unwrap_err().kind(), ErrorKind::Config);
    // A client attaches it without the name.
    let guard = other.attach(text.expose().parse::<Lease<Read>>().unwrap()).unwrap();
    assert!(!can_write(&long(&one)) && can_read(&long(&one)));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || can_write(&long(&one))));
}

#[test]
fn a_watched_reader_is_extended_and_reports_its_loss() {
    let mut servers = Server::several(3).unwrap();
    let [one, other] = [(); 2].map(|()| builder(&servers).node_timeout(NODE_TIMEOUT).build().unwrap());
    let mutex = Sides::of(&one, "k").ttl(TTL).watchdog(Watchdog::new());
    let guard = mutex.read.lock().unwrap();
    let lost = guard.lost().unwrap();
    servers[0].kill();
    let until = Instant::now() + TTL * 2;
    while Instant::now() < until && lost.is_empty() {
        assert!(!can_write(&Sides::of(&other, "k").ttl(TTL)) || guard.remaining().is_zero());
        thread::sleep(Duration::from_millis(20));
    }
    servers[1].kill();
    assert!(lost.recv_timeout(SOON).is_ok());
    assert!(guard.ensure(Duration::ZERO).is_err());
}

#[test]
fn nodes_without_scripts_say_so() {
    for binary in binaries().unwrap() {
        let server = Server::plan().binary(binary).arguments(&["--rename-command", "EVAL", ""]).start().unwrap();
        let mutex = long(&client([&server]));
        let fenced = mutex.clone().fenced().write.try_lock().map(drop);
        for error in [mutex.read.try_lock().map(drop), mutex.write.try_lock().map(drop), fenced].map(Result::unwrap_err)
        {
            assert_eq!(causes(&error), [(server.address(), Phase::Reply, Cause::NoScripts)]);
        }
    }
    for server in with_users(servers()) {
        let user = |rights: &[&str]| {
            let words = [&["ACL", "SETUSER", "locker", "reset", "on", ">secret"], rights].concat();
            assert_eq!(server.command(&words).unwrap(), Answer::Text("OK".into()));
            long(&client_of([format!("redis://locker:secret@{}", server.address())]))
        };
        let error = user(&["~*", "+@all", "-eval", "-evalsha"]).read.try_lock().unwrap_err();
        assert_eq!(causes(&error)[0].2, Cause::NoScripts);
        let mutex = user(&["~quorumlock-rw:*", "+eval", "+evalsha", "+get", "+set", "+del", "+pexpire", "+time"]);
        for _ in 0..3 {
            drop(write(&mutex).downgrade().unwrap());
            assert!(eventually(SOON, || can_write(&mutex)));
            drop(mutex.clone().fenced().write.lock_timeout(SOON).unwrap().unwrap().downgrade().unwrap());
            assert!(eventually(SOON, || can_write(&mutex)));
        }
    }
}

#[test]
fn the_script_goes_by_its_hash_and_what_others_have_written_is_left_alone() {
    for server in servers() {
        let hash = server.command(&["SCRIPT", "LOAD", kinds::read_write::SCRIPT.text]).unwrap();
        assert_eq!(hash, Answer::Text(kinds::read_write::SCRIPT.sha1.to_owned()));
        let mutex = long(&client([&server]));
        for text in ["junk", "w 1", "r 1:2", "q x", "w 1 2 q 3", &format!("r 1:{} q", "a".repeat(40))] {
            server.command(&["SET", KEY, text]).unwrap();
            let error = mutex.read.try_lock().unwrap_err();
            assert_eq!(causes(&error)[0].2, Cause::UnexpectedValue);
            assert_eq!(value(&server, KEY).as_deref(), Some(text));
        }
        server.command(&["DEL", KEY]).unwrap();
        assert!(can_read(&mutex));
    }
}

#[test]
fn full_memory_costs_nothing_that_is_held() {
    for server in servers() {
        let [one, other] = [client([&server]), client([&server])].map(|client| long(&client));
        let (first, second) = (read(&one), read(&other));
        server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        assert_eq!(first.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
        assert_eq!(second.unlock().unwrap(), ReleaseOutcome::Released, "one entry is left");
        assert_eq!(causes(&long(&client([&server])).read.try_lock().unwrap_err())[0].2, Cause::OutOfMemory);
        assert_eq!(first.unlock().unwrap(), ReleaseOutcome::Released);
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    }
}

#[test]
fn a_plain_lock_does_not_get_into_its_keys() {
    let servers = Server::several(1).unwrap();
    let client = client(&servers);
    let error = client.mutex(KEY).try_lock().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("read-write"), "{error}");
    assert_eq!((long(&client).read.name(), long(&client).write.name()), ("k", "k"));
    let (plain, guard) = (client.mutex("k").try_lock().unwrap(), write(&long(&client)));
    assert!(plain.is_some(), "another lock");
    drop(guard);
    let waits = |mutex: &Sides| mutex.write.lock_with(&Wait::timeout(Duration::ZERO)).unwrap().is_some();
    assert!(eventually(SOON, || waits(&long(&client))));
}

#[test]
fn a_node_that_answers_nonsense_costs_no_lock() {
    for answer in [":-9223372036854775808", ":9223372036854775807", ":-4", ":-3", ":0", ":1", "$3\r\n1 1", "*0", "$-1"]
    {
        let servers = Server::several(2).unwrap();
        let fake = Fake::on_command(move |command| match command[0].starts_with("EVAL") {
            true => vec![say(&format!("{answer}\r\n"))],
            false => vec![Act::Say(healthy(command))],
        });
        let urls = || servers.iter().map(Server::url).chain([fake.url()]);
        let [mutex, other] = [(); 2].map(|()| long(&client_of(urls())));
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..5).for_each(|_| drop(other.write.lock_timeout(SOON).unwrap().expect("two nodes are well")))
            });
            for _ in 0..5 {
                drop(mutex.read.lock_timeout(SOON).unwrap().expect("two nodes are well"));
                drop(mutex.write.lock_timeout(SOON).unwrap().expect("so they are").downgrade());
            }
        });
        gone_for_good(&servers, KEY);
    }
}
