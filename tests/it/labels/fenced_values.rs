//! The label in the value of a fenced lock: every script accepts it, and each keeps it but for an
//! acquisition.

use crate::prelude::*;

const KEY: &str = "quorumlock-fence:k";

/// What follows the deadline in the value.
fn holder(server: &Server) -> String {
    value(server, KEY)
        .unwrap()
        .splitn(3, ' ')
        .nth(2)
        .unwrap()
        .to_owned()
}

#[test]
fn a_client_without_a_label_takes_extends_and_releases_what_has_one() {
    // Held by a token with a label that this client does not know, free with one, and held by the
    // lease of its own.
    for server in servers() {
        let mutex = long_lock(&client_of([server.url()]), "k").fenced();
        ok(&server, &["SET", KEY, "5 0  host7"]);
        let guard = take(&mutex);
        assert_eq!(
            holder(&server).len(),
            40,
            "no holder has the label of another one"
        );
        let own = value(&server, KEY).unwrap();
        ok(&server, &["SET", KEY, &format!("{own} host7")]);
        extend(&guard, LONG_TTL);
        assert!(holder(&server).ends_with(" host7"), "kept");
        assert!(is_held(&mutex));
        unlock(guard);
        assert_eq!(holder(&server), " host7");
        unlock(take(&mutex));
        assert_soon!(holder(&server).is_empty());
    }
}
