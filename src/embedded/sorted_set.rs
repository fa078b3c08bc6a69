//! A sorted set, the second kind of value that a key can have: members in the order of their
//! scores, and of their bytes where the scores are the same. Queues are such sets.
//!
//! All is linear: a queue has as many members as there are calls that wait.

/// A sorted set. One without members is not stored: its key does not exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SortedSet {
    /// In order.
    pub(super) members: Vec<Member>,
}

/// A member and its score, which is a number or infinite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) name: Box<[u8]>,
    pub(super) score: f64,
}

impl SortedSet {
    /// Stores a member, or its new score; false if the member was there.
    pub(super) fn add(&mut self, name: &[u8], score: f64) -> bool {
        // A server keeps no sign of zero, as long as the set is small.
        let score = score + 0.0;
        let is_new = !self.remove(name);
        let is_before =
            |member: &Member| member.score < score || member.score == score && *member.name < *name;
        let rank = self.members.partition_point(is_before);
        self.members.insert(
            rank,
            Member {
                name: name.into(),
                score,
            },
        );
        is_new
    }

    /// Removes a member; false if there was none.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let rank = self.members.iter().position(|member| *member.name == *name);
        rank.map(|rank| self.members.remove(rank)).is_some()
    }

    /// Removes all members with a greater score.
    pub(super) fn remove_above(&mut self, score: f64) {
        self.members.retain(|member| member.score <= score);
    }
}

/// The number that a server reads from the text of a score. Left out: hexadecimal ones.
pub(super) fn score(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_named = text.iter().any(|letter| matches!(letter, b'i' | b'I'));
    (score.is_finite() || score.is_infinite() && is_named).then_some(score)
}

/// A score as Redis 7.0 replies it: 17 digits at most, with an exponent if the number has more
/// before the point. Newer servers leave out digits that are not needed.
pub(super) fn score_text(score: f64) -> String {
    const DIGITS: usize = 17;
    if score.is_infinite() {
        return if score > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{score:.*e}", DIGITS - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(DIGITS as i32 - 1 - exponent) {
        Ok(decimals) if exponent >= -4 => trimmed(&format!("{score:.decimals$}")).to_owned(),
        _ => format!(
            "{}e{}{:02}",
            trimmed(digits),
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        ),
    }
}

/// Without zeros at the end of a fraction.
fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_order_of_scores_and_then_of_bytes() {
        let mut set = SortedSet::default();
        for (name, score) in [
            ("c", 2.0),
            ("b", 1.0),
            ("d", f64::INFINITY),
            ("a", 2.0),
            ("e", f64::NEG_INFINITY),
        ] {
            assert!(set.add(name.as_bytes(), score));
        }
        assert!(!set.add(b"b", 2.0), "it is moved");
        let names = |set: &SortedSet| {
            set.members
                .iter()
                .map(|member| member.name[0] as char)
                .collect::<String>()
        };
        assert_eq!(names(&set), "eabcd");
        assert_eq!(set.members[3].score, 2.0);
        assert!(set.remove(b"a") && !set.remove(b"a"));
        set.remove_above(2.0);
        assert_eq!(names(&set), "ebc");
    }

    /// Each pair was observed on Redis 7.0.
    #[test]
    fn scores_are_written_as_by_a_server() {
        let pairs = [
            ("1795519049784269", "1795519049784269"),
            ("0", "0"),
            ("1.5", "1.5"),
            ("0.1", "0.10000000000000001"),
            ("0.0001", "0.0001"),
            ("0.00001", "1.0000000000000001e-05"),
            ("12345678901234567", "12345678901234568"),
            ("1e16", "10000000000000000"),
            ("1e17", "1e+17"),
            ("-1.5e300", "-1.5000000000000001e+300"),
            ("1e-7", "9.9999999999999995e-08"),
            ("inf", "inf"),
            ("-Infinity", "-inf"),
        ];
        for (text, written) in pairs {
            assert_eq!(
                score_text(score(text.as_bytes()).unwrap()),
                written,
                "{text}"
            );
        }
        for text in ["", "x", "nan", "1e999", " 1", "1 ", "1x", "1,5"] {
            assert_eq!(score(text.as_bytes()), None, "{text}");
        }
    }
}
