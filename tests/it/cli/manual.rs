//! The manual page and the help say the same, and completion scripts are scripts.

use super::deployment::{folder, run, tool};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const COMMANDS: [&str; 10] = ["run", "nodes", "show", "ls", "scan", "break", "doctor", "bench", "complete", "manual"];

/// The options of a help text with their descriptions, and the usage line.
fn help(command: &str) -> BTreeMap<String, String> {
    let ended = run(tool(&[command, "--help"]));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let plain = |text: &str| text.replace("[default: ", "(").replace(']', ")").trim().to_owned();
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    for line in ended.out.replace(['<', '>'], "").lines() {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            options.insert("usage".to_owned(), usage.to_owned());
        }
        if let Some((name, text)) = line.trim().split_once("  ").filter(|(name, _)| name.starts_with('-')) {
            options.insert(name.to_owned(), plain(text));
        }
    }
    options.remove("-h, --help");
    options
}

/// The options of a section of the manual page, likewise.
fn manual(page: &str, section: &str) -> BTreeMap<String, String> {
    let body = page.split("\n.SS ").find(|body| body.lines().next() == Some(section));
    let body = body.unwrap_or_else(|| panic!("no section {section}")).split("\n.SH ").next().unwrap();
    let plain = |text: &str| text.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "");
    let mut options = BTreeMap::new();
    for entry in body.split("\n.TP\n").skip(1) {
        let (name, text) = entry.split_once('\n').unwrap_or((entry, ""));
        let text = text.lines().take_while(|line| !line.starts_with('.')).collect::<Vec<_>>().join(" ");
        options.insert(plain(name), plain(&text));
    }
    if let Some(usage) = body.lines().find_map(|line| line.strip_prefix(".B ")) {
        options.insert("usage".to_owned(), plain(usage));
    }
    options
}

#[test]
fn the_manual_page_has_what_the_help_has() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/quorumlock/quorumlock.1");
    let page = fs::read_to_string(page).unwrap();
    let shared = manual(&page, "Nodes and settings");
    assert!(shared.len() > 8);
    for command in COMMANDS {
        let help = help(command);
        let mut of_manual = manual(&page, command);
        if help.contains_key("--nodes URLS") {
            of_manual.extend(shared.clone());
        }
        assert_eq!(of_manual, help, "{command}");
    }
    let overview = run(tool(&["--help"])).out;
    let named = overview.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let named: Vec<&str> = named.filter(|name| !name.starts_with('-') && *name != "help").collect();
    assert_eq!(named, COMMANDS);
}

#[test]
fn completion_scripts_are_read_by_their_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(tool(&["complete", shell]));
        assert!(script.code == Some(0) && script.out.contains("no-extend"), "{shell}: {}", script.err);
        let known = Command::new(shell).args(["-n", "-c", &script.out]).output();
        let is_read = known.map_or(shell != "bash", |output| output.status.success());
        assert!(is_read, "{shell} does not read its script");
    }
}

/// What bash offers for the last of these words, in a folder.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (at, last) = (words.len() - 1, &quoted[words.len() - 2..]);
    let (last, before, words) = (&last[1], &last[0], quoted.join(" "));
    let show = "printf '%s\\n' \"${COMPREPLY[@]}\"";
    let script = run(tool(&["complete", "bash"])).out;
    let script = format!(
        "{script}\nCOMP_WORDS=({words}); COMP_CWORD={at}; _quorumlock quorumlock {last} {before} 2>/dev/null; {show}"
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn options_their_values_and_files_are_completed() {
    let folder = folder();
    for name in ["locks.env", "locks of jobs.env", "other"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let offered = |words: &[&str]| offered(&folder, &[&["quorumlock"], words].concat());
    let options = offered(&["run", "--no"]);
    assert_eq!(options, ["--no-wait", "--no-extend", "--nodes", "--node-timeout"]);
    assert_eq!(offered(&["d"]), ["doctor"]);
    for option in ["--config", "--cacert", "--cert", "--key"] {
        let mut files = offered(&["run", option, "lo"]);
        files.sort();
        assert_eq!(files, ["locks of jobs.env", "locks.env"], "{option}");
    }
    assert_eq!(offered(&["run", "--restart-policy", ""]), ["observed", "strict", "off"]);
    assert_eq!(offered(&["scan", "--ignore", "f"]), ["foreign", "fence-at-rest"]);
    assert!(offered(&["complete", ""]).ends_with(&["bash", "elvish", "fish", "powershell", "zsh"].map(str::to_owned)));
    assert_eq!(offered(&["help", "com"]), ["complete"]);
    let fish = run(tool(&["complete", "fish"])).out;
    assert!(fish.contains(" -l config ") && fish.contains(" -l restart-policy "), "{fish}");
}

#[test]
fn every_value_that_is_offered_is_one() {
    for policy in offered(Path::new("/"), &["quorumlock", "nodes", "--restart-policy", ""]) {
        let ended = run(tool(&["nodes", "--nodes", "redis://127.0.0.1:1", "--restart-policy", &policy]));
        assert_eq!(ended.code, Some(2), "{policy}: {}", ended.all());
    }
    let help = run(tool(&["scan", "--help"])).out;
    let kinds = offered(Path::new("/"), &["quorumlock", "scan", "--ignore", ""]);
    assert!(kinds.len() == 4 && kinds.iter().all(|kind| help.contains(kind.as_str())), "{kinds:?}");
}
