//! Secured: what TLS adds to a pair, what a handshake takes, and what handshakes cost threads that
//! do not need them.
//!
//! Plain servers and servers with TLS take turns. The certificates are issued here, so that this
//! section needs the feature `embedded-tls`, which brings what issues them.

use crate::setting::Setting;
use crate::table::Row;

#[cfg(not(feature = "embedded-tls"))]
pub(crate) fn measure(_: &Setting) -> Vec<Row> {
    vec![Row::missing(
        "TLS to plain",
        "needs --features embedded-tls",
    )]
}

#[cfg(feature = "embedded-tls")]
pub(crate) use with_tls::measure;

#[cfg(feature = "embedded-tls")]
mod with_tls {
    use super::{Row, Setting};
    use crate::comparison::{Samples, Spread, interleave};
    use crate::library;
    use crate::server::Server;
    use crate::servers::Servers;
    use crate::workers::{Work, contest, lockers, measured};
    use quorumlock::{Redlock, Tls};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    const NODES: usize = 5;
    const THREADS: usize = 64;
    const LIMIT: Duration = Duration::from_secs(5);
    /// So many nodes lose their connections at once, and one more stays connected: a majority.
    const RETURNING: usize = 5;
    /// How long pairs are looked at that may be held up.
    const WINDOW: Duration = Duration::from_millis(50);

    /// What makes a client, its server, and whether that forgets its sessions.
    type Contender<'a> = (&'a dyn Fn() -> Redlock, &'a [Server], bool);

    /// What servers show, in a directory that goes with it.
    struct Certificates {
        directory: PathBuf,
        root: String,
    }

    impl Certificates {
        fn issue() -> Certificates {
            let mut root = CertificateParams::new(Vec::new()).expect("no names");
            root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let root_key = KeyPair::generate().expect("a key");
            let key = KeyPair::generate().expect("a key");
            let root_pem = root.self_signed(&root_key).expect("a root").pem();
            let node = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
            let node = node
                .signed_by(&key, &Issuer::new(root, root_key))
                .expect("a certificate");
            let directory =
                std::env::temp_dir().join(format!("quorumlock-floor-{}", std::process::id()));
            fs::create_dir_all(&directory).expect("a directory");
            for (name, text) in [
                ("ca.crt", &root_pem),
                ("node.crt", &node.pem()),
                ("node.key", &key.serialize_pem()),
            ] {
                fs::write(directory.join(name), text).expect("a file");
            }
            Certificates {
                directory,
                root: root_pem,
            }
        }

        fn servers(&self, setting: &Setting, count: usize) -> Vec<Server> {
            let file = |name| self.directory.join(name).display().to_string();
            let certificate = file("node.crt");
            let key = file("node.key");
            let root = file("ca.crt");
            let plan = Server::plan().tls().arguments(&[
                "--tls-auth-clients",
                "no",
                "--tls-cert-file",
                &certificate,
            ]);
            let plan = plan.arguments(&["--tls-key-file", &key, "--tls-ca-cert-file", &root]);
            let start = || {
                (0..count)
                    .map(|_| plan.clone().start().expect("a server with TLS"))
                    .collect()
            };
            setting.cores.for_servers(start)
        }

        fn client(&self, servers: &[Server]) -> Redlock {
            let tls = Tls::new().roots_pem(self.root.as_str());
            Redlock::builder()
                .nodes(servers.iter().map(Server::url))
                .tls(tls)
                .build()
                .expect("a client")
        }
    }

    impl Drop for Certificates {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
        let certificates = Certificates::issue();
        let plain = Servers::start(setting, NODES);
        let secured = certificates.servers(setting, NODES);
        let clients = || {
            [
                library::client(&plain.addresses(NODES)),
                certificates.client(&secured),
            ]
        };
        let mut rows = one_thread(setting, &clients());
        rows.push(processor_time(setting, &clients()));
        rows.push(allocations(setting, &clients()[1]));
        rows.extend(handshakes(
            setting,
            &certificates,
            &plain.processes[..1],
            &secured[..1],
        ));
        drop((plain, secured));
        rows.push(returning(setting, &certificates));
        rows
    }

    fn one_thread(setting: &Setting, clients: &[Redlock; 2]) -> Vec<Row> {
        let plan = setting.plan();
        let [plain, secured] = clients
            .each_ref()
            .map(|client| library::mutex(client, "secured/1"));
        let [plain, secured] = &interleave(
            plan,
            &mut [&mut || library::pair(&plain), &mut || {
                library::pair(&secured)
            }],
        );
        let plain = ("plain", &plain[..]);
        let what = "TLS, 1 thread: pair p50";
        vec![Row::ratio(what, "µs", secured, plain, Samples::pair_p50).ratio_at_most(1.45)]
    }

    fn processor_time(setting: &Setting, clients: &[Redlock; 2]) -> Row {
        let contenders = clients
            .each_ref()
            .map(|client| lockers(THREADS, client, "secured"));
        let turns = setting.choose((7, 1), (2, 1));
        let [plain, secured] = &contest(turns, setting.turn_time(), contenders);
        let rate = Spread::ratio(secured, plain, Work::rate).median;
        let what = format!("TLS, {THREADS} threads: client CPU a pair");
        let plain = ("plain", &plain[..]);
        Row::ratio(what, "µs", secured, plain, Work::processor_micros)
            .ratio_at_most(1.25)
            .note(format!("pairs/s {rate:.2}"))
    }

    fn allocations(setting: &Setting, client: &Redlock) -> Row {
        let mutex = library::mutex(client, "secured/allocations");
        let made = library::allocations(setting.choose(2000, 100), || library::pair(&mutex)).median;
        let what = "TLS: heap allocations a pair and node";
        Row::value(what, "", made / NODES as f64).value_at_most(4.1)
    }

    /// Processor time of the client for a connection that is closed and made again, without what a
    /// plain one takes.
    fn handshakes(
        setting: &Setting,
        certificates: &Certificates,
        plain: &[Server],
        resuming: &[Server],
    ) -> Vec<Row> {
        let number = setting.choose(60, 5);
        let build = || {
            Redlock::builder()
                .node(plain[0].url())
                .build()
                .expect("a client")
        };
        let secured = || certificates.client(resuming);
        let contenders: [Contender<'_>; 3] = [
            (&build, plain, false),
            (&secured, resuming, true),
            (&secured, resuming, false),
        ];
        let [plain, full, resumed] = contenders.map(|(build, servers, is_full)| {
            let clients: Vec<Redlock> = (0..number).map(|_| build()).collect();
            let connect = || {
                clients
                    .iter()
                    .map(|client| u64::from(client.connect(LIMIT).is_ok()))
                    .sum()
            };
            let one = || {
                let _: u64 = connect();
                // A connection that is lost sooner is not made again at once.
                std::thread::sleep(Duration::from_millis(1100));
                if is_full {
                    forget_sessions(servers);
                }
                close_connections(&servers[0]);
                std::thread::sleep(WINDOW);
                measured(connect).processor_micros()
            };
            Spread::of((0..setting.choose(9, 1)).map(|_| one())).median
        });
        let row = |what: &str, time: f64, most| {
            let row = Row::value(
                format!("TLS: client CPU of a handshake, {what}"),
                "µs",
                time - plain,
            );
            row.value_at_most(most)
                .note(format!("and {plain:.0} of the connection"))
        };
        vec![row("full", full, 400.0), row("resumed", resumed, 250.0)]
    }

    /// New settings of TLS come with new keys for tickets: the next handshakes are full ones.
    fn forget_sessions(servers: &[Server]) {
        static SIZE: AtomicUsize = AtomicUsize::new(20_000);
        let size = SIZE.fetch_add(1, Ordering::Relaxed).to_string();
        for server in servers {
            server
                .command(&["CONFIG", "SET", "tls-session-cache-size", &size])
                .expect("a server");
        }
    }

    fn close_connections(server: &Server) {
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .expect("a server");
    }

    /// How much longer the slowest pair of another thread takes while five nodes are connected to
    /// anew, in full.
    fn returning(setting: &Setting, certificates: &Certificates) -> Row {
        let servers = certificates.servers(setting, 2 * RETURNING + 1);
        let client = certificates.client(&servers);
        client.connect(LIMIT).expect("nodes");
        let mutex = library::mutex(&client, "secured/returning");
        let slowest = |returning: &[Server]| {
            forget_sessions(returning);
            returning.iter().for_each(close_connections);
            let begun = Instant::now();
            let mut most = Duration::ZERO;
            while begun.elapsed() < WINDOW {
                let pair = library::pair(&mutex);
                most = most.max(pair.lock + pair.unlock);
            }
            std::thread::sleep(WINDOW);
            most.as_secs_f64() * 1e3
        };
        let rounds = setting.choose(41, 3);
        let both: Vec<[f64; 2]> = (0..rounds)
            .map(|_| [slowest(&[]), slowest(&servers[..RETURNING])])
            .collect();
        let grown = Spread::of(both.iter().map(|[without, with]| with - without)).median;
        let without = Spread::of(both.iter().map(|[without, _]| *without)).median;
        Row::value(
            format!("TLS: {RETURNING} of 11 nodes come back: slowest pair grows by"),
            "ms",
            grown,
        )
        .value_at_most(3.0)
        .note(format!(
            "slowest without {without:.1} ms; medians of {rounds} rounds"
        ))
    }
}
