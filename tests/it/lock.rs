//! The lock on real servers: which client gets it, and what remains on the servers.

use crate::prelude::*;

#[test]
fn a_lock_excludes_until_it_is_released() {
    let (servers, [mine, theirs]) = programs(5);
    let guard = mine
        .mutex("orders/42")
        .ttl(Duration::from_secs(5))
        .lock()
        .unwrap();
    assert_eq!(guard.name(), "orders/42");
    let remaining = guard.remaining();
    assert!(
        remaining > Duration::from_millis(4000) && remaining < Duration::from_millis(4948),
        "{remaining:?}"
    );
    for server in &servers {
        let token = server.text(&["GET", "orders/42"]);
        assert!(
            token.len() == 40 && token.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{token}"
        );
    }
    assert!(is_held(&theirs.mutex("orders/42")));
    unlock(guard);
    drop(take(&theirs.mutex("orders/42")));
    let next = mine.mutex("orders/42");
    assert!(!is_held_for(&next, Duration::from_secs(1)));
}
