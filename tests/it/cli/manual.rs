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
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in ended.out.lines() {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            options.insert("usage".to_owned(), usage.to_owned());
        }
        let Some(line) = line.strip_prefix("  ") else { continue };
        let (name, text) = if line.starts_with('-') { line.split_once("  ").unwrap_or((line, "")) } else { ("", line) };
        if !name.is_empty() {
            last = name.trim().to_owned();
        }
        let words = options.entry(last.clone()).or_default();
        *words = format!("{words} {}", text.trim()).trim().to_owned();
    }
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
    let named: Vec<&str> = overview.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
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
    let (last, words) = (words.len() - 1, quoted.join(" "));
    let show = "printf '%s\\n' \"${COMPREPLY[@]}\"";
    let script = run(tool(&["complete", "bash"])).out;
    let script = format!("{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}; _quorumlock 2>/dev/null; {show}");
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
    // Bash cuts words at the sign.
    assert_eq!(offered(&["ls", "--config", "=", "ot"]), ["other"]);
    assert_eq!(offered(&["ls", "--config", "="]).len(), 3);
    assert_eq!(offered(&["run", "--restart-policy", ""]), ["observed", "strict", "off"]);
    assert_eq!(offered(&["scan", "--ignore", "f"]), ["foreign", "fence-at-rest"]);
    assert_eq!(offered(&["complete", ""]), ["bash", "zsh", "fish"]);
    assert_eq!(offered(&["help", "com"]), ["complete"]);
    // A value that only the user knows is none of the options.
    for option in ["--ttl", "-E", "--nodes", "--names"] {
        assert!(offered(&["run", option, "-"]).is_empty(), "{option}");
    }
    assert!(offered(&["run", "name", "--", "slee"]).contains(&"sleep".to_owned()));
    let fish = run(tool(&["complete", "fish"])).out;
    assert!(fish.contains(" -l config -r -F -d ") && fish.contains(" -l ttl -x -d "), "{fish}");
    assert!(fish.contains(" -l restart-policy -x -a 'observed strict off' -d "), "{fish}");
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
