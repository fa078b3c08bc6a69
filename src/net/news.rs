//! What happens in the network and concerns no thread in particular: nodes that go and come, and the outcome of releases
//! that nobody waits for.
//!
//! It is noted here, with the relay's mutex held, and told later, by a thread that holds no mutex at all. Notes are told in
//! the order in which they were made, by one thread at a time: another one that comes meanwhile leaves them to that one,
//! which goes on until none is left. So nothing is stranded, and whoever is told may cause more of it.
//!
//! Without somebody to tell there is nothing of this.

use crate::proto::fault::Fault;
use crate::proto::node::{NodeId, NodeSet};
use crate::proto::vote::ReleaseOutcome;
use crate::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most outcomes of releases that wait to be told. Beyond that, whoever is told is too slow to hear of all.
const LIMIT: usize = 65_536;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Item {
    NodeDown(NodeId, Fault),
    NodeUp(NodeId),
    /// The faults of its nodes are there unless a quorum deleted the key.
    Release(Farewell, ReleaseOutcome, Vec<(NodeId, Fault)>),
}

/// What whoever posts a release wants to know again when its outcome is told.
#[derive(Debug)]
pub(crate) struct Farewell {
    pub(crate) key: Arc<str>,
    /// Whether the lease was valid when the release was queued.
    pub(crate) was_valid: bool,
    /// Whether the loss of the lock was told before.
    pub(crate) loss_told: bool,
}

/// What has happened and was not told yet.
#[derive(Default)]
pub(crate) struct News {
    /// Whether there is anything. Spares those who ask the mutex.
    any: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    items: VecDeque<Item>,
    is_being_told: bool,
}

impl News {
    pub(super) fn push(&self, item: Item) {
        let mut inner = lock(&self.inner);
        if inner.items.len() >= LIMIT && matches!(item, Item::Release(..)) {
            return;
        }
        inner.items.push_back(item);
        self.any.store(true, Ordering::Release);
    }

    /// Tells everything that there is, and what is added meanwhile, with no mutex held; unless another call of this is at
    /// it, which then does. `each` must not panic.
    pub(crate) fn tell(&self, mut each: impl FnMut(Item)) {
        // What this thread has noted itself, it sees; what others have, they come and tell.
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut inner = lock(&self.inner);
        if inner.is_being_told {
            return;
        }
        inner.is_being_told = true;
        while let Some(item) = inner.items.pop_front() {
            drop(inner);
            each(item);
            inner = lock(&self.inner);
        }
        inner.is_being_told = false;
        self.any.store(false, Ordering::Release);
    }
}

/// Which nodes are there, as far as was told.
pub(super) struct Presence {
    news: Arc<News>,
    up: NodeSet,
    down: NodeSet,
}

impl Presence {
    pub(super) fn new(news: Arc<News>) -> Presence {
        Presence { news, up: NodeSet::EMPTY, down: NodeSet::EMPTY }
    }

    pub(super) fn is_up(&self, node: NodeId) -> bool {
        self.up.contains(node)
    }

    /// The node may vote. News if it could not, or was never heard of.
    pub(super) fn up(&mut self, node: NodeId) {
        if self.up.insert(node) {
            self.down = self.down.without(NodeSet::from_iter([node]));
            self.news.push(Item::NodeUp(node));
        }
    }

    /// The node cannot be asked. News if it could, or was never heard of.
    pub(super) fn down(&mut self, node: NodeId, fault: Fault) {
        if self.down.insert(node) {
            self.up = self.up.without(NodeSet::from_iter([node]));
            self.news.push(Item::NodeDown(node, fault));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::fault::{Cause, Phase};

    const REFUSED: Fault = Fault::new(Phase::Connect, Cause::Refused);

    fn told(news: &News) -> Vec<String> {
        let mut told = Vec::new();
        news.tell(|item| told.push(name(&item)));
        told
    }

    fn name(item: &Item) -> String {
        match item {
            Item::NodeDown(node, fault) => format!("{node} {fault}"),
            Item::NodeUp(node) => format!("{node} up"),
            Item::Release(farewell, outcome, _) => format!("{} {outcome:?}", farewell.key),
        }
    }

    fn release(number: usize) -> Item {
        let farewell = Farewell { key: number.to_string().into(), was_valid: true, loss_told: false };
        Item::Release(farewell, ReleaseOutcome::Released, Vec::new())
    }

    #[test]
    fn a_node_is_news_when_it_changes() {
        let news = Arc::new(News::default());
        let mut presence = Presence::new(Arc::clone(&news));
        let (one, two) = (NodeId::new(1), NodeId::new(2));
        for _ in 0..2 {
            presence.up(one);
            presence.down(two, REFUSED);
        }
        assert!(presence.is_up(one) && !presence.is_up(two));
        presence.up(two);
        presence.down(one, REFUSED);
        presence.down(one, Fault::new(Phase::Reply, Cause::TimedOut));
        presence.up(one);
        let down = |node| format!("{node} connection refused (connect)");
        assert_eq!(told(&news), ["1 up".into(), down(2), "2 up".into(), down(1), "1 up".into()]);
        assert!(told(&news).is_empty());
    }

    #[test]
    fn what_is_added_while_news_are_told_is_told_by_the_same_call_and_after_them() {
        let news = News::default();
        news.push(release(0));
        news.push(release(1));
        let mut order = Vec::new();
        news.tell(|item| {
            order.push(name(&item));
            if order.len() < 5 {
                news.push(release(order.len() + 1));
            }
            news.tell(|_| panic!("another call is at it"));
        });
        assert_eq!(order, ["0 Released", "1 Released", "2 Released", "3 Released", "4 Released", "5 Released"]);
        news.push(release(6));
        assert_eq!(told(&news), ["6 Released"]);
    }

    /// Each thread notes something and tells what it can. When all have returned, all was told, each thing once, and by one
    /// thread at a time.
    #[test]
    fn nothing_is_left_behind_by_threads_that_note_and_tell_at_once() {
        const THREADS: usize = 4;
        const NOTES: usize = 500;
        for _ in 0..20 {
            let (news, seen) = (News::default(), std::sync::Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (news, seen) = (&news, &seen);
                    scope.spawn(move || {
                        for note in 0..NOTES {
                            news.push(release(thread * NOTES + note));
                            news.tell(|item| seen.try_lock().unwrap().push(name(&item)));
                        }
                    });
                }
            });
            let mut seen = seen.into_inner().unwrap();
            assert_eq!(seen.len(), THREADS * NOTES);
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), THREADS * NOTES);
        }
    }

    #[test]
    fn outcomes_that_nobody_hears_do_not_pile_up_for_ever_and_crowd_out_no_node() {
        let news = News::default();
        for number in 0..LIMIT + 2 {
            news.push(release(number));
        }
        news.push(Item::NodeUp(NodeId::new(3)));
        let told = told(&news);
        assert_eq!((told.len(), told.last().unwrap().as_str()), (LIMIT + 1, "3 up"));
    }
}
