//! The holder of a lock: a copy, which C reads.

use super::boundary::{frees, parts};
use super::handle::Borrowed;
use super::text::Str;
use super::times::millis;
use crate::Holder;

/// `quorumlock_holder`. It never changes.
pub(super) struct HolderObject {
    holder: Holder,
    message: String,
}

impl From<Holder> for HolderObject {
    fn from(holder: Holder) -> HolderObject {
        HolderObject {
            message: holder.to_string(),
            holder,
        }
    }
}

frees! { quorumlock_holder_free(HolderObject); }

parts! { Borrowed<HolderObject>:
    quorumlock_holder_message() -> Str = |of| Str::of(&of.message);
    quorumlock_holder_label() -> Str = |of| Str::of(of.holder.label().unwrap_or_default());
    quorumlock_holder_remaining_ms() -> u64 = |of| of.holder.remaining().map_or(u64::MAX, millis);
    quorumlock_holder_node_count() -> usize = |of| of.holder.nodes().len();
    quorumlock_holder_node(index: usize) -> Str =
        |of| of.holder.nodes().get(index).map(|node| Str::of(node)).unwrap_or_default();
}
