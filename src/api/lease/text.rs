//! A lease as one line of text, and back.
//!
//! ```text
//!   quorumlock-lease:1:orders/42:10000:1709210096789:a7…0f
//!                    │ key       │     │             owner token, 40 hexadecimal digits
//!                    version     │     end, milliseconds since 1970 by the wall clock
//!                                time to live, milliseconds
//! ```
//!
//! If the lock is fenced, the fence follows the end; if its holder has a label, the label precedes
//! the token. The keys of a set are separated by commas. For a read-write lock, the version
//! determines what is held.
//!
//! It is printable ASCII without blanks, quotes or anything else that a shell, an environment
//! variable or a line of a file would mind: in the key and the label, all but letters, digits and
//! `-._~/` is percent-encoded. There is exactly one text for a lease, and reading is strict: a text
//! that was cut short or put together wrongly is refused, not guessed at. The token is last,
//! because its length is known: no beginning of a text is a text. What is refused is never quoted.

use super::detached::{DetachedLease, LATEST_END_MILLIS};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::OwnerToken;
use crate::events::error::{Result, config_error};
use crate::protocol::endpoint;
use crate::protocol::kinds::LeaseForm;
use crate::protocol::lock_key::{LockKey, MOST_KEYS};
use std::fmt;

/// What every version begins with. [`LeaseForm`] has the versions.
const NAME: &str = "quorumlock-lease";

/// A [`Lease`](crate::Lease) as text: **a secret**, because a process that reads it can extend and
/// release the lock.
///
/// `Debug` does not show it, and there is no `Display`: [`expose`](SecretText::expose) is the way
/// out. Hand it over by a pipe, a file or an environment variable that only the receiver can read,
/// and not by a command line, which every user of the machine can see. Its memory is overwritten
/// before it is given back.
pub struct SecretText(String);

impl SecretText {
    /// The text: one line of printable ASCII without blanks, and without a line feed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Without a reader, the optimizer could leave the clearing out.
        std::hint::black_box(&bytes);
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

impl DetachedLease {
    pub(super) fn to_text(&self) -> SecretText {
        let label = self.token.label().as_str();
        let is_set = matches!(self.key, LockKey::Set(_));
        let version = LeaseForm {
            kind: self.kind,
            is_set,
            is_labelled: label.is_some(),
        }
        .version();
        let keys: Vec<String> = self.key.each().iter().map(|key| encoded(key)).collect();
        let mut text = format!(
            "{NAME}:{version}:{}:{}:{}:",
            keys.join(","),
            self.ttl_millis,
            self.end_millis
        );
        if let Some(fence) = self.kind.fence() {
            text += &format!("{fence}:");
        }
        if let Some(label) = label {
            text += &format!("{}:", encoded(label));
        }
        let digits = self.token.digits();
        // The token is not left behind where the text has moved from.
        text.reserve_exact(digits.len());
        text.extend(digits.map(char::from));
        SecretText(text)
    }

    /// # Errors
    /// [`Config`](ErrorKind::Config), without a word of the text.
    pub(super) fn from_text(text: &str) -> Result<DetachedLease> {
        let mut fields = text.split(':');
        if fields.next() != Some(NAME) {
            return Err(config_error("not the text of a lease"));
        }
        let version = fields.next().unwrap_or_default();
        let LeaseForm {
            kind,
            is_set,
            is_labelled,
        } = LeaseForm::of(version).ok_or_else(|| match number(version) {
            Some(_) => config_error("the text of a lease, but in a version that is not known here"),
            None => config_error("not the text of a lease"),
        })?;
        let mut field = || fields.next().unwrap_or_default();
        let key = field();
        let ttl = field();
        let end = field();
        let fence = kind.is_fenced().then(&mut field);
        let label = is_labelled.then(&mut field);
        let token = field();
        if fields.next().is_some() {
            return Err(config_error("more than the text of a lease"));
        }
        let damaged = |part| move || config_error(part);
        Ok(DetachedLease {
            key: key_of(key, is_set).ok_or_else(damaged("a damaged text of a lease: its key"))?,
            ttl_millis: number(ttl)
                .ok_or_else(damaged("a damaged text of a lease: its time to live"))?,
            end_millis: number(end)
                .filter(|&millis| millis <= LATEST_END_MILLIS)
                .ok_or_else(damaged("a damaged text of a lease: its end"))?,
            kind: match fence {
                None => kind,
                Some(fence) => kind.with_fence(
                    FencingToken::from_digits(fence.as_bytes())
                        .ok_or_else(damaged("a damaged text of a lease: its fence"))?,
                ),
            },
            token: OwnerToken::from_digits(token.as_bytes())
                .ok_or_else(damaged("a damaged text of a lease: its owner token"))?
                .labelled(match label {
                    None => HolderLabel::NONE,
                    Some(label) => decoded(label)
                        .and_then(|label| HolderLabel::new(label.as_bytes()))
                        .ok_or_else(damaged("a damaged text of a lease: its label"))?,
                }),
            end_here: None,
        })
    }
}

/// A number as it is written here: digits, the first of them no zero that could be left out.
fn number(field: &str) -> Option<u64> {
    field
        .parse()
        .ok()
        .filter(|number: &u64| number.to_string() == field)
}

/// The key, or those of a set: sorted, each once, and more than one.
fn key_of(field: &str, is_set: bool) -> Option<LockKey> {
    if !is_set {
        return decoded(field).map(|key| LockKey::One(key.into()));
    }
    let keys: Vec<String> = field.split(',').map(decoded).collect::<Option<_>>()?;
    let is_ordered = keys.windows(2).all(|pair| pair[0] < pair[1]);
    (is_ordered && (2..=MOST_KEYS).contains(&keys.len())).then(|| LockKey::of("", keys))
}

fn encoded(key: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    key.bytes().map(encode).collect()
}

/// The key or label that is encoded so, if there is one.
fn decoded(field: &str) -> Option<String> {
    let key = endpoint::percent_decoded(field).ok()?;
    // What is encoded in any other way than ours was not written by us.
    (!key.is_empty() && encoded(&key) == field).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::kind::Kind;
    use crate::events::error::ErrorKind;

    const TEXT: &str =
        "quorumlock-lease:1:orders/42:10000:1709210096789:a70000000000000000000000000000000000000f";

    const FENCED_TEXT: &str = concat!(
        "quorumlock-lease:2:quorumlock-fence%3Aorders/42:10000:1709210096789:1709210086789000:",
        "a70000000000000000000000000000000000000f"
    );

    const LABELLED_TEXT: &str = concat!(
        "quorumlock-lease:3:orders/42:10000:1709210096789:billing%40host7/4711:",
        "a70000000000000000000000000000000000000f"
    );

    const SET_TEXT: &str = concat!(
        "quorumlock-lease:5:a%3A,b:10000:1709210096789:",
        "a70000000000000000000000000000000000000f"
    );

    fn message(text: &str) -> String {
        let error = DetachedLease::from_text(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(format!("{error:?}"), format!("Config: {error}"));
        error.to_string()
    }

    #[test]
    fn a_text_is_what_the_picture_shows() {
        let content = DetachedLease::from_text(TEXT).unwrap();
        assert_eq!(
            (
                &**content.key.title(),
                content.ttl_millis,
                content.end_millis
            ),
            ("orders/42", 10_000, 1_709_210_096_789)
        );
        assert_eq!(
            &content.token.digits(),
            b"a70000000000000000000000000000000000000f"
        );
        assert_eq!(content.to_text().expose(), TEXT);
        assert_eq!(format!("{:?}", content.to_text()), "SecretText(…)");
        assert_eq!(content.kind, Kind::Plain);
        let content = DetachedLease::from_text(FENCED_TEXT).unwrap();
        let fenced = Kind::Fenced(FencingToken::saturating(1_709_210_086_789_000));
        assert_eq!(
            (&**content.key.title(), content.kind),
            ("quorumlock-fence:orders/42", fenced)
        );
        assert_eq!(content.to_text().expose(), FENCED_TEXT);
        let content = DetachedLease::from_text(LABELLED_TEXT).unwrap();
        assert_eq!(content.token.label().as_str(), Some("billing@host7/4711"));
        assert_eq!(content.to_text().expose(), LABELLED_TEXT);
        let content = DetachedLease::from_text(SET_TEXT).unwrap();
        assert_eq!(
            content
                .key
                .each()
                .iter()
                .map(|key| &**key)
                .collect::<Vec<_>>(),
            ["a:", "b"]
        );
        assert_eq!(content.to_text().expose(), SET_TEXT);
    }

    #[test]
    fn what_was_not_written_so_is_refused_in_words_that_tell_nothing() {
        let with = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            TEXT.replace(from, to)
        };
        let table = [
            (String::new(), "not the text"),
            ("hunter2".to_owned(), "not the text"),
            (format!(" {TEXT}"), "not the text"),
            (with("lease", "Lease"), "not the text"),
            (with(":1:", ":one:"), "not the text"),
            (with(":1:", ":01:"), "not the text"),
            (with(":1:", ":9:"), "its fence"),
            (FENCED_TEXT.replace(":2:", ":8:"), "more than"),
            (with(":1:", ":10:"), "a version that is not known"),
            (
                "quorumlock-lease:10".to_owned(),
                "a version that is not known",
            ),
            (with(":1:", ":5:"), "its key"),
            (with("orders/42", "a,b"), "its key"),
            (SET_TEXT.replace("a%3A,b", "b,a%3A"), "its key"),
            (SET_TEXT.replace("a%3A,b", "b,b"), "its key"),
            (SET_TEXT.replace("a%3A,b", "a%3A,"), "its key"),
            (SET_TEXT.replace(":5:", ":6:"), "its owner token"),
            (with(":1:", ":2:"), "its fence"),
            (with(":1:", ":3:"), "its owner token"),
            (LABELLED_TEXT.replace(":3:", ":1:"), "more than"),
            (LABELLED_TEXT.replace("%40", "%20"), "its label"),
            (
                LABELLED_TEXT.replace("billing", &"b".repeat(60)),
                "its label",
            ),
            (FENCED_TEXT.replace(":2:", ":1:"), "more than"),
            (
                FENCED_TEXT.replace(":1709210086789000:", ":9007199254740992:"),
                "its fence",
            ),
            (
                FENCED_TEXT.replace(":1709210086789000:", ":0:"),
                "its fence",
            ),
            (
                FENCED_TEXT.replace(":1709210086789000:", ":01:"),
                "its fence",
            ),
            (
                "quorumlock-lease:10:anything:at all".to_owned(),
                "a version that is not known",
            ),
            (format!("{TEXT}:"), "more than"),
            (with("orders/42", ""), "its key"),
            (with("orders/42", "orders 42"), "its key"),
            (with("orders/42", "orders%2F42"), "its key"),
            (with("orders/42", "orders%c3%a9"), "its key"),
            (with("orders/42", "orders%C3"), "its key"),
            (with("orders/42", "orders%C"), "its key"),
            (with("orders/42", "orders%+1"), "its key"),
            (with("orders/42", "ordérs"), "its key"),
            (with("10000", "010000"), "its time to live"),
            (with("10000", "+10000"), "its time to live"),
            (with("10000", "18446744073709551616"), "its time to live"),
            (with("1709210096789", ""), "its end"),
            (with("1709210096789", "-1"), "its end"),
            (with("1709210096789", "253402300800000"), "its end"),
            (format!("{TEXT}\n"), "its owner token"),
            (with("a7", "A7"), "its owner token"),
        ];
        for (text, words) in table {
            let message = message(&text);
            assert!(message.contains(words), "{text}: {message}");
            assert!(
                !message.contains("hunter2")
                    && !message.contains("orders")
                    && !message.contains("a70000")
            );
        }
    }

    #[test]
    fn no_beginning_of_a_text_is_a_text() {
        for text in [TEXT, FENCED_TEXT, LABELLED_TEXT, SET_TEXT] {
            assert!(
                (0..text.len()).all(|length| DetachedLease::from_text(&text[..length]).is_err())
            );
        }
    }

    /// Every character below U+0300 and some above, alone and together; each number at its ends.
    #[test]
    fn every_lease_comes_back_as_it_was() {
        let every: String = ('\0'..'\u{300}')
            .chain(['€', '\u{fffd}', '🔒', char::MAX])
            .collect();
        let keys: Vec<String> = every
            .chars()
            .map(String::from)
            .chain([every.clone(), "%41:".repeat(99)])
            .collect();
        let kinds = [
            Kind::Plain,
            Kind::Fenced(FencingToken::saturating(1)),
            Kind::Fenced(FencingToken::MAX),
            Kind::Read,
            Kind::Write(None),
            Kind::Write(Some(FencingToken::saturating(1))),
        ];
        for (key, kind) in keys.iter().flat_map(|key| kinds.map(|kind| (key, kind))) {
            for (ttl_millis, end_millis, entropy) in [
                (0, 0, 0),
                (1, 1, 0x5a),
                (u64::MAX, LATEST_END_MILLIS, u8::MAX),
            ] {
                let label = HolderLabel::new(&[entropy]).filter(|_| !kind.is_read_write());
                let label = label.unwrap_or(HolderLabel::NONE);
                let token =
                    OwnerToken::from_entropy([entropy; OwnerToken::ENTROPY]).labelled(label);
                let content = DetachedLease {
                    key: LockKey::One(key.as_str().into()),
                    ttl_millis,
                    end_millis,
                    kind,
                    token,
                    end_here: None,
                };
                let text = content.to_text();
                assert!(
                    text.expose()
                        .bytes()
                        .all(|byte| byte.is_ascii_graphic() && !b"\"'\\$`".contains(&byte))
                );
                assert_eq!(DetachedLease::from_text(text.expose()).unwrap(), content);
            }
        }
    }

    /// At every place up to three characters are taken out, and something else is put in.
    #[test]
    fn a_text_that_was_tampered_with_is_refused_or_means_one_thing() {
        let others = [
            "", "0", "1", "9", "a", "A", "%", "%4", "%41", "%3A", "%c3%a9", ":", "::", "é", "\n",
            " ", "-", "~",
        ];
        let mut read = 0;
        for (whole, other) in [TEXT, FENCED_TEXT, LABELLED_TEXT, SET_TEXT]
            .into_iter()
            .flat_map(|whole| others.map(|other| (whole, other)))
        {
            for (at, length) in
                (0..whole.len()).flat_map(|at| (0..4).map(move |length| (at, length)))
            {
                let text = format!(
                    "{}{other}{}",
                    &whole[..at],
                    &whole[(at + length).min(whole.len())..]
                );
                if let Ok(content) = DetachedLease::from_text(&text) {
                    assert_eq!(content.to_text().expose(), text);
                    read += 1;
                }
            }
        }
        assert!(read > 1000, "{read} texts were read");
    }
}
