//! The manual page has what the help has, and completion scripts are scripts.

use super::*;

const COMMANDS: [&str; 11] = [
    "run", "nodes", "show", "ls", "scan", "break", "doctor", "bench", "complete", "manual",
    "version",
];

/// The options of a help text, each with its description.
fn options(help: &str) -> Vec<(String, String)> {
    let plain = help
        .replace(['<', '>'], "")
        .replace("[default: ", "(")
        .replace(']', ")");
    let pairs = plain
        .lines()
        .filter_map(|line| line.trim().split_once("  "));
    let options = pairs.filter(|(name, _)| name.starts_with('-') && !name.ends_with("--help"));
    options
        .map(|(name, text)| (name.to_owned(), text.trim().to_owned()))
        .collect()
}

#[test]
fn the_manual_page_has_every_option_of_every_command() {
    let page = run(tool("manual")).out.replace("\\-", "-");
    let shared = page
        .split("\n.SS ")
        .find(|body| body.starts_with("Nodes and settings\n"))
        .unwrap();
    for command in COMMANDS {
        let section = page
            .split("\n.SS ")
            .find(|body| body.lines().next() == Some(command));
        let section = section.unwrap_or_else(|| panic!("no section {command}"));
        let help = run(tool(&[command, "--help"])).exits(0).out;
        let options = options(&help);
        for entry in section.lines().filter(|line| line.starts_with("\\fB-")) {
            let is_known = |(name, _): &(String, _)| entry == format!("\\fB{name}\\fR");
            assert!(options.iter().any(is_known), "{command}: {entry}");
        }
        for (name, text) in options {
            let entry = format!("\\fB{name}\\fR\n{text}");
            assert!(
                section.contains(&entry) || shared.contains(&entry),
                "{command}: {entry}"
            );
        }
    }
    let overview = run(tool("--help")).out;
    let named = overview
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let named: Vec<&str> = named
        .filter(|name| !name.starts_with('-') && *name != "help")
        .collect();
    assert_eq!(named, COMMANDS);
}

#[test]
fn the_version_is_a_command_and_an_option() {
    let expected = concat!("quorumlock ", env!("CARGO_PKG_VERSION"), "\n");
    for word in ["version", "--version", "-V"] {
        assert_eq!(run(tool(word)).exits(0).out, expected, "{word}");
    }
}

#[test]
fn completion_scripts_are_read_by_their_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(tool(&["complete", shell])).exits(0).prints("no-extend");
        let known = Command::new(shell).args(["-n", "-c", &script.out]).output();
        let is_read = known.map_or(shell != "bash", |output| output.status.success());
        assert!(is_read, "{shell} does not read its script");
    }
}

/// What bash offers for the last of these words, in a folder.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let at = words.len() - 1;
    let last = &quoted[words.len() - 2..];
    let (last, before, words) = (&last[1], &last[0], quoted.join(" "));
    let show = "printf '%s\\n' \"${COMPREPLY[@]}\"";
    let script = run(tool("complete bash")).out;
    let script = format!(
        "{script}\nCOMP_WORDS=({words}); COMP_CWORD={at}; _quorumlock quorumlock {last} {before} 2>/dev/null; {show}"
    );
    let mut bash = program("bash");
    bash.args(["-c", &script]).current_dir(folder);
    let shown = run(bash).out;
    let lines = shown.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn options_their_values_and_files_are_completed() {
    let folder = folder();
    for name in ["locks.env", "locks of jobs.env", "other"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let offered = |words: &[&str]| offered(&folder, &[&["quorumlock"], words].concat());
    let table: [(&[&str], &[&str]); 5] = [
        (
            &["run", "--no"],
            &["--no-wait", "--no-extend", "--nodes", "--node-timeout"],
        ),
        (&["d"], &["doctor"]),
        (
            &["run", "--restart-policy", ""],
            &["observed", "strict", "off"],
        ),
        (&["scan", "--ignore", "f"], &["foreign", "fence-at-rest"]),
        (&["help", "com"], &["complete"]),
    ];
    for (words, expected) in table {
        assert_eq!(offered(words), expected);
    }
    for option in ["--config", "--cacert", "--cert", "--key"] {
        let mut files = offered(&["run", option, "lo"]);
        files.sort();
        assert_eq!(files, ["locks of jobs.env", "locks.env"], "{option}");
    }
    assert!(
        offered(&["complete", ""])
            .ends_with(&["bash", "elvish", "fish", "powershell", "zsh"].map(str::to_owned))
    );
    run(tool("complete fish"))
        .prints(" -l config ")
        .prints(" -l restart-policy ");
}

#[test]
fn every_value_that_is_offered_is_one() {
    let offered = |words: &[&str]| offered(Path::new("/"), &[words, &[""]].concat());
    for policy in offered(&["quorumlock", "nodes", "--restart-policy"]) {
        let words = format!("nodes --nodes redis://127.0.0.1:1 --restart-policy {policy}");
        run(tool(&words)).exits(2);
    }
    let help = run(tool("scan --help")).out;
    let kinds = offered(&["quorumlock", "scan", "--ignore"]);
    assert!(
        kinds.len() == 4 && kinds.iter().all(|kind| help.contains(kind.as_str())),
        "{kinds:?}"
    );
}
