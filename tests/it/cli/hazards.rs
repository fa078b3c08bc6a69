//! `doctor` on servers that are no plain masters: they evict, have replicas, run in cluster mode,
//! or withhold what they are. It names that, and states what holds then.

use super::deployment::{Deployment, Ended, PATIENT, prints, run};
use crate::clients::{client, unlock};
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use crate::support::shard::{Shard, meet, own, serves};
use std::time::Duration;

/// How long servers may take to see each other.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two plain servers, and this one.
fn with(server: Server) -> Deployment {
    let mut deployment = Deployment::of(2);
    deployment.servers.push(server);
    deployment
}

fn doctor(deployment: &Deployment, options: &[&str]) -> Ended {
    run(deployment.tool(&[&["doctor"], options].concat()))
}

#[track_caller]
fn finds(deployment: &Deployment, options: &[&str], code: i32, words: &[&str]) -> Ended {
    let command = [&["doctor"], &PATIENT[..], options].concat();
    prints(deployment, &command, code, words)
}

#[track_caller]
fn accepts(server: &Server, command: &[&str]) {
    let answer = server.command(command).unwrap();
    assert_eq!(answer, Answer::Text("OK".into()), "{command:?}");
}

fn replica(master: &Server) -> Server {
    let port = master.port().to_string();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &port]).unwrap();
    let is_synchronised = || replica.info("master_link_status").unwrap() == "up";
    assert!(eventually(PATIENCE, is_synchronised));
    replica
}

/// The guarantee of a deployment whose last node has this weakness.
fn guarantee(deployment: &Deployment, weakness: &str) -> String {
    let address = deployment.servers.last().unwrap().address();
    format!(
        "one valid holder, if at most 1 of 3 nodes loses its keys within max_ttl, and {address} {weakness}"
    )
}

#[test]
fn a_server_that_evicts_is_a_warning_and_a_condition_of_the_guarantee() {
    let deployment = with(Server::start().unwrap());
    let set = |name: &str, value: &str| {
        accepts(&deployment.servers[2], &["CONFIG", "SET", name, value]);
    };
    // Without a limit nothing is evicted.
    for policy in ["allkeys-lru", "volatile-ttl"] {
        set("maxmemory-policy", policy);
        set("maxmemory", "0");
        finds(&deployment, &[], 0, &["fine: all 3 nodes vote"]);
        set("maxmemory", "100mb");
        let condition = guarantee(&deployment, &format!("({policy}) evicts no lock"));
        let warning = format!(
            "warning: eviction: it may evict the key of a held lock ({policy}) when its memory is full, and vote for \
             another client; CONFIG SET maxmemory-policy noeviction\n"
        );
        finds(
            &deployment,
            &[],
            1,
            &[&format!("guarantee: {condition}\n"), &warning],
        );
        let json = [
            "\"level\":\"warning\",\"kind\":\"eviction\"",
            &format!("\"guarantee\":\"{condition}\""),
        ];
        finds(&deployment, &["--json"], 1, &json);
    }
}

#[test]
fn a_replica_and_how_far_it_lags_are_named_with_what_its_promotion_means() {
    let deployment = with(Server::start().unwrap());
    let replica = replica(&deployment.servers[2]);
    let waits = "one that is promoted lacks the locks that it has not received, and does not vote for max_ttl; do not \
                 promote them, or detach them\n";
    let in_time = format!("warning: replicas: it has replicas (1): {waits}");
    assert!(eventually(PATIENCE, || doctor(&deployment, &[])
        .out
        .contains(&in_time)));
    let off = "and votes at once, by restart policy off; do not promote";
    finds(&deployment, &["--restart-policy", "off"], 1, &[off]);

    replica.pause().unwrap();
    let lags = || {
        let found = doctor(&deployment, &[]).out;
        found.contains("it has replicas (1, 1 silent for up to ")
            && found.contains(" bytes behind): one that is promoted lacks the locks")
            && !found.contains(" and 0 bytes behind")
    };
    assert!(eventually(PATIENCE, lags));
    // A server that insists on replicas refuses locks, and is no safer.
    let set = |name: &str, value: &str| {
        accepts(&deployment.servers[2], &["CONFIG", "SET", name, value]);
    };
    set("min-replicas-max-lag", "2");
    set("min-replicas-to-write", "1");
    let refuses = "fault: min-replicas: it refuses locks: 0 of 1 replicas are in time \
                   (min-replicas-to-write); CONFIG SET min-replicas-to-write 0\n";
    assert!(eventually(PATIENCE, || doctor(&deployment, &[])
        .out
        .contains(refuses)));
    finds(&deployment, &[], 1, &["locks work: 2 of 3 nodes vote"]);
    replica.resume().unwrap();
    let may_refuse = "warning: min-replicas: it refuses locks while fewer than 1 replicas are in time \
                      (min-replicas-to-write), and waits for none; ";
    assert!(eventually(PATIENCE, || doctor(&deployment, &[])
        .out
        .contains(may_refuse)));
}

#[test]
fn a_durable_node_with_a_replica_is_no_better_than_the_replica() {
    let durable = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let deployment = Deployment {
        servers: vec![durable],
    };
    finds(&deployment, &["--durable"], 0, &["fine: all 1 nodes vote"]);
    let _replica = replica(&deployment.servers[0]);
    let address = deployment.servers[0].address();
    let holds = format!(
        "guarantee: one valid holder, if {address} keeps its keys, as declared, and {address} is not replaced by a \
         replica that lacks a lock\n"
    );
    let warning = "one that is promoted lacks the locks that it has not received, and votes at once, as declared \
                   durable; declare it durable only if a fail-over loses nothing\n";
    finds(&deployment, &["--durable"], 1, &[&holds, warning]);
}

#[test]
fn a_declaration_is_compared_with_the_settings_of_the_node() {
    let server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let mut deployment = Deployment {
        servers: vec![server],
    };
    // In the URL, as for all nodes.
    let url = format!("{}?durable=true", deployment.servers[0].url());
    let in_url = ["--nodes", url.as_str()];
    let address = deployment.servers[0].address();
    for options in [&["--durable"], in_url.as_slice()] {
        finds(&deployment, options, 0, &["fine: all 1 nodes vote"]);
    }
    for (name, late, sound) in [
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("appendfsync", "everysec", "always"),
    ] {
        let set = |value| accepts(&deployment.servers[0], &["CONFIG", "SET", name, value]);
        set(late);
        let warning = format!(
            "warning: not-durable: it is declared durable, and does not write each change to disk ({name} {late}): it \
             votes at once after a crash; "
        );
        let holds = format!(
            "guarantee: one valid holder, if {address} ({name} {late}) keeps its keys, as declared\n"
        );
        for options in [&["--durable"], in_url.as_slice()] {
            finds(&deployment, options, 1, &[&warning, &holds]);
        }
        set(sound);
    }
    let late = ["CONFIG", "SET", "appendfsync", "everysec"];
    accepts(&deployment.servers[0], &late);
    // A node with a URL of its own is not declared by the setting for all.
    let not = format!("{}?durable=false", deployment.servers[0].url());
    finds(
        &deployment,
        &["--durable", "--nodes", &not],
        0,
        &["fine: all 1 nodes vote"],
    );
    // The declaration of one that appends nothing is ignored.
    accepts(
        &deployment.servers[0],
        &["CONFIG", "SET", "appendonly", "no"],
    );
    let ignored = "warning: not-durable: it is declared durable, and appends nothing to disk: the declaration is \
                   ignored; appendonly yes and appendfsync always, or do not declare it durable\n";
    let holds = "guarantee: one valid holder, if the node does not lose its keys within max_ttl";
    finds(&deployment, &["--durable"], 1, &[ignored, holds]);

    // What withholds its settings is not verified, as a service.
    let arguments = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--rename-command",
        "CONFIG",
        "",
    ];
    deployment.servers[0] = Server::with(&arguments).unwrap();
    let notes = [
        "note: no-config: the server does not know CONFIG: appendfsync, save points and min-replicas-to-write are not \
         seen\n",
        "note: durability: it is declared durable, and does not show whether it keeps each change\n",
        ": fine\n",
        " keeps its keys, as declared\n",
    ];
    finds(&deployment, &["--durable"], 0, &notes);
}

#[test]
fn a_user_without_info_or_config_is_told_what_cannot_be_verified() {
    if !has_users() {
        return;
    }
    let deployment = with(Server::start().unwrap());
    let allow = |rights: &[&str]| {
        let command = [&["ACL", "SETUSER", "default", "+@all"], rights].concat();
        accepts(&deployment.servers[2], &command);
    };
    allow(&["-config"]);
    let what = "the user may not run CONFIG: appendfsync, save points and min-replicas-to-write are not seen";
    let note = format!("note: no-config: {what}\n");
    let found = finds(&deployment, &[], 0, &[&note, "fine: all 3 nodes vote"]);
    // No lock needs it, so no right is advised.
    assert!(!found.out.contains("ACL SETUSER"), "{}", found.all());
    let member = format!("\"level\":\"note\",\"kind\":\"no-config\",\"message\":\"{what}\"");
    finds(&deployment, &["--json"], 0, &[&member]);

    allow(&["-info", "-config"]);
    let unseen = "version, role, persistence, restarts, replicas, eviction and two URLs of one server are not seen";
    let warning = format!(
        "warning: no-info: the user may not run INFO: {unseen}; ACL SETUSER default +info\n"
    );
    // It tells nothing of losses either, so no other node may lose its keys.
    let address = deployment.servers[2].address();
    let holds = format!(
        "guarantee: one valid holder, if none of the 2 other nodes loses its keys within max_ttl, and {address} loses \
         none, of which it would tell nothing, and {address} evicts no lock, which INFO does not show, and all \
         nodes are different servers\n"
    );
    finds(&deployment, &[], 1, &[&note, &warning, &holds]);
}

#[test]
fn a_server_whose_info_is_renamed_is_told_what_cannot_be_verified() {
    let server = Server::with(&["--rename-command", "INFO", ""]).unwrap();
    let deployment = Deployment {
        servers: vec![server],
    };
    let address = deployment.servers[0].address();
    let holds = format!("and {address} evicts no lock, which INFO does not show\n");
    finds(
        &deployment,
        &[],
        1,
        &[
            "warning: no-info: the server does not know INFO: version, role, ",
            "; name the command as it was\n",
            &holds,
        ],
    );
}

#[test]
fn a_cluster_with_one_shard_is_a_node_and_one_with_two_is_none() {
    let member = || Server::with(&["--cluster-enabled", "yes"]).unwrap();
    let deployment = with(member());
    let slotless = "fault: cluster: its cluster does not serve all slots; let one shard serve them, or name an \
                    independent master\n";
    finds(
        &deployment,
        &[],
        1,
        &[slotless, "locks work: 2 of 3 nodes vote"],
    );

    let mut shard = Shard::start(&Server::plan(), 0);
    let deployment = with(shard.servers.remove(0));
    let one = "note: cluster: it runs in cluster mode, with one shard: a fail-over to a replica may lose locks\n";
    finds(&deployment, &[], 0, &[one]);
    let declared = "note: cluster: it runs in cluster mode, with one shard; it is declared durable, so a fail-over \
                    must lose nothing\n";
    assert!(doctor(&deployment, &["--durable"]).out.contains(declared));

    let mut members = vec![member(), member()];
    own(&members[0], 0..8_192);
    own(&members[1], 8_192..16_384);
    meet(&members[0], &members[1]);
    serves(&members);
    let deployment = with(members.swap_remove(0));
    let two = "fault: cluster: its cluster has 2 shards: one of them has a key, so they are no independent masters; \
               name nodes of which each is a cluster with one shard, or no cluster\n";
    finds(&deployment, &[], 1, &[two, "locks work: 2 of 3 nodes vote"]);
    if has_users() {
        let user = ["ACL", "SETUSER", "default", "-cluster"];
        accepts(&deployment.servers[2], &user);
        let hidden = "fault: cluster: it is a member of a cluster, and does not show its shards; ACL SETUSER default \
                      +cluster|info\n";
        finds(&deployment, &[], 1, &[hidden]);
    }
}

/// What the library is led to is examined, listed and shown.
#[test]
fn a_url_of_a_replica_leads_every_command_to_the_master_of_its_shard() {
    let mut shard = Shard::start(&Server::plan(), 1);
    let deployment = Deployment {
        servers: vec![shard.servers.remove(1)],
    };
    let shown = "note: cluster: it runs in cluster mode, with one shard";
    let found = doctor(&deployment, &[]);
    assert!(
        found.out.contains(shown) && !found.out.contains("fault:"),
        "{}",
        found.all()
    );
    let guard = client(&shard.servers[..1]).mutex("k").ttl(PATIENCE).lock();
    for words in [["show", "k"].as_slice(), &["ls"]] {
        let ended = run(deployment.tool(words));
        assert!(
            ended.code == Some(0) && ended.out.contains("k"),
            "{}",
            ended.all()
        );
    }
    unlock(guard.unwrap());
    let ended = run(deployment.tool(&["run", "-n", "k", "--", "true"]));
    assert_eq!(ended.code, Some(0), "{}", ended.all());
}
