//! The list of what the driver polls, and what was found.
//!
//! The list is kept from one poll to the next, and only what has changed is written anew. It is
//! apart from the connections while a thread polls, so that other threads can use them meanwhile,
//! and holds on to its streams: a descriptor that is being polled is not closed and given to
//! another stream.

use crate::algorithm::node::NodeSet;
use crate::os::stream::Stream;
use crate::os::waker::Waker;
use std::sync::Arc;
use std::time::Duration;

/// What to poll a connection's stream for.
pub(crate) struct Interest {
    pub(crate) stream: Arc<Stream>,
    pub(crate) writable: bool,
}

/// What the driver polls, and what it found.
pub(crate) struct Watch {
    /// Which list this is: each has another number.
    pub(crate) number: u64,
    pub(super) waker: Arc<Waker>,
    /// By node.
    pub(crate) streams: Box<[Option<Interest>]>,
    /// The subscriber connections, by node; none while no caller waits.
    pub(crate) subscribers: Vec<Option<Interest>>,
    /// The nodes whose subscriber connection is ready for something.
    pub(crate) readable_subscribers: NodeSet,
    pub(crate) readable: NodeSet,
    pub(crate) writable: NodeSet,
    pub(crate) woken: bool,
    /// When to look in any case, from now on.
    pub(crate) limit: Duration,
    /// For how long to poll without sleeping.
    pub(crate) spin: Duration,
}

impl Watch {
    pub(crate) fn new(waker: &Arc<Waker>, nodes: usize) -> Watch {
        Watch {
            number: 0,
            waker: Arc::clone(waker),
            streams: (0..nodes).map(|_| None).collect(),
            subscribers: Vec::new(),
            readable_subscribers: NodeSet::EMPTY,
            readable: NodeSet::EMPTY,
            writable: NodeSet::EMPTY,
            woken: false,
            limit: Duration::MAX,
            spin: Duration::ZERO,
        }
    }
}
