//! The command line over TLS: every command reaches the nodes, and `doctor` names each fault.

use super::*;
use crate::tls::certificates::{Authority, Particulars};
use std::ffi::OsString;

/// Nodes that require a client certificate and a password, and the options that reach them.
struct Secured {
    _servers: Vec<Server>,
    urls: String,
    options: Vec<OsString>,
}

fn secured(authority: &Authority, scheme: &str, option: &str) -> Secured {
    let plan = authority
        .plan("node")
        .arguments(&["--requirepass", "hunter2"]);
    let servers: Vec<Server> = (0..3).map(|_| plan.clone().start().unwrap()).collect();
    let url = |server: &Server| format!("{scheme}://:hunter2@127.0.0.1:{}", server.port());
    let files = [
        ("--cacert", "ca.crt"),
        ("--cert", "client.crt"),
        ("--key", "client.key"),
    ];
    let files = files.map(|(option, name)| [option.into(), authority.path(name).into()]);
    let others = option.split_whitespace().map(OsString::from);
    Secured {
        urls: servers.each(url).join(","),
        options: files.into_iter().flatten().chain(others).collect(),
        _servers: servers,
    }
}

impl Secured {
    fn tool(&self, command: &str) -> Command {
        let mut tool = tool(command);
        tool.args(&self.options).env("QUORUMLOCK_NODES", &self.urls);
        tool
    }

    fn run(&self, command: &str, rest: &str) -> Ended {
        let mut tool = self.tool(command);
        tool.args(rest.split_whitespace());
        run(tool).hides("hunter2")
    }
}

#[test]
fn every_command_reaches_nodes_that_require_a_certificate() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node", "client"]);
    for (scheme, option) in [("rediss", ""), ("redis", "--tls")] {
        let nodes = secured(&authority, scheme, option);
        for (command, rest, expected) in [
            ("run", "-n a -- echo done", "done\n"),
            ("run", "--fenced --wait 5s a b -- echo done", "done\n"),
            ("nodes", "", "voting"),
            ("doctor", "--watch 10ms", "fine: all 3 nodes vote"),
            ("ls", "", ""),
            ("scan", "--ignore fence-at-rest", ""),
            ("show", "a", "free"),
            ("bench", "--duration 50ms", "pairs"),
        ] {
            nodes.run(command, rest).exits(0).prints(expected);
        }
        // While it is held: shown, and broken. The last node may still be at its handshake when a
        // majority grants.
        for (command, expected, code) in [
            ("ls", "held", 0),
            ("show held", "by a majority", 0),
            ("break held --yes", "", 70),
        ] {
            let mut held = nodes.tool("run");
            held.args(["--keep-nodes", "--ttl", "2s", "held", "--", PRESENT])
                .args(command.split(' '))
                .args(&nodes.options);
            run(held).hides("hunter2").exits(code).prints(expected);
        }
    }
}

#[test]
fn doctor_names_each_fault_of_tls() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["good", "node"]);
    let plain = Particulars::default();
    let sound: Vec<Server> = (0..2).map(|_| authority.server("good")).collect();
    let roots = authority.path("ca.crt");
    let finds = |third: &str, code: i32, texts: &[&str]| {
        let urls = format!("{},{},{third}", sound[0].url(), sound[1].url());
        // The third node is another one each time, and joins the others.
        let mut doctor = tool("doctor --restart-policy off --cacert");
        doctor.arg(&roots).args(["--nodes", &urls]);
        let ended = run(doctor).exits(code).hides("hunter2");
        texts.iter().fold(ended, |ended, text| ended.prints(text));
    };
    for (particulars, text) in [
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
        finds(&server.url(), 1, &["fault: tls", text, "2 of 3 nodes vote"]);
    }
    let other = Authority::with(&["node"]);
    let server = other.server("node");
    finds(&server.url(), 1, &["fault: tls", "unknown issuer"]);
    let server = authority.issue("node", plain).plan("node").start().unwrap();
    let requires = "the server requires a client certificate";
    finds(&server.url(), 1, &["fault: tls", requires]);
    let server = Server::with(&["--requirepass", "hunter2"]).unwrap();
    let url = format!("rediss://:hunter2@{}", server.address());
    finds(&url, 1, &["fault: tls: does not speak TLS"]);
    // And the other way round.
    let server = authority.server("good");
    let url = format!("redis://:hunter2@{}", server.address());
    finds(&url, 1, &["fault: no-answer", "rediss://"]);
    finds(&server.url(), 0, &["fine"]);
    // With a limit that is shorter than the library's default time to live.
    let plain = format!("redis://{}", server.address());
    let words = format!("run -n --max-ttl 5s --ttl 5s --nodes {plain} job -- true");
    let text = "the URL does not say rediss://";
    let ended = run(tool(&words));
    assert!(ended.all().contains(text), "{}", ended.all());
}

#[test]
fn a_name_that_the_nodes_share_is_checked_and_nothing_switches_the_check_off() {
    skip_unless!(has_tls());
    let authority = Authority::new();
    let names = Particulars::named("DNS:redis.internal");
    let server = authority.issue("node", names).server("node");
    let url = server.url();
    let roots = authority.path("ca.crt");
    let doctor = |options: &str| {
        let mut doctor = tool("doctor --cacert");
        doctor
            .arg(&roots)
            .args(["--nodes", &url])
            .args(options.split_whitespace());
        run(doctor)
    };
    doctor("").exits(2);
    doctor("--sni redis.internal").exits(0);
    doctor("--sni other.internal").exits(2);
    doctor("--insecure").exits(64);
    doctor("--cacert /absent/ca.crt")
        .exits(78)
        .reports("/absent/ca.crt");
}
