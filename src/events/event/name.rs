//! The name of a resource, as a part of its key.

use crate::protocol::key_space;
use std::fmt;
use std::sync::Arc;

/// The name of a resource, kept as its key and the length of the client's prefix: an event copies no text.
#[derive(Clone)]
pub(crate) struct ResourceName {
    pub(crate) key: Arc<str>,
    pub(crate) prefix: usize,
}

impl ResourceName {
    pub(super) fn as_str(&self) -> &str {
        key_space::name(&self.key, self.prefix)
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
