//! Notifications that do not come: connections cut, commands denied, nodes hung. Every waiter gets
//! the lock all the same.

use super::*;
use crate::support::fake::refusal;
use crate::support::queues::{cut_subscribers, subscribers};

/// A call that is not told asks after so long by default, or after a delay that is shorter; and
/// time for a busy machine.
const BOUND: Duration = Duration::from_millis(1000 + 50 + 500);

/// What was refused: which side, by which node, and why.
fn refusal_of(event: &Event) -> Option<(bool, String, Cause)> {
    match event {
        Event::ReleaseNotificationsRefused {
            node,
            fault,
            is_publishing,
            ..
        } => Some((*is_publishing, node.to_string(), fault.cause())),
        _ => None,
    }
}

#[test]
fn connections_that_are_cut_are_made_again() {
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers).build().unwrap();
    let theirs = client(&servers);
    let held = take(&long_lock(&theirs, "k"));
    let took = time_to_wake(&long_lock(&mine, "k"), || {
        for _ in 0..3 {
            servers.iter().for_each(cut_subscribers);
            has_channels(&servers, 1);
        }
        drop(held);
    });
    assert!(took < PROMPT, "{took:?}");
}

/// What a node replies to a subscription to this channel.
fn confirmed(channel: &str) -> Act {
    say(&format!(
        "*3\r\n{}{}:1\r\n",
        bulk("subscribe"),
        bulk(channel)
    ))
}

#[test]
fn a_node_that_closes_them_each_time_is_not_flooded() {
    let node = Fake::on_command(|command| match &*command[0] {
        "SUBSCRIBE" => vec![confirmed(&command[1]), Act::Close],
        _ => vec![Act::Say(
            refusal(command).unwrap_or_else(|| healthy(command)),
        )],
    });
    let client = client_at([node.url()], |builder| {
        builder.retry_delay(LONG, LONG).place_lease(LONG)
    });
    assert!(is_held_for(
        &long_lock(&client, "k"),
        Duration::from_secs(1)
    ));
    // 10 ms, 20 ms, and so on, less a quarter at most.
    let connections = node.connections();
    let commands = node.commands().len();
    assert!(connections > 3, "it is tried again");
    assert!(
        connections < 16 && commands < 80,
        "{connections} connections, {commands} commands"
    );
}

/// A node that refuses SUBSCRIBE with this error for so many times, and permits it then.
fn refusing_to_subscribe(error: &'static str, times: usize) -> Fake {
    let mut refused = 0;
    Fake::on_command(move |command| match &*command[0] {
        "SUBSCRIBE" if refused < times => {
            refused += 1;
            vec![say(error)]
        }
        "SUBSCRIBE" => vec![confirmed(&command[1])],
        _ => vec![Act::Say(
            refusal(command).unwrap_or_else(|| healthy(command)),
        )],
    })
}

#[test]
fn an_error_that_passes_is_no_denial_and_the_node_is_asked_again_soon() {
    for error in [
        "-ERR max number of clients reached\r\n",
        "-BUSY a script runs\r\n",
        "-LOADING its data\r\n",
    ] {
        let refusals = Seen::nothing();
        let wait = |node: &Fake, limit| {
            let client = Redlock::builder().node(node.url()).retry_delay(LONG, LONG);
            let client = client.observer(refusals.by(refusal_of)).build().unwrap();
            assert!(is_held_for(&long_lock(&client, "k"), limit));
            node.commands()
                .iter()
                .filter(|command| command[0] == "SUBSCRIBE")
                .count()
        };
        assert_eq!(
            wait(&refusing_to_subscribe(error, 3), Duration::from_secs(1)),
            4,
            "{error}"
        );
        let asked = wait(
            &refusing_to_subscribe(error, usize::MAX),
            Duration::from_secs(1),
        );
        assert!(
            (4..16).contains(&asked),
            "{error} {asked}: 10 ms, 20 ms, and so on"
        );
        assert_eq!(refusals.all(), [], "{error}");
    }
}

/// Servers, and the URLs of a user of theirs without a right.
fn servers_without(rule: &str) -> (Vec<Server>, Vec<String>) {
    let servers = Server::several(3).unwrap();
    let urls = servers.each(|server| user(server, &format!("~* &* +@all {rule}")));
    (servers, urls)
}

/// Calls of the one client wait no longer than its delays for what the other one releases.
#[track_caller]
fn wake_by_the_clock(mine: &Redlock, theirs: &Redlock, release: fn(MutexGuard)) {
    for _ in 0..3 {
        let held = take(&long_lock(theirs, "k"));
        let took = time_to_wake(&long_lock(mine, "k"), || release(held));
        assert!(took < BOUND, "{took:?}");
    }
}

#[test]
fn a_user_that_may_not_subscribe_waits_by_the_clock_and_is_reported_once() {
    skip_unless!(has_users());
    let (servers, urls) = servers_without("-subscribe");
    let refusals = Seen::nothing();
    let builder = builder_of(urls).observer(refusals.by(refusal_of));
    wake_by_the_clock(&builder.build().unwrap(), &client(&servers), drop);
    no_entry_stays(&servers);
    assert!(servers.all(|server| subscribers(server) == 0));
    // A server that denies SUBSCRIBE is not asked again for longer than a wait.
    for server in &servers {
        let statistics = server.text(&["INFO", "commandstats"]);
        let line = statistics
            .lines()
            .find(|line| line.starts_with("cmdstat_subscribe:"))
            .unwrap();
        assert!(line.contains("rejected_calls=1,"), "{line}");
    }
    reported_once(&refusals, &servers, false);
}

#[test]
fn a_user_that_may_not_publish_releases_as_well_and_is_reported_once() {
    skip_unless!(has_users());
    let (servers, urls) = servers_without("resetchannels");
    let refusals = Seen::nothing();
    let builder = builder_of(urls).observer(refusals.by(refusal_of));
    let theirs = builder.build().unwrap();
    wake_by_the_clock(&client(&servers), &theirs, unlock);
    // Whatever the third node replied, it has replied by now.
    drop(take(&long_lock(&theirs, "other")).unlock());
    reported_once(&refusals, &servers, true);
}

#[track_caller]
fn reported_once(refusals: &Seen<(bool, String, Cause)>, servers: &[Server], is_publishing: bool) {
    let mut told = refusals.all();
    told.sort_by(|one, other| one.1.cmp(&other.1));
    let mut expected: Vec<_> =
        servers.each(|server| (is_publishing, server.address(), Cause::NoPermission));
    expected.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(told, expected);
}
