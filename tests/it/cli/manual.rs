//! The manual page and the help say the same, and completion scripts are scripts.

use super::deployment::{run, tool};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const COMMANDS: [&str; 9] = ["run", "nodes", "show", "ls", "scan", "break", "doctor", "bench", "complete"];

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
    let words = "COMP_WORDS=(quorumlock run --no); COMP_CWORD=2; _quorumlock; echo \"${COMPREPLY[@]}\"";
    let script = format!("{}\n{words}", run(tool(&["complete", "bash"])).out);
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let offered = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(offered.contains("--no-wait") && offered.contains("--nodes") && !offered.contains("--ttl"), "{offered}");
}
