//! Credentials that a provider returns: rotated while locks are held, in files, and from providers
//! that fail.

use crate::prelude::*;
use crate::support::queues::connections;
use quorumlock::{Credentials, CredentialsError};
use std::sync::Mutex as Cell;

/// Far more than a rotation takes, for machines that are busy.
const LONG: Duration = Duration::from_secs(20);
const REFRESH: Duration = Duration::from_millis(50);

/// Lets the user of the programs have exactly these passwords.
fn set_passwords(server: &Server, passwords: &[&str]) {
    let passwords = passwords.iter().map(|password| format!(" >{password}"));
    let passwords: String = passwords.collect();
    let words = format!("ACL SETUSER app on resetpass ~* &* +@all{passwords}");
    ask(server, &words.split(' ').collect::<Vec<_>>());
}

pub(crate) fn servers_with_users(count: usize, password: &str) -> Vec<Server> {
    let servers = Server::several(count).unwrap();
    set_all_passwords(&servers, &[password]);
    servers
}

pub(crate) fn set_all_passwords(servers: &[Server], passwords: &[&str]) {
    for server in servers {
        set_passwords(server, passwords);
    }
}

/// A lock and its release in time.
fn pair(mutex: &Mutex) {
    unlock(mutex.lock().unwrap());
}

/// The first words of the subscribed connection of each server.
fn subscribers(servers: &[Server]) -> Vec<String> {
    let id = |server: &Server| {
        let lines = connections(server, &["TYPE", "pubsub"]);
        let id = lines.first().and_then(|line| line.split(' ').next());
        id.unwrap_or_default().to_owned()
    };
    servers.each(id)
}

fn cut(server: &Server) {
    server.command(&["CLIENT", "KILL", "USER", "app"]).unwrap();
}

/// A client whose provider returns what is in the cell.
fn client(servers: &[Server], password: &Arc<Cell<String>>, failures: &Seen<String>) -> Redlock {
    let password = Arc::clone(password);
    client_at(servers.each(Server::url), |builder| {
        let builder = builder.credentials(move |_| Ok(current(&password)));
        builder.observer(failures.by(failure_text))
    })
}

/// What is in the cell, for a moment.
fn current(password: &Cell<String>) -> Credentials {
    let password = Credentials::new(password.lock().unwrap().clone());
    password.user("app").refresh_after(REFRESH)
}

/// Servers, a cell with the password of their user, and what goes wrong.
fn fixture(servers: usize, password: &str) -> (Vec<Server>, Arc<Cell<String>>, Seen<String>) {
    let cell = Arc::new(Cell::new(password.to_owned()));
    (servers_with_users(servers, password), cell, Seen::nothing())
}

fn failure_text(event: &Event) -> Option<String> {
    let is_failure = matches!(event, Event::CredentialsFailed { .. } | Event::Lost { .. });
    is_failure.then(|| event.to_string())
}

fn loss_text(event: &Event) -> Option<String> {
    matches!(event, Event::Lost { .. }).then(|| event.to_string())
}

/// Until each connection of the client has logged in with a password, it may not be taken away.
fn wait_for_logins(servers: &[Server], count: &AtomicUsize) {
    let before = count.load(Ordering::Relaxed);
    let calls = servers.len() * 3;
    assert!(eventually(LONG, || count.load(Ordering::Relaxed) >= before + calls));
}

/// For how long credentials rotate.
pub(crate) fn rotation(usually: u64) -> Duration {
    Duration::from_secs(storm::number("QUORUMLOCK_ROTATION_SECONDS").unwrap_or(usually))
}

/// For locks that are held and taken by nodes whose credentials rotate.
pub(crate) fn for_load(servers: &[Server]) -> Builder {
    builder(servers).ttl(Duration::from_secs(3))
}

/// Eight threads take locks under watchdogs, and one lock is held, while `rotate` runs, which gets
/// the number of locks that were taken. No call fails, and no lock is lost.
pub(crate) fn under_load(builder: Builder, rotate: impl FnOnce(&AtomicUsize)) {
    let losses = Seen::nothing();
    let redlock = builder.observer(losses.by(loss_text)).build().unwrap();
    let held = redlock
        .mutex("held")
        .watchdog(Watchdog::new())
        .lock()
        .unwrap();
    let is_over = AtomicBool::new(false);
    let pairs = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Also where a check below fails.
        let _ends = StopAtEnd(&is_over);
        for number in 0..8 {
            let mutex = redlock
                .mutex(format!("taken/{}", number / 2))
                .watchdog(Watchdog::new());
            let (is_over, pairs) = (&is_over, &pairs);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    pair(&mutex);
                    pairs.fetch_add(1, Ordering::Relaxed);
                    // Thousands of locks are enough: other tests need the processors.
                    thread::sleep(Duration::from_millis(10));
                }
            });
        }
        rotate(&pairs);
    });
    held.ensure(Duration::from_millis(1)).unwrap();
    unlock(held);
    assert_eq!(losses.all(), [""; 0]);
}

/// Waits until some more locks were taken.
fn goes_on(pairs: &AtomicUsize) {
    let before = pairs.load(Ordering::Relaxed);
    assert!(eventually(LONG, || pairs.load(Ordering::Relaxed) > before + 8));
}

#[test]
fn passwords_rotate_while_locks_are_held_and_taken() {
    skip_unless!(has_users());
    let (servers, password, failures) = fixture(5, "p0");
    let calls = Arc::new(AtomicUsize::new(0));
    let (now, count) = (Arc::clone(&password), Arc::clone(&calls));
    let builder = for_load(&servers)
        .credentials(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(current(&now))
        })
        .observer(failures.by(failure_text));
    under_load(builder, |pairs| {
        let begin = Instant::now();
        let mut old = "p0".to_owned();
        for generation in 1.. {
            if begin.elapsed() >= rotation(4) {
                break;
            }
            let new = format!("p{generation}");
            set_all_passwords(&servers, &[&old, &new]);
            password.lock().unwrap().clone_from(&new);
            wait_for_logins(&servers, &calls);
            for server in &servers {
                set_passwords(server, &[&new]);
                // As a server does that ends the connections of a credential.
                cut(server);
                goes_on(pairs);
            }
            old = new;
        }
    });
    assert_eq!(failures.all(), [""; 0]);
    let late = client_at(servers.iter().map(Server::url), |builder| {
        builder.credentials(|_| Ok(Credentials::new("p0").user("app")))
    });
    let error = late.mutex("held").try_lock().unwrap_err();
    let mut causes = error.causes().iter().map(|fault| fault.cause());
    assert!(causes.all(|cause| cause == Cause::Auth), "{error}");
}

#[test]
fn an_open_connection_logs_in_anew_and_stays() {
    let server = Fake::healthy();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let provider = move |address: &str| {
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        // Three calls for each password: only another one is sent.
        let call = counter.fetch_add(1, Ordering::Relaxed) / 3;
        Ok(Credentials::new(format!("p{call}")).refresh_after(REFRESH))
    };
    let redlock = client_at([server.url()], |builder| builder.credentials(provider));
    let mutex = redlock.mutex("a");
    assert!(eventually(LONG, || {
        pair(&mutex);
        calls.load(Ordering::Relaxed) >= 10
    }));
    pair(&mutex);
    drop((mutex, redlock));
    let is_dropped = || Arc::strong_count(&calls) == 1;
    assert!(
        eventually(LONG, is_dropped),
        "the thread ends with the client"
    );
    assert_eq!(server.connections(), 1);
    let commands = server.commands_on(0);
    let logins = commands.iter().filter(|command| is(command, "AUTH"));
    let logins: Vec<String> = logins.map(|command| command[1].clone()).collect();
    assert!(logins.len() >= 3, "{logins:?}");
    assert!(is(&commands[0], "AUTH"), "before all else");
    let expected: Vec<String> = (0..logins.len()).map(|call| format!("p{call}")).collect();
    assert_eq!(logins, expected);
}

/// How many logins a server has accepted; many, where it does not count those that it refuses.
fn accepted_logins(server: &Server) -> usize {
    let Answer::Text(stats) = server.command(&["INFO", "commandstats"]).unwrap() else {
        return 0;
    };
    let line = stats.lines().find(|line| line.starts_with("cmdstat_auth:"));
    let number = |name: &str| {
        let (_, rest) = line?.split_once(name)?;
        rest.split(',').next()?.trim().parse::<usize>().ok()
    };
    match (number(":calls="), number(",failed_calls=")) {
        (Some(calls), Some(failed)) => calls - failed,
        (Some(_), None) => usize::MAX,
        (None, _) => 0,
    }
}

#[test]
fn a_server_that_refuses_new_credentials_keeps_the_old_ones_until_it_has_them() {
    skip_unless!(has_users());
    let (servers, password, failures) = fixture(3, "old");
    let redlock = client(&servers, &password, &failures);
    let mutex = redlock.mutex("a");
    pair(&mutex);
    "new".clone_into(&mut password.lock().unwrap());
    let refused = |event: &String| event.contains("credentials not replaced: wrong password");
    assert!(eventually(LONG, || {
        pair(&mutex);
        failures.all().iter().filter(|event| refused(event)).count() >= servers.len()
    }));
    let all = failures.all();
    assert!(all.iter().all(refused), "{all:?}");
    set_all_passwords(&servers, &["old", "new"]);
    // It is tried again until the server accepts it, also while no call is made; then the old one
    // is not needed.
    let accepted = || servers.all(|server| accepted_logins(server) >= 2);
    assert!(eventually(LONG, accepted));
    assert_eq!(failures.all().len(), servers.len(), "once each");
    set_all_passwords(&servers, &["new"]);
    pair(&mutex);
}

#[test]
fn a_waiting_call_is_woken_after_a_rotation() {
    skip_unless!(has_users());
    let (servers, password, failures) = fixture(3, "old");
    let [mine, theirs] = [(); 2].map(|()| client(&servers, &password, &failures));
    let held = theirs.mutex("a").lock().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| mine.mutex("a").lock().unwrap());
        has_channels(&servers, 1);
        let before = subscribers(&servers);
        set_all_passwords(&servers, &["old", "new"]);
        "new".clone_into(&mut password.lock().unwrap());
        // A connection that is subscribed cannot log in anew, so it is made anew.
        assert!(eventually(LONG, || {
            subscribers(&servers)
                .iter()
                .zip(&before)
                .all(|(now, before)| now.starts_with("id=") && now != before)
        }));
        has_channels(&servers, 1);
        unlock(held);
        drop(waiting.join().unwrap());
    });
    assert_eq!(failures.all(), [""; 0]);
}

#[test]
fn a_provider_that_fails_is_named_and_nothing_that_it_returned() {
    let server = Fake::healthy();
    type Provided = Result<Credentials, Box<dyn std::error::Error + Send + Sync>>;
    let panics = || -> Provided { panic!("hunter2") };
    let table: [(fn() -> Provided, CredentialsError); 5] = [
        (|| Err("hunter2".into()), CredentialsError::Failed),
        (panics, CredentialsError::Panicked),
        (|| Ok(Credentials::new("")), CredentialsError::Empty),
        (
            || Ok(Credentials::new("hunter2".repeat(150_000))),
            CredentialsError::TooLong,
        ),
        (
            || {
                thread::sleep(LONG);
                Ok(Credentials::new("hunter2"))
            },
            CredentialsError::TimedOut,
        ),
    ];
    for (provider, expected) in table {
        let redlock = client_at([server.url()], |builder| {
            // A panic takes a while, on a busy machine: it prints where it was.
            let builder = builder.node_timeout(Duration::from_secs(2));
            builder.credentials(move |_| provider())
        });
        let begin = Instant::now();
        let error = redlock.mutex("a").try_lock().unwrap_err();
        // An error ends the call when it is there, and not at the limit of the attempt, 4 s.
        let limit = match expected {
            CredentialsError::Panicked | CredentialsError::TimedOut => LONG / 2,
            _ => Duration::from_secs(3),
        };
        assert!(begin.elapsed() < limit, "{:?}", begin.elapsed());
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(
            error.causes()[0].cause(),
            Cause::Credentials(expected),
            "{error}"
        );
        let shown = format!("{error} {error:?} {redlock:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!error.is_permanent());
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_provider_that_blocks_for_one_node_delays_no_lock() {
    let servers = Server::several(3).unwrap();
    let slow = servers[1].address();
    let provider = move |node: &str| {
        if node == slow {
            thread::sleep(LONG);
        }
        Err("none".into())
    };
    let redlock = client_with(&servers, |builder| {
        let builder = builder.node_timeout(Duration::from_secs(2));
        builder.credentials(provider)
    });
    // All fail here, and none waits for the one that blocks longer than for a connection.
    let begin = Instant::now();
    assert!(redlock.mutex("a").try_lock().is_err());
    assert!(begin.elapsed() < LONG / 2);
    drop(redlock);
    assert!(
        begin.elapsed() < LONG / 2,
        "the last handle waits for no provider"
    );
}

#[test]
fn a_password_file_is_read_again() {
    skip_unless!(has_users());
    let servers = servers_with_users(3, "one");
    let directory = servers[0].directory();
    let file = directory.join("password");
    // As Kubernetes mounts a secret: a link to a folder is exchanged.
    let mount = |version: &str, text: &[u8]| {
        let folder = directory.join(version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("password"), text).unwrap();
        let link = directory.join("data.new");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        fs::rename(&link, directory.join("data")).unwrap();
    };
    mount("v1", b"one\r\n");
    std::os::unix::fs::symlink(Path::new("data/password"), &file).unwrap();
    let urls: Vec<String> = servers.each(|server| server.url().replace("redis://", "redis://app@"));
    let failures = Seen::nothing();
    let redlock = client_at(&urls, |builder| {
        let builder = builder.password_file(&file);
        builder.observer(failures.by(failure_text))
    });
    let mutex = redlock.mutex("a");
    pair(&mutex);
    mount("v2", b"\xff\n");
    let is_told = |what: &str| {
        let is_told = eventually(LONG, || {
            pair(&mutex);
            let told = failures.all().into_iter();
            told.filter(|event| event.contains(what)).count() >= servers.len()
        });
        assert!(is_told, "{what}: {:?}", failures.all());
    };
    is_told("the password file is not UTF-8");
    set_all_passwords(&servers, &["one", "two"]);
    mount("v3", b"two\n");
    let by_v3 = |server: &Server| {
        set_passwords(server, &["two"]);
        cut(server);
    };
    thread::sleep(Duration::from_millis(1500));
    servers.iter().for_each(by_v3);
    pair(&mutex);
    fs::remove_file(directory.join("data")).unwrap();
    is_told("the password file does not exist");
    let told = failures.all();
    assert!(told.iter().all(|event| !event.contains("lost")));

    let absent = Redlock::builder().nodes(&urls).password_file(&file).build();
    let message = absent.unwrap_err().to_string();
    assert!(
        message.starts_with("password_file: /") && message.contains("does not exist"),
        "{message}"
    );
    let none = Redlock::builder().nodes(&urls).build().unwrap_err();
    let message = none.to_string();
    assert!(
        message.starts_with("node 0: a user without a password"),
        "{message}"
    );
    let builder = Redlock::builder().nodes(&urls);
    fails(builder.password_file(directory).build(), ErrorKind::Config);
}
