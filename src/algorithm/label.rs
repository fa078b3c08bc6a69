//! The label of a holder: what the value of a key contains, beside the token, for a reader of the
//! key.

use std::fmt;
use std::sync::Arc;

/// A label that was checked, or none. Cloning is cheap: most clients have none, and every token of
/// a client the same. Each held lock has a token, so it is one pointer, to a text that knows its
/// length.
#[derive(Clone, PartialEq, Eq)]
pub struct HolderLabel(Option<Arc<String>>);

impl HolderLabel {
    /// Bytes of the longest label. Every value, and every command with a value, is longer by it.
    pub const LONGEST: usize = 64;
    /// No label.
    pub const NONE: HolderLabel = HolderLabel(None);

    /// The label of this text: 1 to 64 visible ASCII characters. A space separates it from the
    /// token.
    pub fn new(text: &[u8]) -> Option<HolderLabel> {
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|text| HolderLabel::is_label(text.as_bytes()))?;
        Some(HolderLabel(Some(Arc::new(text.to_owned()))))
    }

    /// Whether a label may have this text.
    pub fn is_label(text: &[u8]) -> bool {
        (1..=HolderLabel::LONGEST).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
    }

    /// The text. None for no label.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref().map(String::as_str)
    }

    /// The text, empty for no label.
    pub fn as_bytes(&self) -> &[u8] {
        self.as_str().unwrap_or_default().as_bytes()
    }
}

impl fmt::Debug for HolderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_visible_ascii_of_some_length() {
        let longest = "~".repeat(HolderLabel::LONGEST);
        for text in ["!", "billing@host7/4711", &longest] {
            let label = HolderLabel::new(text.as_bytes()).unwrap();
            assert_eq!(
                (label.as_str(), label.as_bytes()),
                (Some(text), text.as_bytes())
            );
        }
        for text in [
            "",
            " ",
            "two words",
            "tab\t",
            "caf\u{e9}",
            "\u{7f}",
            "line\n",
            &format!("{longest}~"),
            &"~".repeat(300),
        ] {
            assert_eq!(HolderLabel::new(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(HolderLabel::NONE.as_str(), None);
        assert_eq!(
            format!("{:?}", HolderLabel::new(b"host7").unwrap()),
            "Some(\"host7\")"
        );
    }
}
