//! The log of a run, in readable lines; or nothing, when it is not needed.

use crate::plan::SECOND;

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    is_kept: bool,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    at: u64,
    /// The attempt that it is about, if it is about one.
    attempt: Option<usize>,
    text: String,
}

impl Trace {
    /// Keeps nothing.
    pub(crate) fn silent() -> Trace {
        Trace::default()
    }

    pub(crate) fn kept() -> Trace {
        Trace {
            is_kept: true,
            ..Trace::default()
        }
    }

    pub(crate) fn record(
        &mut self,
        at: u64,
        attempt: Option<usize>,
        text: impl FnOnce() -> String,
    ) {
        if self.is_kept {
            let text = text();
            self.lines.push(Line { at, attempt, text });
        }
    }

    /// The last lines, as a page of text.
    pub(crate) fn page(&self, most: usize) -> String {
        page(&self.lines.iter().collect::<Vec<_>>(), most)
    }

    /// The last lines, without those of attempts that the finding, which is the last line but for
    /// what ends the run, does not name.
    pub(crate) fn story(&self, most: usize) -> String {
        page(&self.story_lines(), most)
    }

    pub(crate) fn story_length(&self) -> usize {
        self.story_lines().len()
    }

    fn story_lines(&self) -> Vec<&Line> {
        let end = self
            .lines
            .iter()
            .position(|line| line.text.starts_with("VIOLATION"))
            .map_or(0, |place| place + 1);
        let finding = end
            .checked_sub(1)
            .map_or("", |last| self.lines[last].text.as_str());
        let named: Vec<usize> = finding
            .split("attempt ")
            .skip(1)
            .filter_map(|rest| {
                rest.split(|letter: char| !letter.is_ascii_digit())
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        let matters = |line: &&Line| {
            line.attempt
                .is_none_or(|attempt| named.is_empty() || named.contains(&attempt))
        };
        self.lines[..end].iter().filter(matters).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }
}

fn page(lines: &[&Line], most: usize) -> String {
    let first = lines.len().saturating_sub(most);
    let mut page = String::new();
    if first > 0 {
        page.push_str(&format!("  ... {first} lines before\n"));
    }
    for Line { at, text, .. } in &lines[first..] {
        page.push_str(&format!(
            "  {:>3}.{:06} s  {text}\n",
            at / SECOND,
            at % SECOND / 1_000
        ));
    }
    page
}
