//! How connections end: closed by a program, reset by a system, cut in between, given up.

use super::{Content, End, Making, TO_CLIENT, TO_NODE, UNACKNOWLEDGED_LIMIT};
use crate::world::{Event, World};

impl World {
    pub(crate) fn reset_on_close(&mut self, index: usize) {
        self.connections[index].resets_on_close = true;
    }

    /// The client closes its end. What it has written arrives all the same, unless replies are left
    /// unread or come later.
    pub(crate) fn close(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.is_closed_by_client = true;
        let client = connection.client;
        let node = connection.node;
        if connection.making != Making::Made || self.clients[client].is_gone {
            return;
        }
        let is_unread = !connection.inbox.is_empty();
        if is_unread && !connection.resets_on_close {
            return self.reset_by_system(index);
        }
        let end = End::of(connection.resets_on_close);
        let is_blocked = self.path(client, node).blocked_until[0] > self.now;
        if end == End::Reset && (is_blocked || self.random.once_in(4)) {
            // The system forgets what it could not deliver.
            self.connections[index].parcels[TO_NODE].clear();
        }
        let due = self.now + self.delay(client, node);
        self.send(index, TO_NODE, due, Content::End(end));
    }

    /// A connection that the client has closed brings bytes that its program will not read: its
    /// system discards what it has not sent yet, and resets the connection.
    pub(super) fn reset_by_system(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if std::mem::replace(&mut connection.was_reset, true) {
            return;
        }
        let sent = self.random.index(connection.parcels[TO_NODE].len() + 1);
        self.connections[index].parcels[TO_NODE].truncate(sent);
        self.saw("a connection that is reset because replies were left unread");
        let due =
            self.now + self.delay(self.connections[index].client, self.connections[index].node);
        self.send(index, TO_NODE, due, Content::End(End::Reset));
    }

    /// The node's machine ends the connection.
    pub(crate) fn end_by_node(&mut self, index: usize, end: End) {
        let client = self.connections[index].client;
        let node = self.connections[index].node;
        self.connections[index].is_closed_by_node = true;
        if self.connections[index].life == self.nodes[node].life {
            self.nodes[node]
                .store
                .forget(&mut self.connections[index].session);
        }
        let due = self.now + self.delay(client, node);
        self.send(index, TO_CLIENT, due, Content::End(end));
    }

    /// The node's machine closes the connection, and what was on its way to the client is lost.
    pub(crate) fn lose_replies(&mut self, index: usize) {
        self.connections[index].parcels[TO_CLIENT].clear();
        self.end_by_node(index, End::Closed);
    }

    pub(crate) fn give_up_unacknowledged(&mut self, index: usize) {
        let now = self.now;
        let connection = &mut self.connections[index];
        let Some(oldest) = connection.parcels[TO_NODE].front() else {
            return;
        };
        if connection.is_closed_by_client || connection.inbox_end.is_some() {
            return;
        }
        let limit = oldest.written_at + UNACKNOWLEDGED_LIMIT;
        if limit > now {
            return self.schedule(limit, Event::Unacknowledged { connection: index });
        }
        connection.parcels[TO_NODE].clear();
        connection.inbox_end = Some(End::TimedOut);
        connection.is_void = true;
        self.saw("a connection that the system ends");
        self.wake_pollers(index);
    }

    /// Cuts a connection from in between. Of what was under way, some may still arrive.
    pub(crate) fn cut(&mut self, index: usize) {
        for parcels in &mut self.connections[index].parcels {
            let keep = self.random.index(parcels.len() + 1);
            parcels.truncate(keep);
        }
        let due = self.now + self.plan.paths[0].delay;
        self.send(index, TO_NODE, due, Content::End(End::Reset));
        let end = End::of(self.random.once_in(2));
        self.send(index, TO_CLIENT, due, Content::End(end));
    }

    /// The client's system closes a connection that the client does not control any more.
    pub(crate) fn cut_by_client(&mut self, index: usize, end: End) {
        self.connections[index].is_closed_by_client = true;
        let due = self.now + self.plan.paths[0].delay;
        self.send(index, TO_NODE, due, Content::End(end));
    }
}
