//! Plants each fault of [`mutants`] in a copy of the library, to see the simulator find it.
//!
//! `cargo test --release -p sim planted -- --ignored --nocapture` prints the table. The tree itself
//! is not touched. `QUORUMLOCK_SIM_MUTANT` picks those whose names contain it, and
//! `QUORUMLOCK_SIM_SEEDS` is how many seeds to try.

use crate::mutants::{self, Mutant};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the library is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
#[ignore = "builds the library once for each planted fault: many minutes"]
fn planted_faults_are_caught() {
    let root = Path::new(ROOT);
    let copy = root.join("target").join("planted");
    for part in [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "src",
        "tests",
        "benches",
        "examples",
        "fuzz/Cargo.toml",
    ] {
        copy_all(&root.join(part), &copy.join(part));
    }
    let wanted = std::env::var("QUORUMLOCK_SIM_MUTANT").unwrap_or_default();
    let mut missed = Vec::new();
    println!("| planted fault | seeds | caught by |\n|---|---|---|");
    for mutant in mutants::all().filter(|mutant| mutant.name.contains(&wanted)) {
        let file = PathBuf::from("src").join(mutant.file);
        let sound = fs::read_to_string(root.join(&file)).unwrap();
        fs::write(copy.join(&file), mutant.plant(&sound)).unwrap();
        let (seeds, rule) = hunt(&copy);
        fs::write(copy.join(&file), sound).unwrap();
        println!("| {} | {seeds} | {rule} |", mutant.name);
        if rule.starts_with("no rule") {
            missed.push(mutant.name);
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// The places are still there: when the library changes, so must the table.
#[test]
fn every_fault_can_be_planted() {
    for mutant in mutants::all() {
        let file = Path::new(ROOT).join("src").join(mutant.file);
        mutant.plant(&fs::read_to_string(file).unwrap());
    }
}

impl Mutant {
    /// The text of the file with the fault.
    fn plant(&self, sound: &str) -> String {
        let mut text = sound.to_owned();
        for (old, new) in self.edits {
            let places = text.matches(old).count();
            assert_eq!(
                places, 1,
                "{}: where it is planted there are {places} places like: {old}",
                self.name
            );
            text = text.replace(old, new);
        }
        text
    }
}

/// Runs seeds against the copy. Returns how many it took, and the rule that was broken.
fn hunt(copy: &Path) -> (String, String) {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "test",
            "--release",
            "-p",
            "sim",
            "--",
            "--ignored",
            "--exact",
            "hunt",
            "--nocapture",
        ])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        // Each fault is a small change.
        .env("CARGO_INCREMENTAL", "1")
        .env("RUSTFLAGS", "-Awarnings")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = text
        .lines()
        .find_map(|line| line.split_once("CAUGHT after ").map(|(_, rest)| rest));
    match line.and_then(|rest| rest.split_once(" seeds by ")) {
        Some((seeds, rule)) => (seeds.to_owned(), rule.to_owned()),
        None => match text
            .lines()
            .find_map(|line| line.split_once("MISSED by ").map(|(_, rest)| rest))
        {
            Some(seeds) => (seeds.to_owned(), "no rule".to_owned()),
            None => {
                println!("{text}\n{errors}");
                (
                    "-".to_owned(),
                    "no rule: it does not compile, or the run crashed".to_owned(),
                )
            }
        },
    }
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy_all(&from.join(&name), &to.join(&name));
        }
    } else if fs::read(from).ok() != fs::read(to).ok() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}
