//! Text of servers, keys and names reaches no terminal as it is, and no number of a server is
//! trusted.

use super::deployment::{Deployment, Ended, run, tool};
use super::terminals::on_terminal;
use crate::support::fake::{Command, Fake, bulk, healthy, is, say};
use std::thread;

/// Clears the screen, sets a title, begins a line, and turns the direction of the text.
const EVIL: &str = "evil\x1b[2J\x1b]0;owned\x07\u{9b}1m\r\n\u{202e}end";

/// A node whose answers to these commands are its own.
fn node(answer: impl Fn(&Command) -> Option<String> + Send + 'static) -> Fake {
    Fake::on_command(move |command| {
        vec![say(&answer(command).unwrap_or_else(|| {
            String::from_utf8(healthy(command)).unwrap()
        }))]
    })
}

/// What a terminal would act on, apart from the end of a line and what wipes the line of progress.
#[track_caller]
fn is_harmless(ended: &Ended) {
    for text in [&ended.out, &ended.err] {
        let rest = text.replace("\r\n", "\n").replace("\r\x1b[K", "");
        let acts = |letter: char| match letter {
            // The last one is in the place of a byte that is no UTF-8.
            '\u{202e}' | char::REPLACEMENT_CHARACTER => true,
            letter => letter.is_control() && letter != '\n',
        };
        assert!(!rest.contains(acts), "{rest:?}");
        assert!(
            rest.lines().all(|line| !line.starts_with("end")),
            "a line of its own: {rest:?}"
        );
    }
}

fn asks(url: &str, words: &str) -> Ended {
    run(tool(&format!("{words} --nodes {url}")))
}

#[test]
fn what_a_server_says_of_itself_is_escaped() {
    let fake = node(|command| match () {
        () if is(command, "CONFIG") => Some(format!("*2\r\n{}{}", bulk("save"), bulk(EVIL))),
        () if is(command, "INFO") => {
            let text = EVIL.replace("\r\n", "");
            let info = [
                "redis_version",
                "role",
                "run_id",
                "connected_slaves",
                "maxmemory_policy",
            ]
            .map(|name| format!("{name}:{text}\r\n"));
            let rest = "maxmemory:1\r\nstop_writes:yes\r\n";
            Some(bulk(&format!("{}{rest}", info.concat())))
        }
        () => None,
    });
    let url = fake.url();
    for (words, shown) in [
        ("doctor", "evil"),
        ("doctor --json", "evil"),
        ("nodes", ""),
        ("nodes --json", ""),
    ] {
        is_harmless(&asks(&url, words).prints(shown));
    }
}

#[test]
fn names_are_escaped() {
    let deployment = Deployment::of(1);
    let server = &deployment.servers[0];
    let lock = |name: &str| {
        let set = ["SET", name, &"1".repeat(40), "PX", "50000"];
        server.command(&set).unwrap();
    };
    lock(EVIL);
    server.command(&["SET", &format!("{EVIL}2"), "x"]).unwrap();
    // The name is in the place of `NAME`.
    for words in [
        "ls",
        "ls --json",
        "scan",
        "scan --json",
        "show NAME",
        "show NAME --json",
        "break NAME",
        "run -n NAME -- true",
        "run -v --json-events 1 --wait 1500ms NAME -- true",
        "NAME",
        "break NAME --yes --json",
    ] {
        let named = |word| if word == "NAME" { EVIL } else { word };
        let command: Vec<&str> = words.split(' ').map(named).collect();
        let shown = on_terminal(deployment.tool(&command));
        is_harmless(&shown);
        assert!(shown.all().contains("evil"), "{words}: {}", shown.all());
    }
    lock(EVIL);
    let json = r#""name":"evil\u001b[2J\u001b]0;owned\u0007\u009b1m\u000d\n\u202eend""#;
    deployment.run("ls --json").prints(json);
    let escaped = r"evil\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}1m\r\n\u{202e}end";
    deployment.run("ls").prints(escaped);
    // What is no more than a letter stays as it is.
    lock("é e\u{301} हिन्दी");
    deployment.run("ls").prints("é e\u{301} हिन्दी ");
}

#[test]
fn a_clock_that_is_none_is_not_believed() {
    let times = [
        "18446744073709551615",
        "9223372036854775807",
        "nan",
        "-1",
        "inf",
        "1e300",
    ];
    let looks_at = |time: &'static str| {
        let fake = node(move |command| match () {
            () if is(command, "TIME") => Some(format!("*2\r\n{0}{0}", bulk(time))),
            () if is(command, "GET") || is(command, "GETRANGE") => Some(bulk(&"1".repeat(40))),
            () if is(command, "PTTL") => Some(":9223372036854775807\r\n".to_owned()),
            () if is(command, "SCAN") => Some(format!("*2\r\n{}*1\r\n{}", bulk("0"), bulk("k"))),
            () => None,
        });
        let url = fake.url();
        for words in ["ls", "show k", "scan", "break k --yes", "doctor --json"] {
            let ended = asks(&url, words);
            let is_sound =
                matches!(ended.code, Some(0..=2 | 64)) && !ended.err.contains("panicked");
            assert!(is_sound, "{time} {words}: {}", ended.all());
            assert!(
                !ended.out.contains(":NaN") && !ended.out.contains(":inf"),
                "{time}: {}",
                ended.out
            );
        }
    };
    // They wait more than they work.
    thread::scope(|scope| {
        times
            .into_iter()
            .for_each(|time| drop(scope.spawn(move || looks_at(time))))
    });
}
