//! Extension by hand: when it wins, what it does to every key, and what a failed or late one leaves
//! in force.
//!
//! A won extension does not wait for its repairs, nor a release for stragglers. So what is on the
//! servers is looked at until it is as it should be; what must not have happened shows in the
//! servers' own counts.

use crate::prelude::*;

const KEY: &str = "k";
const OTHER: &str = "other";
/// Longer than [`LONG_TTL`], so that it shows.
const LONGER: Duration = Duration::from_secs(90);

/// What has become of the key on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ours,
    Gone,
    /// Another program's, without an expiry.
    Taken,
}

impl Fate {
    /// Every way in which the nodes can differ.
    fn all(nodes: u32) -> impl Iterator<Item = Vec<Fate>> {
        let fates = [Fate::Ours, Fate::Gone, Fate::Taken];
        (0..3_usize.pow(nodes)).map(move |case| {
            (0..nodes)
                .map(|node| fates[case / 3_usize.pow(node) % 3])
                .collect()
        })
    }
}

/// A lock whose key is on every one of the servers, and the key's value.
#[track_caller]
fn take_everywhere(client: &Redlock, ttl: Duration, servers: &[Server]) -> (MutexGuard, String) {
    let guard = take(&client.mutex(KEY).ttl(ttl));
    let mut tokens = Vec::new();
    let mut is_everywhere = || {
        tokens = servers
            .iter()
            .filter_map(|server| value(server, KEY))
            .collect();
        tokens.len() == servers.len()
    };
    assert_soon!(is_everywhere());
    tokens.dedup();
    assert_eq!(tokens.len(), 1);
    (guard, tokens.remove(0))
}

#[test]
fn the_nodes_where_the_key_is_ours_decide_and_the_gone_ones_are_repaired_after_a_win() {
    let (servers, client) = deployment(5);
    // The note of each node is one.
    let mut sets = [1_u64; 5];
    for fates in Fate::all(5) {
        let case = format!("{fates:?}");
        let (guard, token) = take_everywhere(&client, LONG_TTL, &servers);
        for (server, fate) in servers.iter().zip(&fates) {
            match fate {
                Fate::Ours => {}
                Fate::Gone => assert_eq!(server.command(&["DEL", KEY]).unwrap(), Answer::Number(1)),
                Fate::Taken => ok(server, &["SET", KEY, OTHER]),
            }
        }
        let ours = fates.iter().filter(|fate| **fate == Fate::Ours).count();
        let is_won = ours >= 3;

        let before = guard.remaining();
        let (extended, released) = match is_won {
            true => (ExtendOutcome::Extended, ReleaseOutcome::Released),
            false => (ExtendOutcome::Lost, ReleaseOutcome::Expired),
        };
        assert_eq!(guard.extend(LONGER).unwrap(), extended, "{case}");
        let remaining = guard.remaining();
        // All of the new time but for the allowance for drift, a hundredth; or nothing.
        let whole = LONGER * 98 / 100..LONGER;
        assert!(
            if is_won {
                remaining > before && whole.contains(&remaining)
            } else {
                remaining.is_zero()
            },
            "{case}"
        );

        for (index, (server, fate)) in servers.iter().zip(&fates).enumerate() {
            // One is the lock's own.
            sets[index] += 1 + u64::from(*fate == Fate::Taken || *fate == Fate::Gone && is_won);
            let expected = match fate {
                Fate::Taken => Some(OTHER),
                Fate::Gone if !is_won => None,
                Fate::Gone | Fate::Ours => Some(token.as_str()),
            };
            assert_soon!(
                value(server, KEY).as_deref() == expected,
                "{case}: node {index}"
            );
            if is_won && expected == Some(&token) {
                assert!(left(server, KEY) > Some(LONG_TTL), "{case}: node {index}");
            }
            if *fate == Fate::Taken {
                assert_eq!(left(server, KEY), None, "{case}: node {index}");
            }
        }

        assert_eq!(guard.unlock().unwrap(), released, "{case}");
        for (server, fate) in servers.iter().zip(&fates) {
            let expected = (*fate == Fate::Taken).then_some(OTHER);
            assert_soon!(value(server, KEY).as_deref() == expected, "{case}");
            server.command(&["DEL", KEY]).unwrap();
        }
    }
    let counted: Vec<u64> = servers.each(|server| calls(server, "set"));
    assert_eq!(counted, sets, "more, or less, was repaired than should be");
}

/// When the lease ends: not before the one and not after the other.
fn end(guard: &MutexGuard) -> (Instant, Instant) {
    let earliest = Instant::now();
    let remaining = guard.remaining();
    (earliest + remaining, Instant::now() + remaining)
}

#[track_caller]
fn assert_same_end(one: (Instant, Instant), other: (Instant, Instant)) {
    // The lease's clock counts what the wall clock gains.
    let noise = Duration::from_millis(2);
    assert!(
        one.0 <= other.1 + noise && other.0 <= one.1 + noise,
        "{one:?} {other:?}"
    );
}

#[test]
fn a_full_memory_prevents_neither_extension_nor_release() {
    let plan = Server::plan().arguments(&["--maxmemory-policy", "noeviction"]);
    let servers = plan.several(3).unwrap();
    let client = client(&servers);
    let (guard, token) = take_everywhere(&client, LONG_TTL, &servers);
    for server in &servers {
        ok(server, &["CONFIG", "SET", "maxmemory", "1"]);
    }
    let error = failure(&long_lock(&client, "another"));
    let full = count_causes(&error, Cause::OutOfMemory);
    assert_eq!(full, error.causes().len(), "{error}");
    extend(&guard, LONGER);
    for server in &servers {
        assert_eq!(value(server, KEY).as_ref(), Some(&token));
        assert!(left(server, KEY) > Some(LONG_TTL));
    }
    // A repair has nowhere to go, and costs nothing.
    servers[0].command(&["DEL", KEY]).unwrap();
    extend(&guard, LONGER);
    unlock(guard);
    gone_for_good(&servers, KEY);
}

#[test]
fn an_unusable_time_to_live_is_refused_and_changes_nothing() {
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).max_ttl(LONGER).build().unwrap();
    let (guard, _) = take_everywhere(&client, LONG_TTL, &servers);
    let before = end(&guard);
    let sent: Vec<u64> = servers.each(asked);
    let unusable = [
        Duration::ZERO,
        Duration::from_micros(999),
        Duration::from_millis(2),
        LONGER + Duration::from_millis(1),
        Duration::MAX,
    ];
    for ttl in unusable {
        let error = guard.extend(ttl).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{ttl:?}");
    }
    assert_same_end(before, end(&guard));
    assert_eq!(servers.each(asked), sent);
    unlock(guard);
}
