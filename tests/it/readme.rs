//! What README.md and the manual print works as it is printed: the first program with the manifest
//! lines beside it, the users of the access control lists, and the configuration of nodes.

use crate::capi::library::{cargo, finishes};
use crate::prelude::*;

/// The code blocks of this language behind a heading of a page, as they are printed.
pub(crate) fn blocks(page: &str, heading: &str, language: &str) -> Vec<String> {
    let text = text_of(page);
    let section = text.split_once(&format!("\n{heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    package::blocks(section, language)
}

#[test]
fn the_first_program_compiles_with_the_manifest_lines_beside_it_and_runs() {
    let [manifest, program] =
        ["toml", "rust"].map(|language| blocks("README.md", "## Use it", language).remove(0));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(folder.join("src")).unwrap();
    // Nothing is added to what is printed but a name, and where the crate is until it is in a
    // registry.
    let package = "[package]\nname = \"first\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n";
    let source = format!(
        "\n[patch.crates-io]\nquorumlock = {{ path = {:?} }}\n\n[workspace]\n",
        root()
    );
    fs::write(
        folder.join("Cargo.toml"),
        format!("{package}{manifest}{source}"),
    )
    .unwrap();
    fs::write(folder.join("src/main.rs"), program).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut command = cargo("run --quiet --offline --target-dir");
    command.arg(folder.with_file_name("readme-target"));
    let said = finishes(command.current_dir(&folder));
    assert!(said.starts_with("held for 4.9"), "{said}");
}

/// Major and minor version, and whether it is Valkey.
fn version(server: &Server) -> ((u32, u32), bool) {
    let of = |field: &str| {
        let text = server.info(field).unwrap();
        let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    match of("valkey_version") {
        (0, _) => (of("redis_version"), false),
        version => (version, true),
    }
}

/// The line of the manual that makes a user, run on a server. Returns the URL of the user.
fn user_of(server: &Server) -> String {
    let line = blocks("src/docs/operations.md", "## Access control", "text").remove(0);
    let words: Vec<&str> = line.split_whitespace().collect();
    ok(server, &words);
    let password = words
        .iter()
        .find_map(|word| word.strip_prefix('>'))
        .unwrap();
    format!("redis://{}:{password}@{}", words[2], server.address())
}

fn order(client: &Redlock) -> Mutex {
    client.mutex("orders/42").ttl(Duration::from_secs(30))
}

/// Takes, extends and releases a lock, hears of a release by another client, and is heard.
fn goes_through_a_life(url: &str, make: fn(&Redlock) -> Mutex<Any>) {
    let refusals = Seen::nothing();
    // What a node refused to publish or subscribe.
    let refusal = picked!(Event::ReleaseNotificationsRefused { fault, .. } => fault.to_string());
    let client = || {
        let patient = Redlock::builder().node(url).node_timeout(LONG_NODE_TIMEOUT);
        let patient = patient.retry_delay(Duration::from_secs(50), Duration::from_secs(50));
        patient.observer(refusals.by(refusal)).build().unwrap()
    };
    let ours = client();
    let theirs = client();
    let guard = take(&make(&theirs));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            make(&ours)
                .lock_timeout(SOON * 2)
                .unwrap()
                .map(|guard| guard.unlock().unwrap())
        });
        thread::sleep(Duration::from_millis(300));
        extend(&guard, Duration::from_secs(30));
        unlock(guard);
        assert_eq!(
            waiting.join().unwrap(),
            Some(ReleaseOutcome::Released),
            "it did not hear of the release"
        );
    });
    let node = ours.nodes().unwrap().remove(0);
    assert!(
        node.run_id().is_some() && node.is_master() == Some(true) && node.last_fault().is_none(),
        "{node:?}"
    );
    assert_eq!(refusals.all(), [""; 0]);
}

#[test]
fn the_printed_user_may_do_all_that_plain_fenced_and_fair_locks_need() {
    let server = [Server::start().unwrap()];
    let (version, is_valkey) = version(&server[0]);
    if version < (6, 2) {
        return assert!(
            !is_valkey,
            "channels are a part of access control lists since Redis 6.2"
        );
    }
    let url = user_of(&server[0]);
    let kinds: [fn(&Redlock) -> Mutex<Any>; 4] = [
        |client| order(client).erase(),
        |client| order(client).fenced().erase(),
        |client| order(client).fair().erase(),
        |client| order(client).fenced().fair().erase(),
    ];
    for make in kinds {
        goes_through_a_life(&url, make);
    }
    let set = client_of([&url]).mutex_set(["orders/42", "orders/43"]);
    drop(set.lock().unwrap());
    gone_for_good(&server, "orders/42");
    // It is kept to that.
    let client = client_of([url]);
    for resource in [
        client.mutex("others").erase(),
        client.mutex("others").fenced().erase(),
    ] {
        let error = resource.try_lock().unwrap_err().to_string();
        assert!(error.contains("the user may not use this key ("), "{error}");
    }
    // Nothing was tried in vain but these.
    let Answer::List(denied) = server[0].command(&["ACL", "LOG", "100"]).unwrap() else {
        panic!()
    };
    let denied = format!("{denied:?}").to_lowercase();
    assert!(
        denied.contains("others") && !denied.contains("orders/4"),
        "{denied}"
    );
}

#[test]
fn the_printed_configuration_makes_durable_nodes_that_evict_nothing() {
    let lines = blocks(
        "src/docs/recipes.md",
        "# Three nodes by a compose file",
        "conf",
    )
    .remove(0);
    let words = lines.lines().flat_map(|line| {
        let (name, value) = line.split_once(' ').unwrap();
        [format!("--{name}"), value.trim_matches('"').to_owned()]
    });
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let servers: Vec<Server> = (0..3).map(|_| Server::with(&words).unwrap()).collect();
    let password = words[1 + words
        .iter()
        .position(|&word| word == "--requirepass")
        .unwrap()];
    let urls = servers
        .iter()
        .map(|server| format!("redis://:{password}@{}", server.address()));
    let client = client_at(urls, |builder| builder.durable(true));
    client.connect(SOON).unwrap();
    let _ = take(&client.mutex("orders/42")).unlock().unwrap();
    for node in client.nodes().unwrap() {
        assert!(
            node.is_durable() && node.eviction().is_none() && node.last_fault().is_none(),
            "{node:?}"
        );
    }
    for server in &servers {
        let Answer::List(fsync) = server.command(&["CONFIG", "GET", "appendfsync"]).unwrap() else {
            panic!()
        };
        assert!(format!("{fsync:?}").contains("always"), "{fsync:?}");
    }
}
