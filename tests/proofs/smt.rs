//! Whether steps are steps of a proof, by its definitions: Z3 decides.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Steps that are to be steps of a proof.
pub(crate) struct Replay {
    proof: &'static str,
    text: String,
    /// What each check is about.
    checks: Vec<String>,
    states: usize,
}

impl Replay {
    /// With all parts of this proof.
    pub(crate) fn of(proof: &'static str) -> Replay {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(proof);
        let text = std::fs::read_to_string(path).unwrap();
        let definitions = forms(&text)
            .into_iter()
            .filter(|form| form.starts_with("(declare-") || form.starts_with("(define-"));
        let mut text: String = definitions.collect::<Vec<_>>().join("\n");
        text.push_str("\n(assert (= without nothing))\n");
        let checks = Vec::new();
        Replay {
            proof,
            text,
            checks,
            states: 0,
        }
    }

    /// Replaces a part of the definitions.
    pub(crate) fn change(&mut self, from: &str, to: &str) {
        assert!(self.text.contains(from), "{}: {from}", self.proof);
        self.text = self.text.replace(from, to);
    }

    /// Adds a command.
    pub(crate) fn add(&mut self, command: &str) {
        self.text.push_str(command);
        self.text.push('\n');
    }

    /// Names a state of this sort.
    pub(crate) fn state(&mut self, sort: &str, state: &str) -> String {
        self.states += 1;
        let name = format!("x{}", self.states);
        let _ = writeln!(self.text, "(define-fun {name} () {sort} {state})");
        name
    }

    /// This is to be so.
    pub(crate) fn check(&mut self, formula: &str, about: &str) {
        let _ = writeln!(
            self.text,
            "(push) (assert (not {formula})) (check-sat) (pop)"
        );
        self.checks.push(format!("{about}: {formula}"));
    }

    /// How many checks there are.
    pub(crate) fn len(&self) -> usize {
        self.checks.len()
    }

    /// The first check that fails, if there is one.
    pub(crate) fn failure(&self) -> Option<String> {
        let mut z3 = Command::new("z3")
            .arg("-in")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("install z3, or leave this out");
        let mut input = z3.stdin.take().unwrap();
        let text = self.text.clone();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = z3.wait_with_output().unwrap();
        // Where Z3 has ended before, answers are missing.
        let _ = writer.join();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let answers: Vec<&str> = output.lines().collect();
        let wrong = (0..self.checks.len()).find(|&check| answers.get(check) != Some(&"unsat"))?;
        let answer = answers.get(wrong).copied().unwrap_or("nothing");
        let named: Vec<&str> = self.checks[wrong]
            .split([' ', '(', ')'])
            .filter(|word| word.starts_with('x') && word[1..].parse::<usize>().is_ok())
            .collect();
        let states = self.text.lines().filter(|line| {
            named
                .iter()
                .any(|name| line.starts_with(&format!("(define-fun {name} ()")))
        });
        let states: Vec<&str> = states.collect();
        Some(format!(
            "{}: {answer} for {}\n{}",
            self.proof,
            self.checks[wrong],
            states.join("\n")
        ))
    }
}

/// The forms of a file, without comments.
fn forms(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let mut form = String::new();
    let mut depth = 0;
    let mut is_text = false;
    for line in text.lines() {
        for letter in line.chars() {
            match letter {
                ';' if !is_text => break,
                '"' => is_text = !is_text,
                '(' if !is_text => depth += 1,
                ')' if !is_text => depth -= 1,
                _ => {}
            }
            if depth > 0 || letter == ')' {
                form.push(letter);
            }
            if depth == 0 && letter == ')' {
                forms.push(std::mem::take(&mut form));
            }
        }
        if depth > 0 {
            form.push(' ');
        }
    }
    forms
}

/// A time as a real number.
pub(crate) fn time(time: u64) -> String {
    real(time as i64)
}

/// A number as a real one.
pub(crate) fn real(number: i64) -> String {
    match number {
        0.. => format!("{number}.0"),
        _ => format!("(- {}.0)", -number),
    }
}
