//! Each fault of TLS by its cause, and nothing of certificates or keys in any output.

use super::*;
use quorumlock::{Tls, TlsError};

/// How the one node fails.
fn handshake_error(url: &str, tls: Tls) -> Error {
    let redlock = client_over([url], tls);
    let error = redlock.mutex("a").try_lock().unwrap_err();
    let [fault] = error.causes() else {
        panic!("{error}")
    };
    assert_eq!(fault.phase(), Phase::Handshake, "{error}");
    // A second attempt does not hide the reason.
    let again = redlock.mutex("a").try_lock().unwrap_err();
    assert_eq!(again.causes()[0].cause(), fault.cause());
    let nodes = redlock.nodes().unwrap();
    hides_secrets(&format!("{error} {error:?} {redlock:?} {nodes:?}"));
    error
}

/// Neither a part of a certificate or key is shown, nor the text that some contain.
#[track_caller]
fn hides_secrets(shown: &str) {
    assert!(
        !shown.contains("hunter2") && !shown.contains("BEGIN"),
        "{shown}"
    );
}

fn cause(url: &str, tls: Tls) -> (Cause, bool) {
    let error = handshake_error(url, tls);
    (error.causes()[0].cause(), error.is_permanent())
}

#[test]
fn each_fault_of_a_certificate_has_its_own_cause() {
    skip_unless!(has_tls());
    use TlsError::*;
    let authority = Authority::new();
    let other = Authority::new();
    let plain = Particulars::default();
    for (particulars, roots, error) in [
        (plain, &other, UnknownIssuer),
        (
            Particulars::named("DNS:hunter2.internal,IP:10.0.0.1"),
            &authority,
            WrongName,
        ),
        (Particulars::EXPIRED, &authority, CertificateExpired),
        (
            Particulars::NOT_YET_VALID,
            &authority,
            CertificateNotYetValid,
        ),
        (Particulars::VERSION_1, &authority, CertificateVersion1),
    ] {
        let server = authority.issue("node", particulars).server("node");
        let expected = (Cause::Tls(error), error != CertificateNotYetValid);
        assert_eq!(cause(&server.url(), roots.roots()), expected);
    }
    // One that has issued itself, as `openssl req -x509` makes it, and that is no root of the
    // client; and one that is.
    for (roots, error) in [(&other, UnknownIssuer), (&authority, BadCertificate)] {
        let server = authority.server("ca");
        assert_eq!(
            cause(&server.url(), roots.roots()),
            (Cause::Tls(error), true)
        );
    }
    // One that is issued for clients only.
    authority.issue(
        "node",
        Particulars::named("IP:127.0.0.1\nextendedKeyUsage=clientAuth"),
    );
    let server = authority.server("node");
    assert_eq!(
        cause(&server.url(), authority.roots()),
        (Cause::Tls(BadCertificate), true)
    );
}

/// Redis waits in silence for the end of a line.
#[test]
fn a_server_without_tls_is_said_to_have_none() {
    let authority = Authority::new();
    for arguments in [&[][..], &["--requirepass", "secret"]] {
        let server = Server::with(arguments).unwrap();
        let url = format!("rediss://{}", server.address());
        assert_eq!(cause(&url, authority.roots()), (Cause::NotTls, true));
    }
    let node = EmbeddedNode::start().unwrap();
    let url = node.url().replace("redis://", "rediss://");
    assert_eq!(
        cause(&url, authority.roots()),
        (Cause::NotTls, true),
        "it answers at once"
    );
}

/// Redis closes such a connection without a byte. What it speaks is asked once, on a second
/// connection, in the first attempt.
#[test]
fn a_server_with_tls_is_said_to_have_it_where_the_url_has_not() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node"]);
    let server = authority.server("node");
    let proxy = Proxy::before(server.port());
    let redlock = client_within([proxy.url()], SECOND);
    let mutex = redlock.mutex("a");
    let cause = || mutex.try_lock().unwrap_err().causes()[0].cause();
    assert_eq!(cause(), Cause::Tls(TlsError::Required));
    let connections = proxy.connections();
    let begun = Instant::now();
    while begun.elapsed() < SECOND {
        assert_eq!(cause(), Cause::Tls(TlsError::Required));
    }
    // Ten by the back-off at most, the one that asks, and some before the answer was there.
    assert!(
        connections <= 8 && proxy.connections() <= connections + 8,
        "{connections} {}",
        proxy.connections()
    );
    let error = mutex.lock().unwrap_err();
    assert!(error.is_permanent(), "{error}");
    shows(&error, "the URL does not say rediss://");
    let another = plain_client([server.url().replace("rediss:", "redis:")]);
    assert_eq!(
        another.connect(SECOND).unwrap_err().causes()[0].cause(),
        Cause::Tls(TlsError::Required)
    );
}

/// It is only asked whether it speaks TLS, and its first connection is used when it goes on.
#[test]
fn a_server_that_is_late_in_the_handshake_is_not_said_to_have_no_tls() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node"]);
    let server = authority.server("node");
    let redlock = client_at([server.url()], |builder| {
        let builder = builder.tls(authority.roots());
        builder.node_timeout(Duration::from_millis(100))
    });
    server.pause().unwrap();
    let error = redlock.mutex("a").try_lock().unwrap_err();
    assert_eq!(
        (error.causes()[0].cause(), error.causes()[0].phase()),
        (Cause::TimedOut, Phase::Handshake)
    );
    server.resume().unwrap();
    let guard = redlock.mutex("a").lock_timeout(5 * SECOND).unwrap();
    unlock(guard.expect("it grants"));
}

#[test]
fn a_client_certificate_that_is_missing_or_not_trusted_is_named() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node"]);
    let other = Authority::with(&["client"]);
    for protocol in PROTOCOLS {
        let plan = authority.plan("node");
        let server = plan
            .arguments(&["--tls-protocols", protocol])
            .start()
            .unwrap();
        let missing = handshake_error(&server.url(), authority.roots());
        assert_eq!(
            missing.causes()[0].cause(),
            Cause::Tls(TlsError::ClientCertificateRequired),
            "{protocol}"
        );
        assert!(missing.is_permanent());
        shows(&missing, "the server requires a client certificate");
        let tls = other.identity(authority.roots());
        assert_eq!(
            cause(&server.url(), tls),
            (Cause::Tls(TlsError::Alert(48)), true),
            "{protocol}"
        );
    }
}

/// Why no client of this node is made.
#[track_caller]
fn refused(url: &str, tls: Tls) -> String {
    let builder = Redlock::builder().node(url).tls(tls);
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    error.to_string()
}

#[test]
fn settings_that_cannot_be_used_are_refused_by_name() {
    let authority = Authority::with(&["node", "other"]);
    let [certificate, key, other] =
        ["node.crt", "node.key", "other.key"].map(|name| authority.read(name));
    let roots = || authority.roots();
    let damaged = "-----BEGIN CERTIFICATE-----\nhunter2=\n-----END CERTIFICATE-----\n";
    for (tls, words) in [
        (
            Tls::new().roots_pem(""),
            "tls: roots_pem: no certificate in PEM",
        ),
        (
            Tls::new().roots_pem(key.clone()),
            "tls: roots_pem: no certificate in PEM",
        ),
        (
            Tls::new().roots_pem(damaged),
            "tls: roots_pem: a certificate is malformed",
        ),
        (
            Tls::new().roots_pem(damaged.replace("=", "!")),
            "tls: roots_pem: malformed PEM",
        ),
        (
            Tls::new().roots_file("/absent/ca.crt"),
            "tls: /absent/ca.crt: No such file",
        ),
        (
            roots().identity_pem(certificate.clone(), other),
            "tls: identity: the private key is not that of the certificate",
        ),
        (
            roots().identity_pem(certificate.clone(), ""),
            "tls: identity: no private key in PEM",
        ),
        (
            roots().identity_pem("", key),
            "tls: identity: no certificate in PEM",
        ),
    ] {
        let shown = format!("{tls:?}");
        let message = refused("rediss://127.0.0.1", tls);
        assert!(message.contains(words), "{message}");
        hides_secrets(&shown);
        assert!(!message.contains("hunter2"), "{message}");
    }
    for (url, words) in [
        (
            "rediss://127.0.0.1?server_name=a..b",
            "node 0: a server name must be a host name or an IP address",
        ),
        (
            "redis://127.0.0.1?server_name=name",
            "node 0: server_name is for rediss:// nodes only",
        ),
    ] {
        assert_eq!(refused(url, roots()), words);
    }
}
