//! The command line over TLS: every command reaches the nodes, and `doctor` names each fault.

use super::deployment::{Ended, run, tool};
use crate::support::capable::has_tls;
use crate::support::server::Server;
use crate::tls::certificates::{Authority, Particulars};

/// Nodes that require a client certificate and a password, and the options that reach them.
struct Secured {
    _servers: Vec<Server>,
    urls: String,
    files: Vec<String>,
}

fn secured(authority: &Authority, scheme: &str) -> Secured {
    let plan = || {
        authority
            .plan("node")
            .arguments(&["--requirepass", "hunter2"])
    };
    let servers: Vec<Server> = (0..3).map(|_| plan().start().unwrap()).collect();
    let url = |server: &Server| format!("{scheme}://:hunter2@127.0.0.1:{}", server.port());
    let file = |name: &str| authority.path(name).display().to_string();
    let files = [
        ("--cacert", "ca.crt"),
        ("--cert", "client.crt"),
        ("--key", "client.key"),
    ];
    Secured {
        urls: servers.iter().map(url).collect::<Vec<_>>().join(","),
        files: files
            .into_iter()
            .flat_map(|(option, name)| [option.to_owned(), file(name)])
            .collect(),
        _servers: servers,
    }
}

impl Secured {
    fn run(&self, words: &[&str], options: &[&str]) -> Ended {
        let files = self.files.iter().map(String::as_str);
        let (command, rest) = words.split_first().unwrap();
        let words: Vec<&str> = [*command]
            .into_iter()
            .chain(files)
            .chain(options.iter().chain(rest).copied())
            .collect();
        let mut tool = tool(&words);
        tool.env("QUORUMLOCK_NODES", &self.urls);
        let ended = run(tool);
        assert!(!ended.all().contains("hunter2"), "{}", ended.all());
        ended
    }
}

#[test]
fn every_command_reaches_nodes_that_require_a_certificate() {
    if !has_tls() {
        return;
    }
    let authority = Authority::new();
    authority
        .issue("node", Particulars::default())
        .issue("client", Particulars::default());
    let inner = ["--", env!("CARGO_BIN_EXE_quorumlock")];
    for (scheme, options) in [("rediss", &[][..]), ("redis", &["--tls"])] {
        let nodes = secured(&authority, scheme);
        let commands: [(&[&str], &str); 8] = [
            (&["run", "-n", "a", "--", "echo", "done"], "done\n"),
            (
                &[
                    "run", "--fenced", "--wait", "5s", "a", "b", "--", "echo", "done",
                ],
                "done\n",
            ),
            (&["nodes"], "voting"),
            (&["doctor", "--watch", "10ms"], "fine: all 3 nodes vote"),
            (&["ls"], ""),
            (&["scan", "--ignore", "fence-at-rest"], ""),
            (&["show", "a"], "free"),
            (&["bench", "--duration", "50ms"], "pairs"),
        ];
        for (words, expected) in commands {
            let ended = nodes.run(words, options);
            assert!(
                ended.code == Some(0) && ended.out.contains(expected),
                "{words:?}: {}",
                ended.all()
            );
        }
        // While it is held: shown, and broken. The last node may still be at its handshake when a
        // majority grants.
        for (words, expected, code) in [
            (&["ls"][..], "held", Some(0)),
            (&["show", "held"], "by a majority", Some(0)),
            (&["break", "held", "--yes"], "", Some(70)),
        ] {
            let held = [
                &["run", "--keep-nodes", "--ttl", "2s", "held"],
                &inner[..],
                words,
            ]
            .concat();
            let own: Vec<&str> = options
                .iter()
                .copied()
                .chain(nodes.files.iter().map(String::as_str))
                .collect();
            let ended = nodes.run(&[&held[..], &own].concat(), options);
            assert!(
                ended.code == code && ended.out.contains(expected),
                "{words:?}: {}",
                ended.all()
            );
        }
    }
}

#[test]
fn doctor_names_each_fault_of_tls() {
    if !has_tls() {
        return;
    }
    let authority = Authority::new();
    let plain = Particulars::default();
    authority.issue("good", plain).issue("node", plain);
    let sound: Vec<Server> = (0..2).map(|_| authority.server("good")).collect();
    let roots = authority.path("ca.crt").display().to_string();
    let finds = |third: &str, options: &[&str], code: i32, words: &[&str]| {
        let mut urls: Vec<String> = sound.iter().map(Server::url).collect();
        urls.push(third.to_owned());
        // The third node is another one each time, and joins the others.
        let doctor = [
            "doctor",
            "--restart-policy",
            "off",
            "--cacert",
            &roots,
            "--nodes",
            &urls.join(","),
        ];
        let ended = run(tool(&[&doctor[..], options].concat()));
        let is_named =
            ended.code == Some(code) && words.iter().all(|word| ended.out.contains(word));
        assert!(
            is_named && !ended.all().contains("hunter2"),
            "{words:?}: {}",
            ended.all()
        );
    };
    for (particulars, words) in [
        (
            Particulars::named("DNS:hunter2.internal"),
            "issued for another name or address",
        ),
        (
            Particulars::EXPIRED,
            "the server's certificate is not accepted: expired",
        ),
    ] {
        let server = authority.issue("node", particulars).server("node");
        finds(
            &server.url(),
            &[],
            1,
            &["fault: tls", words, "2 of 3 nodes vote"],
        );
    }
    let other = Authority::new();
    let server = other.issue("node", plain).server("node");
    finds(&server.url(), &[], 1, &["fault: tls", "unknown issuer"]);
    let server = authority.issue("node", plain).plan("node").start().unwrap();
    finds(
        &server.url(),
        &[],
        1,
        &["fault: tls", "the server requires a client certificate"],
    );
    let server = Server::with(&["--requirepass", "hunter2"]).unwrap();
    let address = server.address();
    finds(
        &format!("rediss://:hunter2@{address}"),
        &[],
        1,
        &["fault: tls: does not speak TLS"],
    );
    // And the other way round.
    let server = authority.server("good");
    finds(
        &format!("redis://:hunter2@{}", server.address()),
        &[],
        1,
        &["fault: no-answer", "rediss://"],
    );
    finds(&server.url(), &[], 0, &["fine"]);
    let plain = format!("redis://{}", server.address());
    // With a limit that is shorter than the library's default time to live.
    let ended = run(tool(&[
        "run",
        "-n",
        "--max-ttl",
        "5s",
        "--ttl",
        "5s",
        "--nodes",
        &plain,
        "job",
        "--",
        "true",
    ]));
    assert!(
        ended.all().contains("the URL does not say rediss://"),
        "{}",
        ended.all()
    );
}

#[test]
fn a_name_that_the_nodes_share_is_checked_and_nothing_switches_the_check_off() {
    if !has_tls() {
        return;
    }
    let authority = Authority::new();
    let names = Particulars::named("DNS:redis.internal");
    let server = authority.issue("node", names).server("node");
    let url = server.url();
    let roots = authority.path("ca.crt").display().to_string();
    let ended = |options: &[&str]| {
        run(tool(
            &[&["doctor", "--cacert", &roots, "--nodes", &url], options].concat(),
        ))
    };
    assert_eq!(ended(&[]).code, Some(2));
    assert_eq!(ended(&["--sni", "redis.internal"]).code, Some(0));
    assert_eq!(ended(&["--sni", "other.internal"]).code, Some(2));
    assert_eq!(ended(&["--insecure"]).code, Some(64));
    let absent = ended(&["--cacert", "/absent/ca.crt"]);
    assert!(
        absent.code == Some(78) && absent.err.contains("/absent/ca.crt"),
        "{}",
        absent.all()
    );
}
