//! What a client calls itself, for readers of the keys that it sets.

use crate::algorithm::label::HolderLabel;
use crate::os::host;

/// What a client calls itself: [`Builder::label`](crate::Builder::label). Made of a text, or by [`here`](Label::here).
///
/// ```
/// use quorumlock::{Label, Redlock};
///
/// let redlock = Redlock::builder().node("redis://10.0.0.1").label(Label::here()).build()?;
///
/// // It is checked when the client is built.
/// let refused = Redlock::builder().node("redis://10.0.0.1").label("two words").build();
/// assert_eq!(refused.unwrap_err().kind(), quorumlock::ErrorKind::Config);
/// # Ok::<(), quorumlock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// The name of this machine, a slash and the id of this process: `host7/4711`. It is always usable: what a label
    /// may not have is `-` in it, and a long name is cut.
    pub fn here() -> Label {
        Label::of(&host::name(), std::process::id())
    }

    fn of(host: &str, process: u32) -> Label {
        let process = format!("/{process}");
        let host = host.bytes().map(|byte| if byte.is_ascii_graphic() { char::from(byte) } else { '-' });
        Label(host.take(HolderLabel::LONGEST - process.len()).chain(process.chars()).collect())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As it is sent, if it can be.
    pub(crate) fn checked(&self) -> Option<HolderLabel> {
        HolderLabel::new(self.0.as_bytes())
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        Label(text.to_owned())
    }
}

impl From<String> for Label {
    fn from(text: String) -> Label {
        Label(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn here_is_always_usable() {
        assert!(Label::here().checked().is_some());
        for (host, label) in [("host7", "host7/4711"), ("", "/4711"), ("a b\u{e9}", "a-b--/4711")] {
            assert_eq!(Label::of(host, 4711).as_str(), label);
        }
        let long = Label::of(&"h".repeat(300), u32::MAX);
        assert_eq!(long.checked().unwrap().as_str(), Some(format!("{}/4294967295", "h".repeat(53)).as_str()));
    }
}
