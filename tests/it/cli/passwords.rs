//! No output shows a password or a whole token, and the command does not find them in its
//! environment.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

const PASSWORD: &str = "hunter2";

fn servers() -> Vec<Server> {
    let plan = Server::plan().arguments(&["--requirepass", PASSWORD]);
    plan.several(3).unwrap()
}

/// The nodes, with this in front of their addresses.
fn urls_of(servers: &[Server], login: &str) -> String {
    let urls = servers
        .iter()
        .map(|server| format!("redis://{login}@{}", server.address()));
    urls.collect::<Vec<_>>().join(",")
}

/// Whether more than six digits of a planted token are shown, or most of another one.
fn has_token(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_token =
        |word: &str| word.len() >= 20 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    ["abababa", "cdcdcdc"]
        .iter()
        .any(|digits| text.contains(digits))
        || words.into_iter().any(is_token)
}

#[test]
fn no_output_of_any_command_shows_a_password_or_a_token() {
    let servers = servers();
    let right = urls_of(&servers, &format!(":{PASSWORD}"));
    // One that is wrong, and one that is no URL.
    let wrong = urls_of(&servers, ":hunter2wrong");
    let broken = format!(
        "redis://:{PASSWORD}@,{}",
        urls_of(&servers[1..2], &format!(":{PASSWORD}"))
    );
    command_each(&servers, &format!("SET held {} PX 60000", "ab".repeat(20)));
    command_each(&servers, &format!("SET endless {}", "cd".repeat(20)));
    for words in [
        "run -v --json-events 2 --fenced a -- true",
        "run -v -n held -- true",
        "nodes",
        "show held --json",
        "ls",
        "scan --json",
        "doctor",
        "break endless --yes",
        "bench --duration 50ms",
    ] {
        for urls in [&right, &wrong, &broken] {
            let mut tool = tool(words);
            tool.env("QUORUMLOCK_NODES", urls)
                .env("QUORUMLOCK_UNAVAILABLE_AFTER", "100ms");
            let ended = run(tool).hides(PASSWORD);
            assert!(!has_token(&ended.all()), "{words}: {}", ended.all());
        }
    }
}

#[test]
fn a_password_is_read_from_a_file_or_printed_by_a_command() {
    let servers = servers();
    let urls = urls_of(&servers, "default");
    let path = folder().join("password");
    fs::write(&path, format!("{PASSWORD}\n")).unwrap();
    let path = path.to_str().unwrap();
    let print = format!("cat '{path}'");
    for (command, rest) in [("doctor", ""), ("ls", ""), ("run", "a -- true")] {
        for (option, value, is_right) in [
            ("--password-file", path, true),
            ("--password-command", &print, true),
            ("--password-command", "echo hunter3", false),
            ("--password-command", "exit 3", false),
        ] {
            let mut tool = tool(&[command, option, value]);
            tool.args(rest.split_whitespace())
                .env("QUORUMLOCK_NODES", &urls);
            // Nodes that refuse the password are asked again until this time has passed.
            if !is_right {
                tool.env("QUORUMLOCK_UNAVAILABLE_AFTER", "100ms");
            }
            let ended = run(tool).hides("hunter");
            // The doctor has warnings about servers that keep nothing on disk.
            let is_well = ended.code == Some(0) || command == "doctor" && ended.code == Some(1);
            assert_eq!(is_well, is_right, "{command} {option}: {}", ended.all());
        }
    }
}

/// It is no password: what never ends, and what is no text.
#[test]
fn a_command_that_prints_no_password_is_an_error_and_leaves_no_process() {
    let server = Server::with(&["--requirepass", PASSWORD]).unwrap();
    let urls = urls_of(std::slice::from_ref(&server), "default");
    let run_again = "n=$(cat '{}' 2>/dev/null); echo $((n + 1)) > '{}'; printf '\\377'";
    let log = folder().join("times");
    let print = run_again.replace("{}", log.to_str().unwrap());
    for print in ["yes", &print] {
        let mut tool = tool(&["ls", "--password-command", print]);
        tool.env("QUORUMLOCK_NODES", &urls);
        let mut asking = Running::start(tool);
        assert_eq!(asking.code(), Some(69));
        asking.wait().reports("no credentials");
    }
    let mut tool = tool(&["run", "--wait", "20s", "--password-command", &print]);
    tool.args(["a", "--", "true"])
        .env("QUORUMLOCK_NODES", &urls);
    let waiting = Running::start(tool);
    let times = || fs::read_to_string(&log).map_or(0, |text| text.trim().parse().unwrap_or(0));
    assert_soon!(times() >= 4, "it is not run again");
    let tasks = fs::read_dir(format!("/proc/{}/task", waiting.pid())).unwrap();
    let children = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().count()
    };
    let children: usize = tasks.flatten().map(children).sum();
    assert!(children <= 1, "{children} children, ended or not");
    waiting.send(Signal::SIGTERM);
    waiting.wait().exits(143);
}

#[test]
fn a_command_that_prints_the_password_is_run_also_after_an_update_of_the_program() {
    let servers = servers();
    let urls = urls_of(&servers, "default");
    let folder = folder();
    let (program, log) = (folder.join("quorumlock"), folder.join("log"));
    fs::copy(PRESENT, &program).unwrap();
    let print = format!("echo asked >> '{}'; echo {PASSWORD}", log.display());
    let mut running = tool_at(&program, &["run", "--password-command", &print]);
    running
        .args(["a", "--", "sleep", "99"])
        .env("QUORUMLOCK_NODES", urls);
    let running = Running::start(running);
    let asked = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let holds = |server: &Server| server.keys().is_ok_and(|keys| keys == ["a"]);
    let soon = Duration::from_secs(10);
    assert!(eventually(soon, || servers.all(holds)));
    fs::remove_file(&program).unwrap();
    let before = asked();
    command_each(&servers, "CLIENT KILL TYPE normal");
    assert!(
        eventually(soon, || asked() >= before + servers.len()),
        "asked {} times, and {before} before",
        asked()
    );
    running.terminate();
}

#[test]
fn the_command_does_not_find_the_password_however_it_was_given() {
    let servers = servers();
    let urls = urls_of(&servers, &format!(":{PASSWORD}"));
    let file = folder().join("quorumlock.env");
    fs::write(&file, format!("QUORUMLOCK_NODES={urls}\n")).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    // The environment of the command and of all that it can see of this program's group.
    let command = "cat /proc/$$/environ /proc/self/environ /proc/self/cmdline";
    let config = file.to_str().unwrap();
    let environments: [(&[&str], bool); 3] = [
        (&["run"], true),
        (&["run", "--nodes", &urls], false),
        (&["run", "--config", config], true),
    ];
    for (words, has_variable) in environments {
        let mut tool = tool(words);
        tool.args(["a", "--", "sh", "-c", command]);
        if has_variable {
            tool.env("QUORUMLOCK_NODES", &urls);
        }
        run(tool)
            .exits(0)
            .prints("QUORUMLOCK_NAME=a")
            .hides(PASSWORD)
            .hides("QUORUMLOCK_NODES");
    }
}
