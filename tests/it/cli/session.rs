//! The session that README.md and the page on the command line show can be reproduced: its commands
//! are run, and print what it shows.

use super::*;

const PROMPT: &str = "$ ";

/// A part of the session, by its first command: each command with the lines below it.
fn part(page: &str, first: &str) -> Vec<(String, Vec<String>)> {
    let blocks = package::blocks(&text_of(page), "text");
    let block = blocks.iter().find(|block| block.starts_with(first));
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.unwrap().lines() {
        match line.strip_prefix(PROMPT) {
            Some(command) => commands.push((command.to_owned(), Vec::new())),
            None => commands.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    commands
}

/// A line without what differs from one run to the next: times and counts are `#`, and run ids and
/// tokens have no digits. Counts of nodes, as `2/3`, and addresses are the same in each run.
fn shape(line: &str) -> String {
    let mut shape: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ';']);
        let end = &word[bare.len()..];
        let is_unit = ["µs", "ms", "s", "min", "h", "d"].contains(&bare);
        let is_number = bare
            .trim_start_matches(['+', '-'])
            .starts_with(|letter: char| letter.is_ascii_digit());
        match shape.last_mut() {
            // A time has a unit, and may have two parts.
            Some(last) if last == "#" && (is_unit || is_number) => last.push_str(end),
            Some(last) if last == "id" => *last = format!("id{end}"),
            _ if bare.ends_with('…') => shape.push("token".to_owned()),
            _ if is_number && !bare.contains(['/', ':']) => shape.push(format!("#{end}")),
            _ => shape.push(word.to_owned()),
        }
    }
    shape.join(" ")
}

#[test]
fn the_session_of_the_readme_can_be_had() {
    skip_unless!(has_users());
    let mut deployment = Deployment::of(3);
    let session = [
        part("README.md", "$ export QUORUMLOCK_NODES"),
        part("src/docs/command_line.md", "$ quorumlock doctor\n"),
    ]
    .concat();
    let commands: Vec<&str> = session
        .iter()
        .map(|(command, _)| command.as_str())
        .collect();
    assert_eq!(
        commands,
        [
            "export QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3",
            "quorumlock run --no-wait nightly-report -- sleep 60 &",
            "quorumlock run --no-wait nightly-report -- echo never; echo $?",
            "quorumlock ls",
            "quorumlock doctor",
        ]
    );
    let addresses: Vec<String> = deployment.servers.each(Server::address);
    let prints = |ended: Ended, index: usize| {
        // Both are servers of a session that can be had.
        let mut shown = ended.all().replace("Valkey", "Redis");
        for (number, address) in addresses.iter().enumerate() {
            shown = shown.replace(address, &format!("10.0.0.{}:6379", number + 1));
        }
        let shapes = |lines: &[String]| lines.iter().map(|line| shape(line)).collect::<Vec<_>>();
        let printed: Vec<String> = shown.lines().map(str::to_owned).collect();
        assert_eq!(shapes(&printed), shapes(&session[index].1), "{shown}");
    };
    let held = deployment.start("run --no-wait nightly-report -- sleep 60");
    deployment.wait_for_keys(3);
    let mut refused = deployment.run("run --no-wait nightly-report -- echo never");
    refused.err += &format!("{}\n", refused.code.unwrap());
    prints(refused, 2);
    prints(deployment.run("ls"), 3);
    held.terminate();
    command_each(&deployment.servers[1..2], "ACL SETUSER default -publish");
    deployment.servers[2].kill();
    prints(deployment.run("doctor"), 4);
}
