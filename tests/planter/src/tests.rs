//! A program with mutants of each genre: planted, compiled, and run with one after the other.

use std::path::Path;
use std::process::Command;
use std::{env, fs, process};

use crate::mutant::Mutant;
use crate::sites;

const PROGRAM: &str = r#"
struct Pair { left: u32, right: u32 }

const fn one() -> u32 { 3 - 2 }

fn sum(pair: &Pair) -> u32 {
    pair.left + pair.right * one()
}

fn grown(mut number: u32) -> u32 {
    number += 1;
    number
}

fn all(a: bool, b: bool, c: bool) -> u8 {
    if a && b && c { 1 } else { 0 }
}

fn small(number: Option<u32>) -> u8 {
    if let Some(number) = number && number < 5 { 1 } else { 0 }
}

fn word(number: u32, is_known: bool) -> &'static str {
    match number {
        0 if !is_known => "n",
        1 => "o",
        _ => "m",
    }
}

fn main() {
    let pair = Pair { left: 7, right: 3 };
    let sum = sum(&pair);
    let other = Pair { left: 9, ..pair }.left;
    let words = [word(0, false), word(0, true), word(1, true)].concat();
    let all = all(true, false, false) + 2 * all(false, false, true);
    print!("{sum} {} {other} {all} {} {words}", grown(1), small(Some(4)));
}
"#;

/// Each mutant: its genre, how what it replaces begins, behind which text, with what, and what the
/// program prints then.
const MUTANTS: [[&str; 5]; 13] = [
    ["MatchArm", "1 => \"o\",", "", "", "10 2 9 0 1 nmm"],
    ["BinaryOperator", "+", "pair.left ", "-", "4 2 9 0 1 nmo"],
    ["BinaryOperator", "*", "pair.right ", "+", "11 2 9 0 1 nmo"],
    ["BinaryOperator", "+=", "number ", "*=", "10 1 9 0 1 nmo"],
    // Of `&&` and `||` the former binds more tightly.
    ["BinaryOperator", "&&", "a ", "||", "10 2 9 1 1 nmo"],
    ["BinaryOperator", "&&", "b ", "||", "10 2 9 2 1 nmo"],
    ["BinaryOperator", "<", "&& number ", ">", "10 2 9 0 0 nmo"],
    ["FnValue", "pair.left +", "", "6", "6 2 9 0 1 nmo"],
    ["StructField", "left: 9,", "", "", "10 2 7 0 1 nmo"],
    ["MatchArmGuard", "!is_known", "", "true", "10 2 9 0 1 nno"],
    ["MatchArmGuard", "!is_known", "", "false", "10 2 9 0 1 mmo"],
    ["UnaryOperator", "!", "0 if ", "", "10 2 9 0 1 mno"],
    // In a constant: not planted.
    ["BinaryOperator", "-", "3 ", "+", "10 2 9 0 1 nmo"],
];

#[test]
fn each_mutant_does_what_it_is_to_do() {
    let lines: Vec<String> = (1..).zip(MUTANTS).map(line).collect();
    let mutants: Vec<Mutant<'_>> = lines.iter().map(|line| Mutant::parse(line).1).collect();
    let (text, mut planted) = sites::plant(PROGRAM, &mutants);
    planted.sort_unstable();
    assert_eq!(planted, (1..13).collect::<Vec<_>>());

    let folder = env::temp_dir().join(format!("planter-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("program.rs"), text).unwrap();
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/planted.rs");
    compile(&folder, &["--crate-type=rlib", runtime.to_str().unwrap()]);
    compile(&folder, &["--extern=planted", "-L.", "program.rs"]);
    let log = folder.join("log");
    assert_eq!(printed(&folder, "0", &log), "10 2 9 0 1 nmo");
    for (number, [.., expected]) in (1..).zip(MUTANTS) {
        let printed = printed(&folder, &number.to_string(), &log);
        assert_eq!(printed, expected, "mutant {number}");
    }
    let reached = fs::read_to_string(&log).unwrap();
    let mut reached: Vec<u32> = reached.lines().map(|line| line.parse().unwrap()).collect();
    reached.sort_unstable();
    reached.dedup();
    assert_eq!(reached, planted);
    fs::remove_dir_all(folder).unwrap();
}

fn line((number, [genre, replaced, behind, replacement, _]): (u32, [&str; 5])) -> String {
    let at = PROGRAM.find(&format!("{behind}{replaced}")).unwrap() + behind.len();
    let lines: Vec<&str> = PROGRAM[..at].split('\n').collect();
    let (line, column) = (lines.len(), lines[lines.len() - 1].len() + 1);
    format!("{number}\tprogram.rs\t{line}\t{column}\t{genre}\t{replacement}")
}

fn compile(folder: &Path, arguments: &[&str]) {
    let mut rustc = Command::new("rustc");
    rustc
        .current_dir(folder)
        .args(["--edition=2024", "--cap-lints=allow"]);
    assert!(rustc.args(arguments).status().unwrap().success());
}

fn printed(folder: &Path, number: &str, log: &Path) -> String {
    let mut program = Command::new(folder.join("program"));
    let program = program.env("PLANTED", number).env("PLANTED_LOG", log);
    String::from_utf8(program.output().unwrap().stdout).unwrap()
}
