//! Messages about settings name them as they were given: by the option, or by the variable.

use super::deployment::{Deployment, run, tool};

#[test]
fn a_setting_that_cannot_be_used_is_named_as_it_was_given() {
    // Options, a variable with its value, and the message.
    let table = [
        (
            "--nodes ,",
            "",
            "--nodes: no node: name at least one by its URL",
        ),
        (
            "",
            "NODES ,",
            "QUORUMLOCK_NODES: no node: name at least one by its URL",
        ),
        ("--node-timeout 0", "", "--node-timeout: "),
        ("", "NODE_TIMEOUT 0", "QUORUMLOCK_NODE_TIMEOUT: "),
        (
            "--restart-policy x",
            "",
            "--restart-policy: must be one of observed, strict, off",
        ),
        (
            "",
            "TTL 5",
            "QUORUMLOCK_TTL: must be a duration, such as 250ms, 30s or 5m",
        ),
        (
            "",
            "TTL 90s",
            "QUORUMLOCK_TTL: is longer than QUORUMLOCK_MAX_TTL (60 s)",
        ),
        (
            "--max-ttl 4s",
            "TTL 5s",
            "QUORUMLOCK_TTL: is longer than --max-ttl (4 s)",
        ),
        (
            "",
            "SNI h",
            "QUORUMLOCK_SNI: is no setting any more: write ?server_name= in each URL",
        ),
        (
            "",
            "TLS true",
            "QUORUMLOCK_TLS: is no setting: write rediss:// in each URL",
        ),
        ("--cacert /nowhere", "", "--cacert: /nowhere: "),
        ("", "CACERT /nowhere", "QUORUMLOCK_CACERT: /nowhere: "),
        (
            "--password-file /nowhere",
            "",
            "--password-file: /nowhere: the password file does not exist",
        ),
        (
            "",
            "PASSWORD_FILE /",
            "QUORUMLOCK_PASSWORD_FILE: /: the password file cannot be read: is a directory",
        ),
        (
            "--cert /nowhere",
            "",
            "--cert and QUORUMLOCK_KEY are set together",
        ),
    ];
    for (options, variable, expected) in table
        .into_iter()
        .filter(|(.., text)| cfg!(feature = "tls") || !is_of_tls(text))
    {
        let mut tool = tool(&format!("nodes {options}"));
        tool.env("QUORUMLOCK_NODES", "rediss://127.0.0.1:1");
        if let Some((name, value)) = variable.split_once(' ') {
            tool.env(format!("QUORUMLOCK_{name}"), value);
        }
        let message = run(tool).exits(78).err;
        assert!(
            message.starts_with(&format!("quorumlock: {expected}")),
            "{options} {variable}: {message}"
        );
        assert!(!message.contains("::"), "{message}");
    }
}

#[test]
fn an_empty_value_of_an_option_is_none() {
    let options = [
        "--restart-policy",
        "--node-timeout",
        "--label",
        "--nodes",
        "--config",
        "--sni",
        "--cacert",
    ];
    for option in options {
        let mut tool = tool(&["nodes", option, ""]);
        tool.env("QUORUMLOCK_NODES", "redis://127.0.0.1:1");
        let ended = run(tool);
        assert_eq!(ended.code, Some(2), "{option}: {}", ended.all());
    }
}

fn is_of_tls(text: &str) -> bool {
    text.contains("/nowhere") || text.contains("--cert")
}

#[test]
fn a_time_to_live_has_its_unit() {
    let deployment = Deployment::of(1);
    let script = "echo $QUORUMLOCK_EXPIRES_UNIX_MS; date +%s%3N";
    let mut tool = deployment.tool(&("run a -- sh -c", [script]));
    let ended = run(tool.env("QUORUMLOCK_TTL", "5s"));
    let times = ended.out.lines().map(|line| line.parse().unwrap());
    let times: Vec<i64> = times.collect();
    assert!(
        (0..=5000).contains(&(times[0] - times[1])),
        "{}",
        ended.all()
    );
}
