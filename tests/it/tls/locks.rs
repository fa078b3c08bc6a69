//! Sessions, certificates of clients, and names of servers.

use super::wire::resumed;
use super::*;
use quorumlock::Tls;

/// The first handshake is a full one; the subscription's, and one after the connections were cut,
/// resume.
#[test]
fn commands_and_subscriptions_share_sessions() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node"]);
    for protocol in PROTOCOLS {
        let plan = authority.plan("node").arguments(&[
            "--tls-auth-clients",
            "no",
            "--tls-protocols",
            protocol,
        ]);
        let server = plan.start().unwrap();
        let wire = Proxy::before(server.port());
        wire.keep_beginnings();
        let url = wire.url().replace("redis:", "rediss:");
        let redlock = client_over([url], authority.roots());
        let other = client_over([server.url()], authority.roots());
        let held = other.mutex("orders/42").ttl(30 * SECOND).lock().unwrap();
        let mutex = redlock.mutex("orders/42");
        assert!(
            mutex.lock_timeout(SECOND).unwrap().is_none(),
            "subscribes meanwhile"
        );
        drop(held);
        cut(&server);
        let guard = mutex.lock_timeout(5 * SECOND).unwrap();
        unlock(guard.expect("it connects again"));
        let resumed = resumed(&wire);
        assert!(
            !resumed[0] && resumed.len() >= 3 && resumed[1..].iter().all(|&resumed| resumed),
            "{protocol}: {resumed:?}"
        );
    }
}

#[test]
fn a_client_certificate_lets_in() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node", "client"]);
    for protocol in PROTOCOLS {
        let plan = authority.plan("node");
        let server = plan
            .arguments(&["--tls-protocols", protocol])
            .start()
            .unwrap();
        let tls = authority.identity(authority.roots());
        let redlock = client_over([server.url()], tls);
        let _ = redlock.mutex("orders/42").lock().unwrap().unlock().unwrap();
    }
}

#[test]
fn variables_name_files_of_certificates() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node", "client"]);
    let server = authority.plan("node").start().unwrap();
    let file = |name: &str| authority.path(name).display().to_string();
    let built = |ca: &str, certificate: &str, key: &str| {
        let files = [
            ("Q_CACERT", file(ca)),
            ("Q_CERT", file(certificate)),
            ("Q_KEY", file(key)),
        ];
        Builder::from_variables("Q_", files.into_iter().chain([("Q_NODES", server.url())]))
            .unwrap()
            .build()
    };
    let redlock = built("ca.crt", "client.crt", "client.key").unwrap();
    assert!(redlock.connect(5 * SECOND).is_ok());
    let _ = redlock.mutex("orders/42").lock().unwrap().unlock().unwrap();
    for (files, words) in [
        (
            ("absent.crt", "client.crt", "client.key"),
            format!("tls: {}: No such file", file("absent.crt")),
        ),
        (
            ("ca.crt", "absent.crt", "client.key"),
            format!("tls: {}: No such file", file("absent.crt")),
        ),
        (
            ("ca.crt", "client.crt", "absent.key"),
            format!("tls: {}: No such file", file("absent.key")),
        ),
        (
            ("client.key", "client.crt", "client.key"),
            format!("tls: {}: no certificate in PEM", file("client.key")),
        ),
        (
            ("ca.crt", "client.crt", "node.key"),
            "tls: identity: the private key is not that of the".to_owned(),
        ),
    ] {
        let error = built(files.0, files.1, files.2).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Config && error.to_string().starts_with(&words),
            "{error}"
        );
    }
}

#[test]
fn a_name_counts_in_place_of_the_host() {
    skip_unless!(has_tls());
    let authority = Authority::new();
    authority.issue(
        "node",
        Particulars::named("DNS:redis-1.internal,IP:10.0.0.1"),
    );
    let server = authority.server("node");
    for name in ["redis-1.internal", "10.0.0.1"] {
        let url = format!("{}?server_name={name}", server.url());
        let tls = Tls::new().roots_pem(authority.read("ca.crt"));
        let client = client_over([url], tls);
        unlock(wait_for(&client.mutex("a")));
    }
}
