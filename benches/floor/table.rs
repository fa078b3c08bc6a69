//! The table: one row per figure, with what it is measured against, the ratio and the goal.

use crate::comparison::Spread;
use std::fmt::Write;

/// One figure.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    value: Option<f64>,
    against: Option<(&'static str, f64)>,
    ratio: Option<Spread>,
    goal: Option<Goal>,
    note: Option<String>,
}

/// What a figure should be.
#[derive(Clone, Copy)]
enum Goal {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    ValueAtLeast(f64),
    ValueAtMost(f64),
}

/// Makes the rows that compare one contender with another one.
pub(crate) struct Rows<'a, T> {
    title: String,
    contender: &'a [T],
    against: (&'static str, &'a [T]),
}

impl<'a, T> Rows<'a, T> {
    pub(crate) fn new(
        title: impl Into<String>,
        contender: &'a [T],
        against: (&'static str, &'a [T]),
    ) -> Rows<'a, T> {
        Rows {
            title: title.into(),
            contender,
            against,
        }
    }

    /// A figure as a ratio, round by round. Its name follows the title.
    pub(crate) fn row(&self, figure: &str, unit: &'static str, get: impl Fn(&T) -> f64) -> Row {
        let what = format!("{}{figure}", self.title);
        Row::ratio(what, unit, self.contender, self.against, get)
    }

    /// Rows with the same title, about another contender.
    pub(crate) fn about(&self, contender: &'a [T]) -> Rows<'a, T> {
        Rows::new(&self.title, contender, self.against)
    }

    /// Rows with the same title, against another contender.
    pub(crate) fn against(&self, name: &'static str, other: &'a [T]) -> Rows<'a, T> {
        Rows::new(&self.title, self.contender, (name, other))
    }
}

impl Row {
    /// A figure of its own.
    pub(crate) fn value(what: impl Into<String>, unit: &'static str, value: f64) -> Row {
        Row {
            what: what.into(),
            unit,
            value: Some(value),
            against: None,
            ratio: None,
            goal: None,
            note: None,
        }
    }

    /// A figure as a ratio, round by round, to the figure of another contender.
    pub(crate) fn ratio<T>(
        what: impl Into<String>,
        unit: &'static str,
        contender: &[T],
        (name, other): (&'static str, &[T]),
        figure: impl Fn(&T) -> f64,
    ) -> Row {
        let value = Spread::over(contender, &figure).median;
        let against = Spread::over(other, &figure).median;
        let ratio = Some(Spread::ratio(contender, other, figure));
        Row {
            against: Some((name, against)),
            ratio,
            ..Row::value(what, unit, value)
        }
    }

    /// A figure that cannot be had here, and why.
    pub(crate) fn missing(what: impl Into<String>, why: impl Into<String>) -> Row {
        Row {
            value: None,
            note: Some(why.into()),
            ..Row::value(what, "", 0.0)
        }
    }

    /// Sets the figure beside another one that was had in the same way.
    pub(crate) fn against(self, name: &'static str, other: f64) -> Row {
        let ratio = self.value.map(|value| Spread::of([value / other]));
        Row {
            against: Some((name, other)),
            ratio,
            ..self
        }
    }

    pub(crate) fn ratio_at_least(self, bound: f64) -> Row {
        self.goal(Goal::RatioAtLeast(bound))
    }

    pub(crate) fn ratio_at_most(self, bound: f64) -> Row {
        self.goal(Goal::RatioAtMost(bound))
    }

    pub(crate) fn value_at_least(self, bound: f64) -> Row {
        self.goal(Goal::ValueAtLeast(bound))
    }

    pub(crate) fn value_at_most(self, bound: f64) -> Row {
        self.goal(Goal::ValueAtMost(bound))
    }

    fn goal(mut self, goal: Goal) -> Row {
        self.goal = Some(goal);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Row {
        self.note = Some(note.into());
        self
    }

    fn cells(&self) -> [String; 6] {
        let quantity = |value: f64| {
            format!("{} {}", number(value), self.unit)
                .trim_end()
                .to_owned()
        };
        let mut range = String::new();
        let mut ratio = String::new();
        if let Some(spread) = &self.ratio {
            ratio = number(spread.median);
            if spread.least < spread.most {
                range = format!("{} … {}", number(spread.least), number(spread.most));
            }
        }
        let what = match &self.note {
            Some(note) => format!("{} ({note})", self.what),
            None => self.what.clone(),
        };
        let against = self
            .against
            .map(|(name, value)| format!("{name} {}", quantity(value)));
        let value = self.value.map_or("–".to_owned(), quantity);
        [
            what,
            value,
            against.unwrap_or_default(),
            ratio,
            range,
            self.verdict(),
        ]
    }

    fn verdict(&self) -> String {
        let Some(goal) = self.goal else {
            return String::new();
        };
        let ratio = self.ratio.map(|spread| spread.median);
        let (sign, bound, figure) = match goal {
            Goal::RatioAtLeast(bound) => ("≥", bound, ratio),
            Goal::RatioAtMost(bound) => ("≤", bound, ratio),
            Goal::ValueAtLeast(bound) => ("≥", bound, self.value),
            Goal::ValueAtMost(bound) => ("≤", bound, self.value),
        };
        // As exact as it is shown: what reads as the goal has reached it.
        let reached = figure.map(rounded).is_some_and(|figure| match goal {
            Goal::RatioAtLeast(_) | Goal::ValueAtLeast(_) => figure >= bound,
            Goal::RatioAtMost(_) | Goal::ValueAtMost(_) => figure <= bound,
        });
        format!(
            "{sign} {} {}",
            number(bound),
            if reached { "✓" } else { "✗" }
        )
    }
}

/// All rows as a Markdown table whose columns are aligned in the source as well.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let heading = ["", "quorumlock", "against", "ratio", "range", "goal"].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(heading)
        .chain(rows.iter().map(Row::cells))
        .collect();
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if index == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

fn number(value: f64) -> String {
    let decimals = decimals(value);
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        "–".to_owned()
    }
}

fn rounded(value: f64) -> f64 {
    let scale = 10_f64.powi(decimals(value) as i32);
    (value * scale).round() / scale
}

/// Three digits are more than these figures can bear.
fn decimals(value: f64) -> usize {
    match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    }
}
