//! The setting what a client calls itself.

use super::{Builder, config};
use crate::algorithm::label::HolderLabel;
use crate::events::error::Result;
use crate::os::host;

/// The name of this machine, a slash and the id of this process, as a [`Builder::label`]: `host7/4711`. It is always
/// usable: a long name is cut, and each byte that a label cannot contain is a `-`.
///
/// ```
/// use quorumlock::{Redlock, host_label};
///
/// let redlock = Redlock::builder().node("redis://10.0.0.1").label(host_label()).build()?;
/// # Ok::<(), quorumlock::Error>(())
/// ```
pub fn host_label() -> String {
    label_of(&host::name(), std::process::id())
}

fn label_of(host: &str, process: u32) -> String {
    let process = format!("/{process}");
    let host = host.bytes().map(|byte| if byte.is_ascii_graphic() { char::from(byte) } else { '-' });
    host.take(HolderLabel::LONGEST - process.len()).chain(process.chars()).collect()
}

impl Builder {
    /// What this client calls itself, for the operator and for other programs: the label is stored in the keys of its
    /// locks, and [`Mutex::holder`](crate::Mutex::holder) shows it. Default: none.
    ///
    /// 1 to 64 visible ASCII characters, such as `billing@host7/4711`, or [`host_label`]; any other label is an error
    /// of [`build`](Builder::build). **All that can read the keys can read it.** The value of a key becomes the owner
    /// token, a space and the label. Other libraries compare the whole value, so that such a lock excludes theirs, and
    /// theirs excludes it, as before. Without a label, no byte more is sent.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{ErrorKind, Redlock};
    ///
    /// let redlock = Redlock::builder().node(node.url()).label("billing@host7/4711").build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.lock()?;
    /// let holder = mutex.holder()?.expect("it is held");
    /// assert_eq!(holder.label(), Some("billing@host7/4711"));
    ///
    /// let refused = Redlock::builder().node(node.url()).label("two words").build();
    /// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Config);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Builder {
        self.label = Some(label.into());
        self
    }

    pub(super) fn checked_label(&self) -> Result<HolderLabel> {
        let Some(label) = &self.label else { return Ok(HolderLabel::NONE) };
        HolderLabel::new(label.as_bytes()).ok_or_else(|| config("label must be 1 to 64 visible ASCII characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_this_process_is_always_usable() {
        assert!(HolderLabel::new(host_label().as_bytes()).is_some());
        for (host, label) in [("host7", "host7/4711"), ("", "/4711"), ("a b\u{e9}", "a-b--/4711")] {
            assert_eq!(label_of(host, 4711), label);
        }
        let long = label_of(&"h".repeat(300), u32::MAX);
        assert_eq!(long, format!("{}/4294967295", "h".repeat(53)));
        assert!(HolderLabel::new(long.as_bytes()).is_some());
    }
}
