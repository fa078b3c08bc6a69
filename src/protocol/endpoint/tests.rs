//! What URLs mean, what is wrong with others, and that neither shows a password.

use super::*;

fn shown(url: &str) -> String {
    let Endpoint {
        address,
        is_tls,
        handshake,
        user,
        durable,
        server_name,
    } = Endpoint::parse(url).unwrap();
    let Handshake {
        credentials,
        database,
        checks_durability,
        node_key,
        looks_behind_votes,
    } = handshake;
    assert!(
        !checks_durability && node_key.is_none() && !looks_behind_votes,
        "the builder says so"
    );
    assert_eq!(user, None);
    let login = credentials.map_or(String::new(), |credentials| {
        let user = credentials.user_name().unwrap_or_default();
        format!("{user}:{}@", credentials.password())
    });
    let scheme = if is_tls { "tls " } else { "" };
    let durable = durable.map_or(String::new(), |durable| format!(" {durable}"));
    let name = server_name.map_or(String::new(), |name| format!(" {name}"));
    let address = Endpoint {
        address,
        is_tls,
        handshake: Handshake::default(),
        user: None,
        durable: None,
        server_name: None,
    };
    format!("{scheme}{login}{address}/{database}{durable}{name}")
}

#[test]
fn urls_name_nodes() {
    let table = [
        ("redis://localhost", "localhost:6379/0"),
        ("redis://10.0.0.1:7001", "10.0.0.1:7001/0"),
        ("valkey://10.0.0.1:7001/", "10.0.0.1:7001/0"),
        ("redis://host/15", "host:6379/15"),
        ("redis://[::1]:7001/2", "[::1]:7001/2"),
        ("redis://[2001:db8::1]", "[2001:db8::1]:6379/0"),
        ("redis://:secret@host", ":secret@host:6379/0"),
        ("redis://alice:secret@host:1/3", "alice:secret@host:1/3"),
        (
            "redis://al%40ice:p%3Aw%2F%25%C3%A4@host",
            "al@ice:p:w/%ä@host:6379/0",
        ),
        ("redis://:p@ss:w@host", ":p@ss:w@host:6379/0"),
        ("redis://:@host", "host:6379/0"),
        ("redis://:%23%2F%3F%20@host", ":#/? @host:6379/0"),
        ("redis://host?durable=true", "host:6379/0 true"),
        ("redis://:pw@host:1/2?durable=false", ":pw@host:1/2 false"),
        ("redis://:pw@host:1?db=2", ":pw@host:1/2"),
        ("redis://host/?durable=true&db=2", "host:6379/2 true"),
    ];
    for (url, meaning) in table {
        assert_eq!(shown(url), meaning, "{url}");
    }
}

#[test]
fn urls_by_tls_are_those_without_it_in_all_else() {
    for scheme in ["rediss", "valkeys"] {
        let url = format!("{scheme}://:hunter2@10.0.0.1:7001/2?durable=true");
        match cfg!(feature = "tls") {
            true => assert_eq!(shown(&url), "tls :hunter2@10.0.0.1:7001/2 true"),
            false => assert_eq!(Endpoint::parse(&url), Err(EndpointError::Tls)),
        }
    }
    if cfg!(feature = "tls") {
        assert_eq!(
            shown("rediss://10.0.0.1?server_name=redis-1.example.com"),
            "tls 10.0.0.1:6379/0 redis-1.example.com"
        );
        assert_eq!(
            shown("rediss://h?db=1&server_name=2001:db8::1&durable=true"),
            "tls h:6379/1 true 2001:db8::1"
        );
        for (query, error) in [
            ("server_name=", EndpointError::BadServerName),
            ("server_name=a b", EndpointError::Blank),
            ("server_name=a%20b", EndpointError::BadServerName),
            (
                "server_name=a&server_name=b",
                EndpointError::RepeatedParameter,
            ),
        ] {
            assert_eq!(
                Endpoint::parse(&format!("rediss://:hunter2@host?{query}")),
                Err(error),
                "{query}"
            );
            assert!(!error.to_string().contains("hunter2"));
        }
    }
    assert!(!EndpointError::Tls.to_string().contains("hunter2"));
}

#[cfg(unix)]
#[test]
fn urls_name_unix_sockets() {
    let table = [
        ("unix:///run/redis.sock", "unix:/run/redis.sock/0"),
        ("unix:///run/redis.sock?db=4", "unix:/run/redis.sock/4"),
        (
            "unix:///run/redis.sock?durable=true",
            "unix:/run/redis.sock/0 true",
        ),
        (
            "unix:///run/redis.sock?durable=true&db=4",
            "unix:/run/redis.sock/4 true",
        ),
        (
            "unix:///run/redis.sock?db=4&durable=false",
            "unix:/run/redis.sock/4 false",
        ),
        ("unix://redis.sock", "unix:redis.sock/0"),
        ("unix:///with%20space%3F", "unix:/with space?/0"),
        ("unix:///a%0Ab", r"unix:/a\nb/0"),
        (
            "unix://alice:pw@/run/redis.sock?db=1",
            "alice:pw@unix:/run/redis.sock/1",
        ),
    ];
    for (url, meaning) in table {
        assert_eq!(shown(url), meaning, "{url}");
    }
}

#[test]
fn everything_else_gets_a_helpful_error_that_keeps_the_secret() {
    use EndpointError::*;
    let table = [
        ("", NoScheme),
        ("localhost:6379", NoScheme),
        ("http://hunter2@host", NoScheme),
        ("REDIS://host", NoScheme),
        ("redis-sentinel://:hunter2@host", UnsupportedScheme),
        ("redis+cluster://:hunter2@host", UnsupportedScheme),
        ("redis://", NoHost),
        ("redis://:6379", NoHost),
        ("redis://:hunter2@", NoHost),
        ("redis://host:", BadPort),
        ("redis://host:0", BadPort),
        ("redis://host:65536", BadPort),
        ("redis://host:+1", BadPort),
        ("redis://::1", NoHost),
        ("redis://fe80::1:6379", BadPort),
        ("redis://[::1", BadHost),
        ("redis://[::1]6379", BadHost),
        ("redis://[host]:1", BadHost),
        ("redis://ho*st", BadHost),
        ("redis://ho st", Blank),
        (" redis://host", Blank),
        ("redis://host\n", Blank),
        ("redis://:hunter2 x@host", Blank),
        ("redis://:x\u{a0}hunter2@host", Blank),
        ("redis://:hunter2#x@host", Unencoded('#')),
        ("redis://:hunter2/x@host", Unencoded('/')),
        ("redis://:hunter2?x@host", Unencoded('?')),
        ("redis://:hunter2%@host", BadEncoding),
        ("redis://:hunter2%zz@host", BadEncoding),
        ("redis://:hunter2%FF@host", BadEncoding),
        ("redis://host/-1", BadDatabase),
        ("redis://host/+1", BadDatabase),
        ("redis://host/1/2", BadDatabase),
        ("redis://host/99999999999", BadDatabase),
        ("redis://host?db=x", BadDatabase),
        ("redis://:hunter2@host/1?db=1", RepeatedParameter),
        (
            "redis://:hunter2@host?server_name=name",
            ServerNameWithoutTls,
        ),
        ("redis://host/1#hunter2", Unencoded('#')),
        ("redis://host?", UnknownParameter),
        ("redis://host?durable", UnknownParameter),
        ("redis://host?Durable=true", UnknownParameter),
        ("redis://host?timeout=5", UnknownParameter),
        ("redis://host?durable=true&timeout=5", UnknownParameter),
        ("redis://host?durable=yes", BadDurable),
        ("redis://host?durable=", BadDurable),
        ("redis://host?durable=true&durable=true", RepeatedParameter),
    ];
    for (url, error) in table {
        assert_eq!(Endpoint::parse(url), Err(error), "{url}");
        assert!(!error.to_string().contains("hunter2"));
    }
}

#[cfg(unix)]
#[test]
fn malformed_unix_urls_are_refused() {
    use EndpointError::*;
    for (url, error) in [
        ("unix://", NoPath),
        ("unix://?db=1", NoPath),
        ("unix:///a%00b", NoPath),
        ("unix:///a?database=1", UnknownParameter),
        ("unix:///a?db=x", BadDatabase),
        ("unix:///a?db=1&db=1", RepeatedParameter),
        ("unix:///a?server_name=name", ServerNameWithoutTls),
        ("unix:///a?db=1?durable=true", BadDatabase),
        ("unix://me:p?w@/a", Unencoded('?')),
    ] {
        assert_eq!(Endpoint::parse(url), Err(error), "{url}");
    }
}

#[test]
fn a_user_may_be_named_without_a_password() {
    for (url, user) in [
        ("redis://alice@host", Some("alice")),
        ("redis://alice:@host", Some("alice")),
        ("redis://a%40b@host", Some("a@b")),
        ("unix://alice@/a", Some("alice")),
        ("redis://alice:hunter2@host", None),
        ("redis://:hunter2@host", None),
        ("redis://@host", None),
        ("redis://host", None),
    ] {
        let endpoint = Endpoint::parse(url).unwrap();
        assert_eq!(endpoint.user(), user, "{url}");
        let has_password = endpoint.handshake().credentials.is_some();
        assert_eq!(has_password, url.contains("hunter2"), "{url}");
    }
}

#[test]
fn the_password_does_not_show() {
    let endpoint = Endpoint::parse("redis://alice:hunter2@host:1/3").unwrap();
    assert_eq!(
        format!("{endpoint} {endpoint:?}"),
        "host:1 Endpoint(host:1)"
    );
}
