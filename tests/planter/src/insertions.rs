//! What is put into a text, around parts of it.

use std::collections::BTreeMap;
use std::ops::Range;

/// Insertions by their places. Of parts within parts, the outer one is added first.
#[derive(Default)]
pub(crate) struct Insertions {
    places: BTreeMap<usize, Place>,
}

#[derive(Default)]
struct Place {
    /// Ends parts before this place: the inner ones first.
    closing: String,
    /// Begins parts behind it: the outer ones first.
    opening: String,
}

impl Insertions {
    pub(crate) fn before(&mut self, at: usize, opening: &str) {
        self.places.entry(at).or_default().opening += opening;
    }

    pub(crate) fn around(&mut self, part: Range<usize>, opening: &str, closing: &str) {
        self.before(part.start, opening);
        self.places
            .entry(part.end)
            .or_default()
            .closing
            .insert_str(0, closing);
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let mut out = String::new();
        let mut from = 0;
        for (&at, place) in &self.places {
            out.extend([&text[from..at], &place.closing, &place.opening]);
            from = at;
        }
        out + &text[from..]
    }
}
