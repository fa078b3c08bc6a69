//! The proofs in `tests/proofs` name the code: above each step of a proof is `; code: FILE NAME`,
//! once for each function that does it, or `; environment: ` and a cause, if no code of the library
//! does it.
//!
//! A step is what a proof checks by its name, as in `(echo "takes:")`. The name is that of a
//! function of Rust or Lua, or of a command that a script calls. Whether the function does what
//! the step is, `tests/proofs/main.rs` finds out.

use super::{files, none, root};
use std::fs;

#[test]
fn each_step_of_a_proof_names_the_code_that_does_it() {
    let proofs = files("tests/proofs", "smt2");
    assert!(
        proofs.iter().flat_map(|(_, text)| steps(text)).count() > 50,
        "steps are no longer recognised"
    );
    let read = |file: &str| fs::read_to_string(root().join(file)).ok();
    none(
        proofs
            .iter()
            .flat_map(|(file, text)| findings(file, text, read)),
    );
}

/// The definitions that a proof checks by their names.
fn steps(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.lines().filter_map(move |line| {
        let name = line.strip_prefix("(echo \"")?.strip_suffix(":\")")?;
        Some((name, text.find(&format!("\n(define-fun {name} ("))?))
    })
}

fn findings(file: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let unnamed = steps(text).filter(|&(_, at)| {
        let mut above = text[..=at]
            .lines()
            .rev()
            .take_while(|line| line.starts_with(';'));
        !above.any(|line| line.starts_with("; code: ") || line.starts_with("; environment: "))
    });
    let unnamed = unnamed.map(|(name, _)| format!("{file}: {name} names no code"));
    let named = text
        .lines()
        .filter_map(|line| line.strip_prefix("; code: "));
    let absent = named.filter(|named| {
        named
            .split_once(' ')
            .is_none_or(|(code, name)| read(code).is_none_or(|code| !has_function(&code, name)))
    });
    let absent = absent.map(|named| format!("{file}: names {named}, which does not exist"));
    unnamed.chain(absent).collect()
}

fn has_function(code: &str, name: &str) -> bool {
    let forms = [
        format!("fn {name}("),
        format!("fn {name}<"),
        format!("local function {name}("),
        format!("redis.pcall('{name}'"),
    ];
    forms.iter().any(|form| code.contains(form))
}
