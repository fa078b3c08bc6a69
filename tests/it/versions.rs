//! Releases side by side (src/docs/compatibility.md): what each has stored keeps its lock, and the
//! leases that it has written are read.
//!
//! `src/protocol/releases` has a file for each release. `tests/it/cli/versions.rs` starts another
//! version.

use crate::prelude::*;

const NAME: &str = "k";

/// What the files have of this form: the kind, the text and the meaning.
fn lines(form: &str) -> Vec<[String; 3]> {
    let mut found = Vec::new();
    for file in fs::read_dir(root().join("src/protocol/releases")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let parts: Vec<&str> = line.split(" | ").collect();
            if let [found_form, kind, text, meaning] = parts[..]
                && found_form == form
            {
                found.push([kind, text.trim_matches('"'), meaning].map(str::to_owned));
            }
        }
    }
    assert!(found.len() > 9, "{form}: no longer recognised");
    found
}

/// Whether an attempt wins. None: its node has no vote, because of the value.
fn wins<K: Kind>(mutex: Mutex<K>) -> Option<bool> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard.is_some()),
        Err(error) => {
            assert_eq!(causes(&error)[0].2, Cause::UnexpectedValue);
            None
        }
    }
}

/// The same for each way to take the lock of this key: alone, and as a reader where it has any.
fn each_wins(client: &Redlock, kind: &str) -> [Option<bool>; 2] {
    match kind {
        "plain" => [wins(client.mutex(NAME)); 2],
        "fenced" => [wins(client.mutex(NAME).fenced()); 2],
        _ => [
            wins(client.write_mutex(NAME)),
            wins(client.read_mutex(NAME)),
        ],
    }
}

#[test]
fn what_a_release_has_stored_is_never_free_by_mistake() {
    let (server, client) = single();
    for [kind, text, meaning] in lines("value") {
        let key = kinds::KEYS.into_iter().find(|keys| keys.word == kind);
        let key = key.unwrap().key("", NAME);
        ask(&server, &["SET", &key, &text, "PX", "60000"]);
        let expected = match meaning.as_str() {
            "free" => [Some(true); 2],
            "read" => [Some(false), Some(true)],
            "not read" => [None; 2],
            _ => [Some(false); 2],
        };
        let found = each_wins(&client, &kind);
        assert_eq!(found, expected, "{kind}: {text:?}");
        if !found.contains(&Some(true)) {
            assert_eq!(value(&server, &key), Some(text), "it was changed");
        }
        // The other locks of the same client and node are as before.
        drop(take(&client.mutex("other").fenced()));
        drop(take(&client.write_mutex("other")));
        client.flush_releases(crate::clients::SOON).unwrap();
        server.command(&["DEL", &key]).unwrap();
    }
}

#[test]
fn leases_of_each_release_are_read() {
    for [_, text, meaning] in lines("lease") {
        let lease = text.parse::<Lease<Any>>();
        assert_eq!(lease.is_ok(), meaning == "read", "{text}");
        if let Ok(lease) = lease {
            assert_eq!(lease.into_text().expose(), text);
        }
    }
}
