//! Labelled locks beside other libraries: each excludes the other, and neither releases or extends
//! what is not its own.
//!
//! A library is here by what it sends: `SET NX PX`, or a script that sets the key unless it exists;
//! scripts that compare the whole value, and then delete the key or set its expiry.

use crate::prelude::*;

const LABEL: &str = "billing@host7/4711";
const SET_UNLESS_THERE: &str = "if redis.call('exists', KEYS[1]) == 1 then return 0 end \
    redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1";
const DELETE_OWN: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const EXTEND_OWN: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
                          return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// How a library takes the lock on one server. All release and extend alike.
#[derive(Clone, Copy, Debug)]
enum Library {
    /// node-redlock: a script.
    Scripted,
    /// redis-py's Lock, redsync, redlock-py: `SET NX PX`.
    Set,
}

impl Library {
    fn takes(self, server: &Server, value: &str) -> bool {
        match self {
            Library::Scripted => done(server, SET_UNLESS_THERE, &[value, "60000"]),
            Library::Set => {
                server
                    .command(&["SET", "k", value, "NX", "PX", "60000"])
                    .unwrap()
                    == Answer::Text("OK".into())
            }
        }
    }
}

fn done(server: &Server, script: &str, values: &[&str]) -> bool {
    server
        .command(&[&["EVAL", script, "1", "k"], values].concat())
        .unwrap()
        == Answer::Number(1)
}

fn labelled(servers: &[Server]) -> Redlock {
    builder(servers).label(LABEL).build().unwrap()
}

#[test]
fn labelled_locks_and_those_of_other_libraries_exclude_each_other() {
    for servers in threes() {
        let client = labelled(&servers);
        let mutex = long_lock(&client, "k");
        for (library, theirs) in [
            (Library::Set, "0b3f9bd3-4e7c-4b3e-9a55-9d7a7c1c5e21"),
            (Library::Set, "UjLwbqvYyVFgPvtSq+1mOA=="),
            (Library::Scripted, "5f1d7a84db00d2fce00b31a7fc73224f"),
        ] {
            let guard = take(&mutex);
            everywhere(&servers, "k");
            for server in &servers {
                let ours = value(server, "k").unwrap();
                assert!(
                    ours.len() == 40 + 1 + LABEL.len() && ours.ends_with(LABEL),
                    "{ours}"
                );
                assert!(!library.takes(server, theirs));
                // Neither their value nor a part of ours is the whole value.
                for other in [theirs, &ours[..40], LABEL] {
                    assert!(
                        !done(server, EXTEND_OWN, &[other, "1"])
                            && !done(server, DELETE_OWN, &[other])
                    );
                }
            }
            unlock(guard);
            nowhere(&servers, "k");

            assert!(
                servers.all(|server| library.takes(server, theirs)),
                "{library:?}"
            );
            assert!(is_held(&mutex));
            assert_eq!(
                mutex.holder().unwrap().unwrap().label(),
                None,
                "it has none"
            );
            assert!(servers.all(|server| done(server, EXTEND_OWN, &[theirs, "50000"])));
            assert!(servers.all(|server| done(server, DELETE_OWN, &[theirs])));
        }
    }
}

#[test]
fn a_labelled_lock_is_extended_repaired_handed_over_and_released_by_its_whole_value() {
    for servers in threes() {
        let guard = take(&labelled(&servers).mutex("k").ttl(LONG_TTL / 2));
        everywhere(&servers, "k");
        let ours = value(&servers[1], "k").unwrap();
        extend(&guard, LONG_TTL);
        assert!(servers.all(|server| left(server, "k").unwrap() > LONG_TTL / 2));
        servers[0].command(&["DEL", "k"]).unwrap();
        extend(&guard, LONG_TTL);
        assert_soon!(
            value(&servers[0], "k").as_ref() == Some(&ours),
            "the label with it"
        );
        // A client with another label, and one with none, go on with the lease of this one.
        let text = guard.detach().unwrap().into_text();
        let other = builder(&servers).label("other").build().unwrap();
        let guard = other
            .attach(text.expose().parse::<quorumlock::Lease>().unwrap())
            .unwrap();
        extend(&guard, LONG_TTL);
        let plain = client(&servers);
        let guard = plain.attach(guard.detach().unwrap()).unwrap();
        assert_eq!(value(&servers[0], "k").as_ref(), Some(&ours));
        unlock(guard);
        nowhere(&servers, "k");
    }
}
