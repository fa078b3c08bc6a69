//! `doctor` on servers that are no plain masters: they evict, have replicas, run in cluster mode,
//! or withhold what they are. It names that, and states what holds then.

use super::*;
use crate::support::shard::{Shard, meet, own, serves};

/// How long servers may take to see each other.
const PATIENCE: Duration = Duration::from_secs(30);

fn doctor(deployment: &Deployment, options: &str) -> Ended {
    deployment.run(&format!("doctor {options}"))
}

#[track_caller]
fn finds(deployment: &Deployment, options: &str, code: i32, texts: &[&str]) -> Ended {
    doctor(deployment, &format!("{PATIENT} {options}"))
        .exits(code)
        .prints_all(texts)
}

/// `doctor` finds this in the end.
#[track_caller]
fn comes_to_find(deployment: &Deployment, text: &str) {
    let found = || doctor(deployment, "").out.contains(text);
    assert!(eventually(PATIENCE, found), "{text}");
}

/// Sets this of the last server.
#[track_caller]
fn set(deployment: &Deployment, name: &str, value: &str) {
    let server = deployment.servers.last().unwrap();
    ok(server, &["CONFIG", "SET", name, value]);
}

fn replica(master: &Server) -> Server {
    let replica = replica_of(master);
    assert!(eventually(PATIENCE, || is_synchronised(&replica)));
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
    let deployment = Deployment::of(3);
    // Without a limit nothing is evicted.
    for policy in ["allkeys-lru", "volatile-ttl"] {
        set(&deployment, "maxmemory-policy", policy);
        set(&deployment, "maxmemory", "0");
        finds(&deployment, "", 0, &["fine: all 3 nodes vote"]);
        set(&deployment, "maxmemory", "100mb");
        let condition = guarantee(&deployment, &format!("({policy}) evicts no lock"));
        let warning = format!(
            "warning: eviction: it may evict the key of a held lock ({policy}) when its memory is full, and vote for \
             another client; CONFIG SET maxmemory-policy noeviction\n"
        );
        let holds = format!("guarantee: {condition}\n");
        finds(&deployment, "", 1, &[&holds, &warning]);
        finds(&deployment, "--json", 1, &[])
            .prints("\"level\":\"warning\",\"kind\":\"eviction\"")
            .prints(&format!("\"guarantee\":\"{condition}\""));
    }
}

#[test]
fn a_replica_and_how_far_it_lags_are_named_with_what_its_promotion_means() {
    let deployment = Deployment::of(3);
    let replica = replica(&deployment.servers[2]);
    let waits = "one that is promoted lacks the locks that it has not received, and does not vote for max_ttl; do not \
                 promote them, or detach them\n";
    let in_time = format!("warning: replicas: it has replicas (1): {waits}");
    comes_to_find(&deployment, &in_time);
    let off = "and votes at once, by restart policy off; do not promote";
    finds(&deployment, "--restart-policy off", 1, &[off]);

    replica.pause().unwrap();
    let lags = || {
        let found = doctor(&deployment, "").out;
        found.contains("it has replicas (1, 1 silent for up to ")
            && found.contains(" bytes behind): one that is promoted lacks the locks")
            && !found.contains(" and 0 bytes behind")
    };
    assert!(eventually(PATIENCE, lags));
    // A server that insists on replicas refuses locks, and is no safer.
    set(&deployment, "min-replicas-max-lag", "2");
    set(&deployment, "min-replicas-to-write", "1");
    let refuses = "fault: min-replicas: it refuses locks: 0 of 1 replicas are in time \
                   (min-replicas-to-write); CONFIG SET min-replicas-to-write 0\n";
    comes_to_find(&deployment, refuses);
    finds(&deployment, "", 1, &["locks work: 2 of 3 nodes vote"]);
    replica.resume().unwrap();
    let may_refuse = "warning: min-replicas: it refuses locks while fewer than 1 replicas are in time \
                      (min-replicas-to-write), and waits for none; ";
    comes_to_find(&deployment, may_refuse);
}

#[test]
fn a_durable_node_with_a_replica_is_no_better_than_the_replica() {
    let deployment = Deployment::of_one(durable().start().unwrap());
    finds(&deployment, "--durable", 0, &["fine: all 1 nodes vote"]);
    let _replica = replica(&deployment.servers[0]);
    let address = deployment.servers[0].address();
    let holds = format!(
        "guarantee: one valid holder, if {address} keeps its keys, as declared, and {address} is not replaced by a \
         replica that lacks a lock\n"
    );
    let warning = "one that is promoted lacks the locks that it has not received, and votes at once, as declared \
                   durable; declare it durable only if a fail-over loses nothing\n";
    finds(&deployment, "--durable", 1, &[&holds, warning]);
}

#[test]
fn a_declaration_is_compared_with_the_settings_of_the_node() {
    let deployment = Deployment::of_one(durable().start().unwrap());
    let url = deployment.servers[0].url();
    let address = deployment.servers[0].address();
    // In the URL, as for all nodes.
    let in_url = format!("--nodes {url}?durable=true");
    for options in ["--durable", &in_url] {
        finds(&deployment, options, 0, &["fine: all 1 nodes vote"]);
    }
    for (name, late, sound) in [
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("appendfsync", "everysec", "always"),
    ] {
        set(&deployment, name, late);
        let warning = format!(
            "warning: not-durable: it is declared durable, and does not write each change to disk ({name} {late}): it \
             votes at once after a crash; "
        );
        let holds = format!(
            "guarantee: one valid holder, if {address} ({name} {late}) keeps its keys, as declared\n"
        );
        for options in ["--durable", &in_url] {
            finds(&deployment, options, 1, &[&warning, &holds]);
        }
        set(&deployment, name, sound);
    }
    set(&deployment, "appendfsync", "everysec");
    // A node with a URL of its own is not declared by the setting for all.
    let not = format!("--durable --nodes {url}?durable=false");
    finds(&deployment, &not, 0, &["fine: all 1 nodes vote"]);
    // The declaration of one that appends nothing is ignored.
    set(&deployment, "appendonly", "no");
    let ignored = "warning: not-durable: it is declared durable, and appends nothing to disk: the declaration is \
                   ignored; appendonly yes and appendfsync always, or do not declare it durable\n";
    let holds = "guarantee: one valid holder, if the node does not lose its keys within max_ttl";
    finds(&deployment, "--durable", 1, &[ignored, holds]);

    // What withholds its settings is not verified, as a service.
    let plan = durable().without(&["CONFIG"]);
    let deployment = Deployment::of_one(plan.start().unwrap());
    let notes = [
        "note: no-config: the server does not know CONFIG: appendfsync, save points and min-replicas-to-write are not \
         seen\n",
        "note: durability: it is declared durable, and does not show whether it keeps each change\n",
        ": fine\n",
        " keeps its keys, as declared\n",
    ];
    finds(&deployment, "--durable", 0, &notes);
}

#[test]
fn a_user_without_info_or_config_is_told_what_cannot_be_verified() {
    skip_unless!(has_users());
    let deployment = Deployment::of(3);
    let allow = |rights: &str| {
        let command = format!("ACL SETUSER default +@all {rights}");
        command_each(&deployment.servers[2..], &command);
    };
    allow("-config");
    let what = "the user may not run CONFIG: appendfsync, save points and min-replicas-to-write are not seen";
    let note = format!("note: no-config: {what}\n");
    // No lock needs it, so no right is advised.
    finds(&deployment, "", 0, &[&note, "fine: all 3 nodes vote"]).hides("ACL SETUSER");
    let member = format!("\"level\":\"note\",\"kind\":\"no-config\",\"message\":\"{what}\"");
    finds(&deployment, "--json", 0, &[&member]);

    allow("-info -config");
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
    finds(&deployment, "", 1, &[&note, &warning, &holds]);
}

#[test]
fn a_server_whose_info_is_renamed_is_told_what_cannot_be_verified() {
    let server = Server::with(&["--rename-command", "INFO", ""]).unwrap();
    let deployment = Deployment::of_one(server);
    let address = deployment.servers[0].address();
    let holds = format!("and {address} evicts no lock, which INFO does not show\n");
    let warning = "warning: no-info: the server does not know INFO: version, role, ";
    let remedy = "; name the command as it was\n";
    finds(&deployment, "", 1, &[warning, remedy, &holds]);
}

#[test]
fn a_cluster_with_one_shard_is_a_node_and_one_with_two_is_none() {
    let member = || Server::with(&["--cluster-enabled", "yes"]).unwrap();
    let deployment = Deployment::with_third(member());
    let slotless = "fault: cluster: its cluster does not serve all slots; let one shard serve them, or name an \
                    independent master\n";
    finds(
        &deployment,
        "",
        1,
        &[slotless, "locks work: 2 of 3 nodes vote"],
    );

    let mut shard = Shard::start(&Server::plan(), 0);
    let deployment = Deployment::with_third(shard.servers.remove(0));
    let one = "note: cluster: it runs in cluster mode, with one shard: a fail-over to a replica may lose locks\n";
    finds(&deployment, "", 0, &[one]);
    let declared = "note: cluster: it runs in cluster mode, with one shard; it is declared durable, so a fail-over \
                    must lose nothing\n";
    doctor(&deployment, "--durable").prints(declared);

    let mut members = vec![member(), member()];
    own(&members[0], 0..8_192);
    own(&members[1], 8_192..16_384);
    meet(&members[0], &members[1]);
    serves(&members);
    let deployment = Deployment::with_third(members.swap_remove(0));
    let two = "fault: cluster: its cluster has 2 shards: one of them has a key, so they are no independent masters; \
               name nodes of which each is a cluster with one shard, or no cluster\n";
    finds(&deployment, "", 1, &[two, "locks work: 2 of 3 nodes vote"]);
    if has_users() {
        command_each(&deployment.servers[2..], "ACL SETUSER default -cluster");
        let hidden = "fault: cluster: it is a member of a cluster, and does not show its shards; ACL SETUSER default \
                      +cluster|info\n";
        finds(&deployment, "", 1, &[hidden]);
    }
}

/// What the library is led to is examined, listed and shown.
#[test]
fn a_url_of_a_replica_leads_every_command_to_the_master_of_its_shard() {
    let mut shard = Shard::start(&Server::plan(), 1);
    let deployment = Deployment::of_one(shard.servers.remove(1));
    doctor(&deployment, "")
        .prints("note: cluster: it runs in cluster mode, with one shard")
        .hides("fault:");
    let guard = client(&shard.servers[..1]).mutex("k").ttl(PATIENCE).lock();
    for words in ["show k", "ls"] {
        deployment.succeeds(words).prints("k");
    }
    unlock(guard.unwrap());
    deployment.succeeds("run -n k -- true");
}
