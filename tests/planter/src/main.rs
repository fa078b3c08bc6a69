//! Plants mutants in a copy of the tree, so that one build has all of them.
//!
//! ```text
//!   planter TREE < LIST     changes the files of TREE, and prints the numbers of what is planted
//! ```
//! A line of LIST is a mutant of cargo-mutants, by fields that a tab separates: its number, the
//! file, line and column of what it replaces, its genre and the replacement. The text of the file
//! stays, and conditions are added: `a < b` becomes
//! ```text
//!   (if ::planted::is(7) { a <= b } else if ::planted::is(8) { a > b } else { a < b })
//! ```
//! Alternatives have the text as cargo-mutants writes it, so that precedence is the same. They come
//! first: an error of the compiler is then about the last number before it. `planted.rs` is the
//! crate that the conditions call: a process has the number of its mutant from its environment.
//!
//! Not planted is what the compiler evaluates (constants and functions that are `const`), what
//! macros contain, and the value of a function that returns `impl Trait`, which has one type only.

mod insertions;
mod mutant;
mod sites;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io};

use mutant::Mutant;

fn main() {
    let tree = env::args().nth(1).expect("the tree is the argument");
    let list = io::read_to_string(io::stdin()).expect("the list is text");
    let mut files: BTreeMap<&str, Vec<Mutant<'_>>> = BTreeMap::new();
    for (file, mutant) in list.lines().map(Mutant::parse) {
        files.entry(file).or_default().push(mutant);
    }
    for (file, mutants) in files {
        let path = Path::new(&tree).join(file);
        let text = fs::read_to_string(&path).expect("the file is in the tree");
        let (text, planted) = sites::plant(&text, &mutants);
        fs::write(path, text).expect("the tree is a copy to write to");
        for number in planted {
            println!("{number}");
        }
    }
}
