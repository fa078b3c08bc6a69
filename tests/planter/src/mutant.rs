//! A mutant: one change of a file.

use std::ops::Range;

use proc_macro2::Span;

pub(crate) struct Mutant<'a> {
    pub(crate) number: u32,
    /// Where the text begins that it replaces: line and column, from 1.
    start: (usize, usize),
    /// What it changes, by the name that cargo-mutants has for that.
    genre: &'a str,
    pub(crate) replacement: &'a str,
}

impl<'a> Mutant<'a> {
    /// A line of the list: the file, and the mutant.
    pub(crate) fn parse(line: &'a str) -> (&'a str, Mutant<'a>) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [number, file, line, column, genre, replacement] = fields[..] else {
            panic!("no mutant: {line}");
        };
        let place = |field: &str| field.parse().expect("a place is a number");
        let mutant = Mutant {
            number: number.parse().expect("each mutant has a number"),
            start: (place(line), place(column)),
            genre,
            replacement,
        };
        (file, mutant)
    }

    /// Whether it is what changes this part of the text.
    pub(crate) fn changes(&self, genre: &str, part: Span) -> bool {
        let start = part.start();
        self.genre == genre && self.start == (start.line, start.column + 1)
    }

    /// The whole with this mutant instead of a part.
    pub(crate) fn within(&self, text: &str, whole: &Range<usize>, part: Range<usize>) -> String {
        let before = &text[whole.start..part.start];
        let behind = &text[part.end..whole.end];
        format!("{before}{}{behind}", self.replacement)
    }
}
