//! A strict reader of the Prometheus text format, version 0.0.4: it refuses what `promtool check
//! metrics` refuses or warns about.

use std::collections::{BTreeMap, BTreeSet};

/// One family of series.
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
}

/// One line with a value.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// All samples of a text, which is checked.
pub(crate) struct Exposition {
    pub(crate) families: Vec<Family>,
}

impl Exposition {
    /// Reads a text.
    #[track_caller]
    pub(crate) fn read(text: &str) -> Exposition {
        Exposition::try_read(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// # Errors
    /// What is wrong with it.
    pub(crate) fn try_read(text: &str) -> Result<Exposition, String> {
        let text = text.strip_suffix('\n').ok_or("the last line has no end")?;
        let mut families: Vec<Family> = Vec::new();
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            let (name, help) = comment(line, "HELP ")?;
            let (typed, kind) = comment(lines.next().ok_or("nothing behind HELP")?, "TYPE ")?;
            let is_known = ["counter", "gauge", "histogram"].contains(&kind);
            check(typed == name && is_known && !help.is_empty(), || {
                format!("{name}: HELP and TYPE")
            })?;
            check(families.iter().all(|family| family.name != name), || {
                format!("{name} comes twice")
            })?;
            let mut samples = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                samples.push(sample(line)?);
            }
            let family = Family {
                name: name.to_owned(),
                kind: kind.to_owned(),
                samples,
            };
            family.check()?;
            families.push(family);
        }
        Ok(Exposition { families })
    }

    /// All names of series, with those of the parts of histograms.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let samples = self
            .families
            .iter()
            .flat_map(|family| &family.samples)
            .map(|sample| sample.name.as_str());
        samples
            .chain(self.families.iter().map(|family| family.name.as_str()))
            .collect()
    }

    /// The sum of all samples of a series that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self
            .families
            .iter()
            .flat_map(|family| &family.samples)
            .filter(|sample| sample.name == name);
        let fits = |sample: &&Sample| {
            labels
                .iter()
                .all(|(label, value)| sample.labels.get(*label).is_some_and(|is| is == value))
        };
        samples.filter(fits).map(|sample| sample.value).sum()
    }
}

impl Family {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        check(is_name(name, true), || format!("{name:?} is no name"))?;
        let is_counter = self.kind == "counter";
        check(name.ends_with("_total") == is_counter, || {
            format!("{name}: a counter ends with _total")
        })?;
        let reserved = ["_bucket", "_count", "_sum"];
        check(!reserved.iter().any(|end| name.ends_with(end)), || {
            format!("{name}: an end of histograms")
        })?;
        let abbreviations = ["_ms", "_us", "_secs", "_milliseconds", "_microseconds"];
        check(!abbreviations.iter().any(|end| name.contains(end)), || {
            format!("{name}: not a base unit")
        })?;
        let mut seen = BTreeSet::new();
        for sample in &self.samples {
            check(seen.insert((&sample.name, &sample.labels)), || {
                format!("{sample:?} comes twice")
            })?;
            check(self.kind == "gauge" || sample.value >= 0.0, || {
                format!("{sample:?} is negative")
            })?;
            let own = if self.kind == "histogram" {
                reserved
                    .iter()
                    .any(|end| sample.name.strip_suffix(end) == Some(name))
            } else {
                sample.name == *name && !sample.labels.contains_key("le")
            };
            check(own, || format!("{sample:?} stands below {name}"))?;
        }
        if self.kind == "histogram" {
            self.check_histogram()
        } else {
            Ok(())
        }
    }

    /// Buckets grow, the last is infinite and equal to the count, and there is a sum.
    fn check_histogram(&self) -> Result<(), String> {
        type Parts = (Vec<(f64, f64)>, Vec<f64>, usize);
        let mut series: BTreeMap<BTreeMap<String, String>, Parts> = BTreeMap::new();
        for sample in &self.samples {
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le");
            let (buckets, counts, sums) = series.entry(labels).or_default();
            match sample.name.rsplit('_').next() {
                Some("bucket") => {
                    let bound = bound.ok_or_else(|| format!("{sample:?} has no bound"))?;
                    buckets.push((number(&bound)?, sample.value));
                }
                Some("count") => counts.push(sample.value),
                _ => *sums += 1,
            }
        }
        for (labels, (buckets, counts, sums)) in series {
            let grows = buckets
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            let last = buckets.last().copied();
            let is_whole =
                last == counts.first().map(|&count| (f64::INFINITY, count)) && counts.len() == 1;
            check(grows && is_whole && sums == 1, || {
                format!("{}{labels:?} is no histogram", self.name)
            })?;
        }
        Ok(())
    }
}

fn check(is_right: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(error()) }
}

fn comment<'t>(line: &'t str, kind: &str) -> Result<(&'t str, &'t str), String> {
    let rest = line
        .strip_prefix("# ")
        .and_then(|rest| rest.strip_prefix(kind));
    rest.and_then(|rest| rest.split_once(' '))
        .ok_or_else(|| format!("no {kind}in {line:?}"))
}

fn is_name(name: &str, is_series: bool) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_alphabetic() || letter == '_' || is_series && letter == ':';
    name.starts_with(is_letter)
        && name
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

fn number(text: &str) -> Result<f64, String> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && !text.starts_with('.');
    match text {
        "+Inf" => Ok(f64::INFINITY),
        _ if is_plain => text.parse().map_err(|_| format!("{text:?} is no number")),
        _ => Err(format!("{text:?} is no number that is expected here")),
    }
}

fn sample(line: &str) -> Result<Sample, String> {
    let wrong = || format!("cannot read {line:?}");
    let end = line.find(['{', ' ']).ok_or_else(wrong)?;
    let (name, mut rest) = line.split_at(end);
    check(is_name(name, true), wrong)?;
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, behind) = rest.split_once("=\"").ok_or_else(wrong)?;
            let (value, behind) = value(behind).ok_or_else(wrong)?;
            check(is_name(label, false), wrong)?;
            check(labels.insert(label.to_owned(), value).is_none(), wrong)?;
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = behind.strip_prefix('}').ok_or_else(wrong)?;
                    break;
                }
            }
        }
    }
    let value = number(rest.strip_prefix(' ').ok_or_else(wrong)?)?;
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// The value of a label, and what follows its closing quote.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    loop {
        match letters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(match letters.next()?.1 {
                'n' => '\n',
                letter @ ('\\' | '"') => letter,
                _ => return None,
            }),
            (_, letter) => value.push(letter),
        }
    }
}

#[test]
fn what_is_no_exposition_is_refused() {
    let head = "# HELP a_total A.\n# TYPE a_total counter\n";
    let read = |lines: &str| Exposition::try_read(&format!("{head}{lines}"));
    let good = read("a_total{x=\"\\\"\\\\\\n\",y=\"\"} 1.5\na_total 2\n")
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(good.families[0].samples[0].labels["x"], "\"\\\n");
    assert!((good.sum("a_total", &[]) - 3.5).abs() < 1e-9);
    for wrong in [
        "a_total 1",
        "b_total 1\n",
        "a_total -1\n",
        "a_total 1 \n",
        "a_total  1\n",
        "a_total{} 1\n",
        "a_total{x=\"1\",} 1\n",
        "a_total{x=\"1\",x=\"2\"} 1\n",
        "a_total{x=\"\\t\"} 1\n",
        "a_total{le=\"1\"} 1\n",
        "a_total 1\na_total 2\n",
        "a_total NaN\n",
        "\n",
    ] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
    let histogram = "# HELP h_seconds H.\n# TYPE h_seconds histogram\n";
    let read = |lines: &str| Exposition::try_read(&format!("{histogram}{lines}"));
    let buckets = "h_seconds_bucket{le=\"1\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\n";
    assert!(read(&format!("{buckets}h_seconds_sum 3\nh_seconds_count 2\n")).is_ok());
    for wrong in [
        "h_seconds_count 2\n",
        "h_seconds_sum 3\n",
        "h_seconds_sum 3\nh_seconds_count 1\n",
    ] {
        assert!(read(&format!("{buckets}{wrong}")).is_err(), "{wrong:?}");
    }
    for wrong in [
        "# TYPE a gauge\na 1\n",
        "# HELP a A.\na 1\n",
        "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n",
    ] {
        assert!(Exposition::try_read(wrong).is_err(), "{wrong:?}");
    }
}
