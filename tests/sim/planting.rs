//! Plants each fault of [`mutants`] in a copy of the library, to see the simulator find it.
//!
//! `cargo test --release -p sim planted -- --ignored --nocapture` prints the table. The tree itself
//! is not touched. `QUORUMLOCK_SIM_MUTANT` picks those whose names contain it, and
//! `QUORUMLOCK_SIM_SEEDS` is how many seeds to try.

use crate::mutants::{self, Mutant};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the library is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
#[ignore = "builds the library once for each planted fault: many minutes"]
fn planted_faults_are_caught() {
    let copy = copy_tree();
    let wanted = std::env::var("QUORUMLOCK_SIM_MUTANT").unwrap_or_default();
    let mut missed = Vec::new();
    println!("| planted fault | seeds | caught by |\n|---|---|---|");
    for mutant in mutants::all().filter(|mutant| mutant.name.contains(&wanted)) {
        let file = copy.join("src").join(mutant.file);
        let sound = sound(mutant.file);
        fs::write(&file, mutant.plant(&sound)).unwrap();
        let (seeds, rule) = hunt(&copy);
        fs::write(&file, sound).unwrap();
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
        mutant.plant(&sound(mutant.file));
    }
}

/// What the library has renamed, a fault may still name. As many are compiled at once as do not
/// change the same place.
#[test]
#[ignore = "checks the whole library twice"]
fn every_fault_compiles() {
    let copy = copy_tree();
    let mut left: Vec<&Mutant> = mutants::all().collect();
    let mut broken: Vec<&Mutant> = Vec::new();
    while !left.is_empty() {
        let (together, others) = plantable(&left);
        if !compiles(&copy, &together) {
            // Two that do not go together may each compile.
            broken.extend(together.iter().filter(|mutant| !compiles(&copy, &[mutant])));
        }
        left = others;
    }
    let broken: Vec<_> = broken.iter().map(|mutant| mutant.name).collect();
    assert!(broken.is_empty(), "do not compile: {broken:?}");
}

/// Those that can be planted in one copy, and the others.
fn plantable<'a>(faults: &[&'a Mutant]) -> (Vec<&'a Mutant>, Vec<&'a Mutant>) {
    let mut texts = BTreeMap::new();
    faults.iter().partition(|mutant| {
        let text = texts
            .entry(mutant.file)
            .or_insert_with(|| sound(mutant.file));
        mutant
            .try_plant(text)
            .map(|planted| *text = planted)
            .is_ok()
    })
}

/// Whether the library compiles with all these.
fn compiles(copy: &Path, faults: &[&Mutant]) -> bool {
    let files: BTreeSet<_> = faults.iter().map(|mutant| mutant.file).collect();
    for file in &files {
        let planted = faults
            .iter()
            .filter(|mutant| mutant.file == *file)
            .fold(sound(file), |text, mutant| mutant.plant(&text));
        fs::write(copy.join("src").join(file), planted).unwrap();
    }
    let ended = cargo(copy).args(["check", "--lib"]).status().unwrap();
    for file in files {
        fs::write(copy.join("src").join(file), sound(file)).unwrap();
    }
    ended.success()
}

impl Mutant {
    /// The text of the file with the fault.
    fn plant(&self, text: &str) -> String {
        self.try_plant(text)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// As [`plant`](Mutant::plant), unless the place is not the only one of its kind.
    fn try_plant(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for (old, new) in self.edits {
            let places = text.matches(old).count();
            if places != 1 {
                return Err(format!(
                    "where it is planted there are {places} places like: {old}"
                ));
            }
            text = text.replace(old, new);
        }
        Ok(text)
    }
}

/// A file of the library without a fault.
fn sound(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("src").join(file)).unwrap()
}

/// Runs seeds against the copy, and its scenes if no seed finds anything. Returns how many seeds it
/// took, and the rule that was broken, or the scene.
fn hunt(copy: &Path) -> (String, String) {
    let printed = run(copy, &["--ignored", "--exact", "hunt", "--nocapture"]);
    let rest_behind = |words| {
        printed
            .lines()
            .find_map(|line| Some(line.split_once(words)?.1))
    };
    if let Some((seeds, rule)) =
        rest_behind("CAUGHT after ").and_then(|rest| rest.split_once(" seeds by "))
    {
        return (seeds.to_owned(), rule.to_owned());
    }
    let Some(seeds) = rest_behind("MISSED by ") else {
        println!("{printed}");
        let reason = "no rule: it does not compile, or the run crashed";
        return ("-".to_owned(), reason.to_owned());
    };
    let scenes = run(copy, &["scenes", "recovery", "losses"]);
    let scene = scenes
        .lines()
        .find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    (seeds.to_owned(), scene.unwrap_or("no rule").to_owned())
}

/// What the simulator of the copy prints with these arguments.
fn run(copy: &Path, arguments: &[&str]) -> String {
    let output = cargo(copy)
        .args(["test", "--release", "-p", "sim", "--"])
        .args(arguments)
        .output()
        .unwrap();
    [output.stdout, output.stderr]
        .map(|printed| String::from_utf8_lossy(&printed).into_owned())
        .join("\n")
}

/// Cargo in the copy. Each fault is a small change, and may leave something unused.
fn cargo(copy: &Path) -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or("cargo".to_owned()));
    cargo
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .env("CARGO_INCREMENTAL", "1")
        .env("RUSTFLAGS", "-Awarnings");
    cargo
}

/// Copies what the library and the simulator are compiled from. Returns where to.
fn copy_tree() -> PathBuf {
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
    copy
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
