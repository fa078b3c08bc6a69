//! The operations on a fair lock, which every node of a round is asked alike.

use super::fence_request::FenceRequest;
use super::publish::Hint;
use crate::algorithm::place::{PlaceId, PlaceRequest};

/// One operation on a fair lock. `prefix` is how much of the lock's key is the prefix of all keys, in bytes. With a
/// fence, the key is that of a fenced lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairOperation {
    /// Sets the key if it is the call's turn, or else notes its place.
    Take {
        /// Counted by the node's clock from when it runs the command.
        ttl_millis: u64,
        /// The place.
        place: PlaceRequest,
        /// What to publish if the lock is free and another call is the first now.
        hint: Option<Hint>,
        /// See [`FairOperation`].
        prefix: u32,
        /// See [`FairOperation`].
        fence: Option<FenceRequest>,
    },
    /// Deletes the call's place, and may put one at the end for another call.
    Leave {
        /// The call.
        id: PlaceId,
        /// The other call, and for how many milliseconds its place counts from now on.
        successor: Option<(PlaceId, u32)>,
        /// What to publish if the lock is free and another call is the first now.
        hint: Option<Hint>,
        /// See [`FairOperation`].
        prefix: u32,
        /// See [`FairOperation`].
        fence: Option<FenceRequest>,
    },
    /// Deletes the key if it holds our token, and publishes which call is the first.
    Release {
        /// What to publish with that, if anything.
        hint: Option<Hint>,
        /// The call, if it has not won the lock. Then only another call is named.
        undoes: Option<PlaceId>,
        /// See [`FairOperation`].
        prefix: u32,
        /// See [`FairOperation`].
        fence: Option<FenceRequest>,
    },
}

impl FairOperation {
    /// What makes it one on a fenced lock.
    pub fn fence(self) -> Option<FenceRequest> {
        let (FairOperation::Take { fence, .. }
        | FairOperation::Leave { fence, .. }
        | FairOperation::Release { fence, .. }) = self;
        fence
    }

    /// The same without a hint.
    #[must_use]
    pub(super) fn unpublished(self) -> FairOperation {
        match self {
            FairOperation::Leave { id, successor, prefix, fence, .. } => {
                FairOperation::Leave { id, successor, hint: None, prefix, fence }
            }
            FairOperation::Release { undoes, prefix, fence, .. } => {
                FairOperation::Release { hint: None, undoes, prefix, fence }
            }
            FairOperation::Take { ttl_millis, place, prefix, fence, .. } => {
                FairOperation::Take { ttl_millis, place, hint: None, prefix, fence }
            }
        }
    }
}
