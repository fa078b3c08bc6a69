//! What a client has sent to a node, and the node has not executed: a few requests, in their order.

/// What a client sends. The tickets belong to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    /// Asks without a ticket.
    First,
    /// Asks with its ticket.
    Fixed,
    /// Asks, and challenges the head that it watches.
    Challenge,
    /// Asks by the command of the lock, which looks at no queue.
    Command,
    /// Removes the token, and stores the ticket.
    Undo,
    /// Stores the ticket.
    Store,
    /// Removes the token and the entry.
    End,
    /// Removes the entry.
    Leave,
}

const ALL: [Request; 8] = [
    Request::First,
    Request::Fixed,
    Request::Challenge,
    Request::Command,
    Request::Undo,
    Request::Store,
    Request::End,
    Request::Leave,
];

/// Most requests. One more is sent on a new connection, and the oldest take is lost with the old
/// connection.
const LENGTH: usize = 3;
const BITS: usize = 4;

/// Requests of four bits, the oldest one in the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pipe(u16);

impl Request {
    pub(crate) fn takes(self) -> bool {
        matches!(
            self,
            Request::First | Request::Fixed | Request::Challenge | Request::Command
        )
    }
}

impl Pipe {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Request> {
        (0..LENGTH).filter_map(move |index| {
            ALL.get(usize::from(self.0 >> (index * BITS) & 15).wrapping_sub(1))
                .copied()
        })
    }

    pub(crate) fn pop(&mut self) -> Option<Request> {
        let oldest = self.iter().next();
        self.0 >>= BITS;
        oldest
    }

    pub(crate) fn push(&mut self, request: Request) {
        let is_left = matches!(self.iter().last(), Some(Request::End | Request::Leave));
        if is_left && matches!(request, Request::End | Request::Leave) {
            return;
        }
        let requests: Vec<Request> = self.iter().collect();
        let lost = if requests.len() == LENGTH {
            requests.iter().position(|request| request.takes())
        } else {
            None
        };
        let kept = requests
            .iter()
            .enumerate()
            .filter(|&(index, _)| Some(index) != lost)
            .map(|(_, &kept)| kept);
        let mut requests: Vec<Request> = kept.chain([request]).collect();
        // Where the take between them is lost, two undo no more than one.
        requests.dedup();
        assert!(requests.len() <= LENGTH, "requests that all have to arrive");
        self.0 = 0;
        for (index, request) in requests.into_iter().enumerate() {
            self.0 |= (request as u16 + 1) << (index * BITS);
        }
    }

    /// Loses all but releases, which are sent again on the next connection. Returns the last take
    /// that is lost, and whether a leave is.
    pub(crate) fn lose(&mut self) -> (Option<Request>, bool) {
        let before = *self;
        let mut lost = None;
        let mut is_leave_lost = false;
        *self = Pipe::default();
        for request in before.iter() {
            match request {
                Request::Undo | Request::End => self.push(request),
                Request::Leave => is_leave_lost = true,
                Request::Store => {}
                Request::First | Request::Fixed | Request::Challenge | Request::Command => {
                    lost = Some(request)
                }
            }
        }
        (lost, is_leave_lost)
    }
}
