//! Fair locks that are fenced as well: what is not as with others.

use super::hand_offs::{TOKEN, time_to_notice};
use super::{FENCED_KEY as KEY, no_entry_stays};
use crate::prelude::*;
use quorumlock::FencedMutex;

fn fair(client: &Redlock) -> FencedMutex {
    long_lock(client, "k").fenced().fair()
}

/// It asks unasked after more time than this takes.
#[test]
fn the_first_one_is_told_in_whichever_way_the_lock_becomes_free_for_it() {
    let member = "0000000000000001f:7";
    let release = ["release", TOKEN, "", "", "600000"];
    let with_entry = ["release", TOKEN, member, "", "600000"];
    for (words, is_free) in [
        (&release[..], false),
        (&with_entry, false),
        (&["leave", member], true),
    ] {
        let servers = Server::several(3).unwrap();
        ask_each(&servers, &["SET", KEY, &format!("5 9999999999999 {TOKEN}")]);
        let took = time_to_notice(fair, &servers, || {
            let free_since = Instant::now();
            for server in &servers {
                ask(
                    server,
                    &["ZADD", &format!("quorumlock-queue:{KEY}"), "7", member],
                );
                if is_free {
                    server.command(&["SET", KEY, "5 0 "]).unwrap();
                }
                let words = [&["EVAL", kinds::fenced::SCRIPT.text, "1", KEY], words].concat();
                let answer = server.command(&words).unwrap();
                // The waiter may have the lock by now, and have removed the dead entry.
                assert!(
                    matches!(answer, Answer::Number(0..)),
                    "{words:?} {answer:?}"
                );
            }
            free_since
        });
        assert!(took < SOON, "{words:?}: after {took:?}");
        no_entry_stays(&servers);
    }
}
