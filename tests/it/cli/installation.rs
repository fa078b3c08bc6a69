//! What the manual describes: where the program is installed, and how cron finds it.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// Where the manual installs it.
const INSTALLED: &str = "/usr/local/bin/quorumlock";

/// A path as a word of the shell.
fn quoted(path: impl AsRef<Path>) -> String {
    format!("'{}'", path.as_ref().display())
}

/// A command of the shell, with no more in its environment than cron sets.
fn by_cron(line: &str) -> Command {
    let mut shell = program("sh");
    shell
        .args(["-c", line])
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    shell
}

#[test]
fn the_line_for_crontab_runs_with_the_path_of_cron() {
    let deployment = Deployment::of(3);
    let folder = folder();
    let config = folder.join("quorumlock.env");
    let job = folder.join("report");
    let log = folder.join("log");
    fs::write(&config, format!("QUORUMLOCK_NODES={}\n", deployment.urls())).unwrap();
    fs::write(
        &job,
        format!(
            "#!/bin/sh\necho \"$QUORUMLOCK_NAME\" > '{}'\n",
            log.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&job, Permissions::from_mode(0o755)).unwrap();
    let page = text_of("src/docs/command_line.md");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("0 3 * * *"))
        .expect("a line for crontab")
        .trim();
    let line = line
        .replace("/etc/quorumlock.env", &quoted(&config))
        .replace("/usr/local/bin/report", &quoted(&job))
        .replace(INSTALLED, &quoted(PRESENT));
    run(by_cron(&line)).exits(0).writes_nothing();
    assert_eq!(fs::read_to_string(&log).unwrap(), "nightly-report\n");
}

#[test]
fn what_the_manual_installs_goes_where_it_is_looked_for() {
    let page = text_of("src/docs/command_line.md");
    let root = folder();
    let install = page
        .lines()
        .find(|line| line.starts_with("cargo install ") && line.contains("--root"));
    assert!(
        install.is_some_and(|line| line.ends_with(&format!("--root {}", "/usr/local"))),
        "{install:?}"
    );
    let lines: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("quorumlock ") && line.contains(" > "))
        .collect();
    assert_eq!(lines.len(), 4, "a manual page and three shells: {lines:?}");
    for line in lines {
        let (command, path) = line.split_once(" > ").unwrap();
        let file = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let line = format!(
            "{} > {}",
            command.replacen("quorumlock", &quoted(PRESENT), 1),
            quoted(&file)
        );
        let ended = run(by_cron(&line));
        let written = fs::read_to_string(&file).unwrap();
        assert!(
            ended.code == Some(0) && written.contains("quorumlock"),
            "{line}: {}",
            ended.all()
        );
    }
    if Command::new("man").arg("--version").output().is_err() {
        return;
    }
    let manual = root.join("usr/local/share/man");
    let shown = Command::new("man")
        .args(["-M", manual.to_str().unwrap(), "quorumlock"])
        .env("MANPAGER", "cat")
        .output();
    let words = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let shown = shown.map(|shown| words(&shown.stdout));
    assert!(
        shown
            .as_ref()
            .is_ok_and(|text| text.contains("run programs under a distributed lock")),
        "{shown:?}"
    );
}
