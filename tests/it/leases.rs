//! What a lease shows and does not show, and which ones are refused: ended, of something else, or
//! made up.

use crate::handing_over::{KEY, TTL, copied, take_everywhere};
use crate::prelude::*;
use quorumlock::kind::{Read, Slot};

#[test]
fn a_lease_that_has_ended_is_lost_and_nothing_is_sent() {
    let (servers, mine) = deployment(3);
    for text in [false, true] {
        let lease = wait_for(&mine.mutex(KEY).ttl(TTL)).detach().unwrap();
        let lease = if text { copied(lease) } else { lease };
        let theirs = wait_for(&long_lock(&mine, KEY));
        assert_eq!(lease.remaining(), Duration::ZERO);
        let fresh = client(&servers);
        for client in [&mine, &fresh] {
            let lease = forged(300, millis_of(lease.end()));
            let error = client.attach(lease).unwrap_err();
            assert_eq!(
                (error.kind(), error.causes().len()),
                (ErrorKind::LeaseLost, 0)
            );
            assert_eq!(error.to_string(), "the lease of \"k\" has ended");
        }
        assert_eq!(mine.attach(lease).unwrap_err().kind(), ErrorKind::LeaseLost);
        unlock(theirs);
    }
}

#[test]
fn a_lease_of_something_else_is_refused() {
    let servers = Server::several(3).unwrap();
    let prefixed =
        |prefix: &str| client_with(&servers, |builder| builder.prefix(prefix).max_ttl(LONG_TTL));
    let mine = prefixed("mine/");
    let theirs = prefixed("theirs/");
    let lease = || {
        let guard = take(&long_lock(&mine, &format!("{:?}", Instant::now())));
        copied(guard.detach().unwrap())
    };
    let refused = |result: quorumlock::Result<MutexGuard>, words: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.causes().len()), (ErrorKind::Config, 0));
        shows(&error, words);
    };
    let sent = || servers.iter().map(scripts_run).sum::<u64>();
    // The nodes are noted before anything is counted.
    mine.connect(SOON).unwrap();
    let before = sent();
    refused(theirs.attach(lease()), "prefix");
    refused(
        mine.mutex("other").attach(lease()),
        "cannot be attached to \"mine/other\"",
    );
    refused(
        mine.mutex("other").ttl(Duration::ZERO).attach(lease()),
        "a time to live",
    );
    let end = millis_of(SystemTime::now() + SOON);
    refused(prefixed("").attach(forged(60_001, end)), "max_ttl");
    refused(
        prefixed("").mutex(KEY).attach(forged(60_001, end)),
        "max_ttl",
    );
    refused(prefixed("").attach(forged(0, end)), "1 ms");
    refused(prefixed(KEY).attach(forged(1000, end)), "0 bytes");
    assert_eq!(sent(), before, "something was sent");
    let guard = take(&long_lock(&mine, "same"));
    unlock(mine.mutex("same").attach(guard.detach().unwrap()).unwrap());
}

/// A text that was put together wrongly: it has the version of one kind, and the key of another.
#[test]
fn a_lease_whose_key_is_that_of_another_kind_is_refused() {
    let servers = Server::several(1).unwrap();
    let client = builder(&servers).prefix("app#").build().unwrap();
    let end = millis_of(SystemTime::now() + SOON);
    let text = |version: u32, key: &str, fence: &str| {
        format!(
            "quorumlock-lease:{version}:{key}:1000:{end}:{fence}{}",
            "0123456789".repeat(4)
        )
    };
    for key in ["app%23a", "app%23a-name-that-is-longer-than-a-marker"] {
        for (version, fence) in [(2, "1:"), (7, ""), (8, ""), (9, "1:")] {
            is_refused::<Any>(&client, &text(version, key, fence));
        }
        is_refused::<Fenced>(&client, &text(2, key, "1:"));
        is_refused::<Read>(&client, &text(7, key, ""));
    }
    is_refused::<Slot>(&client, &text(1, "app%237", ""));
}

/// No lease of this kind is read from the text, or it is not attached.
#[track_caller]
fn is_refused<K: Kind>(client: &Redlock, text: &str) {
    let lease = text.parse::<Lease<K>>();
    fails(
        lease.and_then(|lease| client.attach(lease).map(drop)),
        ErrorKind::Config,
    );
}

#[test]
fn a_set_is_called_the_same_when_it_was_attached() {
    let servers = Server::several(1).unwrap();
    let client = builder(&servers).prefix("app:").build().unwrap();
    let guard = take(&client.mutex_set(["a", "b"]));
    assert_eq!(guard.name(), "a, b");
    let guard = client.attach(copied(guard.detach().unwrap())).unwrap();
    assert_eq!(
        (guard.name(), guard.names().collect::<Vec<_>>()),
        ("a, b", vec!["a", "b"])
    );
    unlock(guard);
}

#[test]
fn no_secret_is_shown() {
    let (servers, client) = deployment(1);
    let guard = take_everywhere(&client, &servers);
    let token = value(&servers[0], KEY).unwrap();
    let lease = guard.detach().unwrap();
    let shown = format!("{lease:?}");
    let text = lease.into_text();
    assert!(text.expose().ends_with(&token));
    let wrong = format!("{}0", text.expose()).parse::<Lease>().unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Config);
    let shown = format!(
        "{shown} {text:?} {wrong} {wrong:?} {:?}",
        client.attach(text.expose().parse::<Lease>().unwrap())
    );
    assert!(
        !shown.contains(&token) && shown.contains("SecretText(…)"),
        "{shown}"
    );
}

fn millis_of(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64
}

/// A lease from a text that no library wrote: of any time to live, and with any end.
fn forged(ttl_millis: u64, end_millis: u64) -> Lease {
    let token = "a7".repeat(20);
    format!("quorumlock-lease:1:{KEY}:{ttl_millis}:{end_millis}:{token}")
        .parse()
        .unwrap()
}
