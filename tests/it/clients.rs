//! What the tests of the lock have in common: clients, keys on servers, and errors taken apart.

use crate::prelude::*;
use quorumlock::Result;

/// Long enough for anything that is to happen on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// A time to live that ends after every test: a key that goes away meanwhile was released.
pub(crate) const LONG_TTL: Duration = Duration::from_secs(60);
/// The time for a node to answer in tests about time. An attempt that has to connect first takes
/// twice as long at most.
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_millis(50);
/// How much later than its deadline a call may return: the time to be scheduled, and no more.
pub(crate) const SLACK: Duration = Duration::from_millis(20);

/// Time for a node to answer in tests that are not about time: a busy machine is no reason to fail.
pub(crate) const LONG_NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Asserts what is to become true within `SOON`: [`SOON`], or what is called so where the assertion
/// is. A message behind it is as in `assert`.
macro_rules! assert_soon {
    ($condition:expr $(, $($message:tt)+)?) => {
        assert!(eventually(SOON, || $condition) $(, $($message)+)?)
    };
}
pub(crate) use assert_soon;

/// A function that picks this from an event, if it is one of that kind.
macro_rules! picked {
    ($event:pat => $picked:expr) => {
        |event: &Event| match event {
            $event => Some($picked),
            _ => None,
        }
    };
}
pub(crate) use picked;

/// A client of these servers with a long node timeout.
pub(crate) fn client<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Redlock {
    builder(servers).build().unwrap()
}

/// So many servers, and a client of them with a long node timeout.
pub(crate) fn deployment(nodes: usize) -> (Vec<Server>, Redlock) {
    let servers = Server::several(nodes).unwrap();
    let client = client(&servers);
    (servers, client)
}

/// [`deployment`] with further settings of the client.
pub(crate) fn deployment_with(
    nodes: usize,
    set: impl FnOnce(Builder) -> Builder,
) -> (Vec<Server>, Redlock) {
    let servers = Server::several(nodes).unwrap();
    let client = client_with(&servers, set);
    (servers, client)
}

/// So many servers, and clients of them with a long node timeout, each as of a program of its own.
pub(crate) fn programs<const N: usize>(nodes: usize) -> (Vec<Server>, [Redlock; N]) {
    let servers = Server::several(nodes).unwrap();
    let clients = [(); N].map(|()| client(&servers));
    (servers, clients)
}

/// A server alone, and a client of it with a long node timeout.
pub(crate) fn single() -> (Server, Redlock) {
    let server = Server::start().unwrap();
    let client = client([&server]);
    (server, client)
}

/// What is asked of several servers.
pub(crate) trait Several {
    fn all(&self, is_true: impl FnMut(&Server) -> bool) -> bool;

    /// The results, in the order of the servers.
    fn each<T>(&self, ask: impl FnMut(&Server) -> T) -> Vec<T>;
}

impl Several for [Server] {
    fn all(&self, is_true: impl FnMut(&Server) -> bool) -> bool {
        self.iter().all(is_true)
    }

    fn each<T>(&self, ask: impl FnMut(&Server) -> T) -> Vec<T> {
        self.iter().map(ask).collect()
    }
}

/// A server whose writes are on disk before it answers them: it keeps what it has granted.
pub(crate) fn durable() -> Plan {
    Server::plan().arguments(&["--appendonly", "yes", "--appendfsync", "always"])
}

/// A client of these URLs with a long node timeout.
pub(crate) fn client_of<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Redlock {
    builder_of(urls).build().unwrap()
}

/// A client of these URLs with the settings of a program that makes none.
pub(crate) fn plain_client<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Redlock {
    client_at(urls, |builder| builder)
}

/// A client of these URLs with this node timeout.
pub(crate) fn client_within<U: Into<String>>(
    urls: impl IntoIterator<Item = U>,
    node_timeout: Duration,
) -> Redlock {
    client_at(urls, |builder| builder.node_timeout(node_timeout))
}

/// A client of these servers with a long node timeout and further settings.
pub(crate) fn client_with<'s>(
    servers: impl IntoIterator<Item = &'s Server>,
    set: impl FnOnce(Builder) -> Builder,
) -> Redlock {
    set(builder(servers)).build().unwrap()
}

/// A client of these URLs with these settings.
pub(crate) fn client_at<U: Into<String>>(
    urls: impl IntoIterator<Item = U>,
    set: impl FnOnce(Builder) -> Builder,
) -> Redlock {
    set(Redlock::builder().nodes(urls)).build().unwrap()
}

pub(crate) fn builder<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Builder {
    builder_of(servers.into_iter().map(Server::url))
}

/// The same for these URLs.
pub(crate) fn builder_of<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Builder {
    let builder = Redlock::builder().nodes(urls).max_ttl(LONG_TTL * 2);
    builder.node_timeout(LONG_NODE_TIMEOUT)
}

/// Ends the loops of other threads, also in a panic.
pub(crate) struct StopAtEnd<'s>(pub(crate) &'s AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An observer that hands each event to a value that the test keeps.
pub(crate) fn calling<T: Send + Sync + 'static>(
    value: &Arc<T>,
    event: fn(&T, &Event),
) -> impl Fn(&Event) + Send + Sync + 'static + use<T> {
    let value = Arc::clone(value);
    move |reported| event(&value, reported)
}

/// What observers pick from events.
pub(crate) struct Seen<T>(Arc<Guarded<Vec<T>>>);

impl<T: Clone + Send + 'static> Seen<T> {
    pub(crate) fn nothing() -> Seen<T> {
        Seen(Arc::default())
    }

    /// An observer that keeps what this function picks.
    pub(crate) fn by(
        &self,
        pick: fn(&Event) -> Option<T>,
    ) -> impl Fn(&Event) + Send + Sync + 'static + use<T> {
        let seen = Arc::clone(&self.0);
        move |event| seen.lock().unwrap().extend(pick(event))
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// The lock of a resource, with a time to live that outlives the test.
pub(crate) fn long_lock(client: &Redlock, resource: &str) -> Mutex {
    client.mutex(resource).ttl(LONG_TTL)
}

/// Shows which row of its table a test was at when it failed.
#[allow(clippy::print_stdout)]
pub(crate) fn at_row(row: std::fmt::Arguments) {
    println!("{row}");
}

/// The text of this value contains that.
#[track_caller]
pub(crate) fn shows(value: &impl Display, text: &str) {
    assert!(value.to_string().contains(text), "{value}");
}

/// One attempt that must win.
#[track_caller]
pub(crate) fn take<K: Kind>(mutex: &Mutex<K>) -> MutexGuard<K> {
    mutex
        .try_lock()
        .expect("enough nodes answer")
        .expect("the lock is free")
}

/// Whether a wait of so long ends without the lock, and without an error.
#[track_caller]
pub(crate) fn is_held_for<K: Kind>(mutex: &Mutex<K>, limit: Duration) -> bool {
    mutex
        .lock_timeout(limit)
        .expect("enough nodes answer")
        .is_none()
}

/// Waits for a lock that becomes free soon.
#[track_caller]
pub(crate) fn wait_for<K: Kind>(mutex: &Mutex<K>) -> MutexGuard<K> {
    mutex
        .lock_timeout(SOON)
        .expect("enough nodes answer")
        .expect("the lock becomes free")
}

/// Waits for a lock that is held, in another thread; `during` happens while it waits. Returns how
/// long it took from the end of that until it had the lock.
#[track_caller]
pub(crate) fn time_to_wake<K: Kind>(mutex: &Mutex<K>, during: impl FnOnce()) -> Duration {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let guard = wait_for(mutex);
            let at = Instant::now();
            unlock(guard);
            at
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished(), "{mutex:?}");
        during();
        let done = Instant::now();
        waiting.join().unwrap().saturating_duration_since(done)
    })
}

/// That this fails with an error of this kind.
#[track_caller]
pub(crate) fn fails<T: Debug>(result: Result<T>, kind: ErrorKind) {
    assert_eq!(result.unwrap_err().kind(), kind);
}

/// The mutex, fenced or not, for what holds for both.
pub(crate) fn fenced_if(is_fenced: bool, mutex: Mutex) -> Mutex<Any> {
    match is_fenced {
        true => mutex.fenced().erase(),
        false => mutex.erase(),
    }
}

/// Whether one attempt gets the lock, which is then released.
pub(crate) fn can_take<K: Kind>(mutex: &Mutex<K>) -> bool {
    mutex.try_lock().is_ok_and(|guard| guard.is_some())
}

/// Whether one attempt ends without the lock, and without an error.
#[track_caller]
pub(crate) fn is_held<K: Kind>(mutex: &Mutex<K>) -> bool {
    mutex.try_lock().expect("enough nodes answer").is_none()
}

/// One attempt that must fail, not merely lose.
#[track_caller]
pub(crate) fn failure<K: Kind>(mutex: &Mutex<K>) -> Error {
    mutex.try_lock().expect_err("too few nodes answer")
}

/// Why the first node that such an attempt names has failed.
#[track_caller]
pub(crate) fn cause<K: Kind>(mutex: &Mutex<K>) -> Cause {
    causes(&failure(mutex))[0].2
}

/// Extends a lock that is held.
#[track_caller]
pub(crate) fn extend<K: Kind>(guard: &MutexGuard<K>, ttl: Duration) {
    assert_eq!(guard.extend(ttl).unwrap(), ExtendOutcome::Extended);
}

/// Releases a lock that is held.
#[track_caller]
pub(crate) fn unlock<K: Kind>(guard: MutexGuard<K>) {
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

/// Stops these servers until they are to go on: their connections stay, and nothing is answered.
#[track_caller]
pub(crate) fn pause<'s>(servers: impl IntoIterator<Item = &'s Server>) {
    let pause = |server: &Server| server.pause().unwrap();
    servers.into_iter().for_each(pause);
}

/// Lets these servers go on.
#[track_caller]
pub(crate) fn resume<'s>(servers: impl IntoIterator<Item = &'s Server>) {
    let resume = |server: &Server| server.resume().unwrap();
    servers.into_iter().for_each(resume);
}

/// Sends one command, whatever the server replies.
#[track_caller]
pub(crate) fn ask(server: &Server, words: &[&str]) {
    server.command(words).unwrap();
}

/// Sends one command to each of these servers, whatever they reply.
#[track_caller]
pub(crate) fn ask_each<'s>(servers: impl IntoIterator<Item = &'s Server>, words: &[&str]) {
    for server in servers {
        ask(server, words);
    }
}

/// Lets the server close the connections of all clients, but for those that are subscribed.
#[track_caller]
pub(crate) fn cut(server: &Server) {
    ask(
        server,
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
    );
}

/// Waits until each server has the key.
#[track_caller]
pub(crate) fn everywhere(servers: &[Server], key: &str) {
    let has_it = |server: &Server| value(server, key).is_some();
    assert_soon!(servers.iter().all(has_it), "{key} is not everywhere");
}

/// Waits until no server has the key.
#[track_caller]
pub(crate) fn nowhere(servers: &[Server], key: &str) {
    let has_none = |server: &Server| value(server, key).is_none();
    assert_soon!(servers.iter().all(has_none), "{key} is left");
}

/// Sends one command that the server is to accept.
#[track_caller]
pub(crate) fn ok(server: &Server, words: &[&str]) {
    let answer = server.command(words).unwrap();
    assert_eq!(answer, Answer::Text("OK".into()), "{words:?}");
}

/// Is the password of every user that tests make, and must be in no message.
pub(crate) const SECRET: &str = "hunter2";

/// A user with these rights and no others, and the URL with which to log in.
#[track_caller]
pub(crate) fn user_named(server: &Server, name: &str, rights: &str) -> String {
    let rule = format!("ACL SETUSER {name} reset on >{SECRET} {rights}");
    ok(server, &rule.split(' ').collect::<Vec<_>>());
    with_login(server, &format!("{name}:{SECRET}"))
}

/// The same, if the name does not matter.
#[track_caller]
pub(crate) fn user(server: &Server, rights: &str) -> String {
    user_named(server, "locker", rights)
}

/// The URL of a server with a user and a password.
pub(crate) fn with_login(server: &Server, login: &str) -> String {
    server.url().replacen("://", &format!("://{login}@"), 1)
}

/// The time of day, in microseconds, as servers tell it.
pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_micros() as u64
}

/// The value of a key, if it is there.
pub(crate) fn value(server: &Server, key: &str) -> Option<String> {
    match server.command(&["GET", key]).unwrap() {
        Answer::Nil => None,
        Answer::Text(value) => Some(value),
        answer => panic!("GET {key}: {answer:?}"),
    }
}

/// Pauses a server with a backlog of 1 and fills its queue of connections: others are neither made
/// nor refused until what this returns is dropped and the server goes on.
#[track_caller]
pub(crate) fn hang_and_fill(server: &Server) -> Vec<TcpStream> {
    server.pause().unwrap();
    let address = server.address().parse().unwrap();
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok();
    let connections: Vec<_> = (0..10).map_while(connect).collect();
    assert!(connections.len() < 10, "the queue takes all");
    connections
}

/// How long a key will live by itself; none when it has no end. It must be there.
pub(crate) fn left(server: &Server, key: &str) -> Option<Duration> {
    match server.command(&["PTTL", key]).unwrap() {
        Answer::Number(-1) => None,
        Answer::Number(millis @ 0..) => Some(Duration::from_millis(millis as u64)),
        answer => panic!("PTTL {key}: {answer:?}"),
    }
}

/// How many keys each of three servers has.
pub(crate) fn key_counts(servers: &[Server]) -> [usize; 3] {
    [0, 1, 2].map(|index: usize| servers[index].keys().unwrap().len())
}

/// This number of a server's INFO.
#[track_caller]
pub(crate) fn figure(server: &Server, field: &str) -> u64 {
    server.info(field).unwrap().parse().unwrap()
}

/// How many connections a server has accepted.
#[track_caller]
pub(crate) fn connections(server: &Server) -> u64 {
    figure(server, "total_connections_received")
}

/// How often a server has run a command, by its own count.
#[track_caller]
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let statistics = server.text(&["INFO", "commandstats"]);
    let start = format!("cmdstat_{command}:calls=");
    let line = statistics
        .lines()
        .find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// How often all of these servers together have run a command.
#[track_caller]
pub(crate) fn all_calls(servers: &[Server], command: &str) -> u64 {
    let mut sum = 0;
    // From a closure, a failure would show its line.
    for server in servers {
        sum += calls(server, command);
    }
    sum
}

/// How often a server has run a script.
#[track_caller]
pub(crate) fn scripts_run(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}

/// How often a server was asked for a lock, plain or fenced, or for its release.
#[track_caller]
pub(crate) fn asked(server: &Server) -> u64 {
    calls(server, "set") + scripts_run(server)
}

/// Waits until the key is on none of the servers, and sees that it stays so.
#[track_caller]
pub(crate) fn gone_for_good<'s>(servers: impl IntoIterator<Item = &'s Server> + Clone, key: &str) {
    let gone = || {
        servers
            .clone()
            .into_iter()
            .all(|server| value(server, key).is_none())
    };
    assert_soon!(gone(), "{key} is still there");
    let stays = stays_for(Duration::from_millis(200), gone);
    assert!(stays, "{key} came back");
}

/// [`gone_for_good`], for each of these keys.
#[track_caller]
pub(crate) fn all_gone_for_good<'s>(
    servers: impl IntoIterator<Item = &'s Server> + Clone,
    keys: &[&str],
) {
    for key in keys {
        gone_for_good(servers.clone(), key);
    }
}

/// The URL of a node that is not there.
pub(crate) fn dead() -> String {
    format!("redis://127.0.0.1:{}", free_port().unwrap())
}

/// The host and port of an embedded node.
pub(crate) fn address_of(node: &EmbeddedNode) -> String {
    node.url().replace("redis://", "")
}

/// Each failed node's address, and how far it came and what was wrong, in words for a reader of the
/// test.
pub(crate) fn causes(error: &Error) -> Vec<(String, Phase, Cause)> {
    error
        .causes()
        .iter()
        .map(|node| (node.address().to_owned(), node.phase(), node.cause()))
        .collect()
}

/// The error has this cause alone, of the node at this address.
#[track_caller]
pub(crate) fn has_cause(error: &Error, address: &str, phase: Phase, cause: Cause) {
    assert_eq!(
        causes(error),
        [(address.to_owned(), phase, cause)],
        "{error}"
    );
}

/// How many nodes have this cause in an error.
pub(crate) fn count_causes(error: &Error, cause: Cause) -> usize {
    let causes = error.causes().iter();
    causes.filter(|node| node.cause() == cause).count()
}

/// What a client knows of the node that was named to it first.
#[track_caller]
pub(crate) fn first_node(client: &Redlock) -> NodeStatus {
    client.nodes().unwrap().swap_remove(0)
}

/// Whether this is true of all nodes of a client, which has some.
#[track_caller]
pub(crate) fn all_nodes(client: &Redlock, is_true: impl FnMut(&NodeStatus) -> bool) -> bool {
    let nodes = client.nodes().unwrap();
    assert!(!nodes.is_empty(), "a client without nodes");
    nodes.iter().all(is_true)
}

#[track_caller]
pub(crate) fn all_vote(client: &Redlock) -> bool {
    all_nodes(client, |node| node.state() == NodeState::Voting)
}

/// Each server in turn hangs while the one after it is down. `next` is called whenever that has
/// changed.
pub(crate) fn minorities_fail(servers: &mut [Server], mut next: impl FnMut()) {
    let count = servers.len();
    for hung in 0..count {
        let down = (hung + 1) % count;
        servers[hung].pause().unwrap();
        servers[down].kill();
        next();
        servers[hung].resume().unwrap();
        next();
        servers[down].restart().unwrap();
        next();
    }
}
