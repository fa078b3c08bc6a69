//! The setting what a client calls itself.

use super::{Builder, config};
use crate::algorithm::label::HolderLabel;
use crate::api::label::Label;
use crate::events::error::Result;

impl Builder {
    /// What this client calls itself, for the operator and for other programs: the label stands in the keys of its
    /// locks, and [`Mutex::holder`](crate::Mutex::holder) shows it. Default: none.
    ///
    /// 1 to 64 visible ASCII characters, such as `billing@host7/4711`, or [`Label::here`]. **All that can read the keys
    /// can read it.** The value of a key becomes the owner token, a space and the label. Other libraries compare the
    /// whole value, so that such a lock excludes theirs, and theirs excludes it, as before. Without a label, no byte
    /// more is sent.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::Redlock;
    ///
    /// let redlock = Redlock::builder().node(node.url()).label("billing@host7/4711").build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.lock()?;
    /// let holder = mutex.holder()?.expect("it is held");
    /// assert_eq!(holder.label(), Some("billing@host7/4711"));
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn label(mut self, label: impl Into<Label>) -> Builder {
        self.label = Some(label.into());
        self
    }

    pub(super) fn checked_label(&self) -> Result<HolderLabel> {
        let Some(label) = &self.label else { return Ok(HolderLabel::NONE) };
        label.checked().ok_or_else(|| config("label must be 1 to 64 visible ASCII characters"))
    }
}
