//! The rules that a run is judged by. They know the specification and what really happened at the
//! nodes, and nothing of how the library works.
//!
//! | rule | what it requires |
//! |---|---|
//! | exclusion | at most one guard of a resource is valid at any moment of true time; or any number of readers' |
//! | own entry | a command changes no entry of another attempt before its end, makes no reader a writer, and extends nothing that has ended |
//! | kept number | no command makes the last number of a read-write lock smaller, or keeps it for less time |
//! | covered lease | while a guard reports that it is valid, a quorum of nodes keeps its key for that long |
//! | true quorum | a guard rests on a quorum of nodes that really set its key; so does an extension; so does a release |
//! | true loss | while its lease lasts, a lock is called lost or expired only if so many nodes really denied it that no quorum holds it |
//! | true refusal | "held by another client" is returned only when a node really refused |
//! | fresh token | a token that was not won with is not sent to a node twice |
//! | ended for good | a lease that has ended is not extended, and its key is not set again |
//! | reported in time | the loss of a watched lock that has ended was reported, unless its client stood still |
//! | valid when given | a guard is valid when it is given, unless its client stood still |
//! | bounded key | no key lives longer than its time to live |
//! | no leftover | when the network has healed, no key of a lost attempt or a released lock is left |
//! | fences grow | no fence is given twice, nor a smaller one to an attempt that began later: whatever clocks do |
//! | nothing in flight | a client that asks for nothing any more, when the network has healed, has no pending release and no round in flight |
//! | progress | when the network has healed, every client gets the lock in time |
//! | reported once | an observer gets each loss and the outcome of each release, once, and as it was |
//! | accounted for | each call for a lock is reported to end once, as it did, and to wait once at most; at the end no call is reported to wait |
//! | punctual | no call lasts longer than it may, unless its client stood still |
//! | restful | no thread polls without end and without sleeping, while nothing happens |
//! | patient | no call finds the lock held before the time for which it may wait has passed, whatever becomes of wall clocks |
//! | asks in time | while a lock is free, or all of a set, a client that waits for it asks before its longest delay is over, whatever becomes of published releases |
//! | asks seldom | a waiter makes so many attempts at first, in each second, and for each time that the lock changes hands, and no more |
//! | has its turn | a waiter for a single lock is not overtaken too often |
//! | in order | no call that began later, and asks in turn, gets a lock before one whose entry a quorum had; others get it so seldom that the waiter has its turn |
//! | no entry left | when all calls have returned, no queue has an entry of a living client |
//! | keeps connections | a client makes so many connections to a node at first, and in each second, and no more |
//! | available | while nothing fails, no call finds too few nodes |
//! | bounded delivery | one call delivers a limited number of events to an observer |
//! | kept memory | a guard rests on a quorum of nodes that are noted, and have forgotten no lock that may last |
//! | founding | no node is noted as a founder while one that replies has kept a lock |
//! | fresh look | a node stores a note a second after the look at most |
//!
//! Also: nothing panics, waits for ever, or sends what is no command.

use crate::holds::{Extending, Hold};
use crate::keys;
use crate::memory::{Memory, NODE_KEY};
use crate::plan::{self, Plan, SETTLED_AFTER, SHARED_KEY};
use crate::protocol::{kinds, node_note};
use crate::queues::{Queues, Request};
use crate::readers::{self, Entries};
use crate::waits::SHARED;
use crate::world::World;
use std::collections::BTreeMap;

/// Most nodes of a run.
pub(crate) const NODES: usize = 8;

/// One attempt's token, by its number.
#[derive(Default)]
pub(crate) struct Token {
    pub(crate) task: usize,
    pub(crate) client: usize,
    pub(crate) resource: Option<usize>,
    pub(crate) state: State,
    pub(crate) drawn_at: u64,
    /// When it was lost or released.
    pub(crate) closed_at: u64,
    /// By node: how often it was asked for, and when it was set, deleted or extended last.
    pub(crate) asked: [u32; NODES],
    pub(crate) set_at: [Option<u64>; NODES],
    pub(crate) deleted_at: [Option<u64>; NODES],
    pub(crate) extended_at: [Option<u64>; NODES],
    /// By node: when it last replied to an extension or a release that it does not have the key.
    pub(crate) denied_at: [Option<u64>; NODES],
    /// For a set, by node: when its second key was deleted last.
    pub(crate) shared_deleted_at: [Option<u64>; NODES],
    pub(crate) refused: bool,
    /// Whether it was asked for in turn: with an entry.
    pub(crate) in_turn: bool,
    /// When its client was first seen to write something after its lease had ended.
    pub(crate) ended_at: Option<u64>,
    /// A command of it came on a connection that its client had closed, behind a release: no order
    /// was promised.
    pub(crate) is_excused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    Held,
    Lost,
    /// The call that drew it has not returned.
    #[default]
    Open,
    Released,
}

/// A command as a node ran it.
pub(crate) struct Command<'c> {
    pub(crate) connection: usize,
    pub(crate) node: usize,
    pub(crate) words: &'c [&'c [u8]],
    pub(crate) millis: u64,
}

#[derive(Default)]
pub(crate) struct Judge {
    pub(crate) majority: usize,
    pub(crate) longest_ttl: u64,
    pub(crate) tokens: Vec<Token>,
    pub(crate) holds: Vec<Hold>,
    /// Extensions by hand that are under way, by thread.
    pub(crate) extending: BTreeMap<usize, Extending>,
    pub(crate) finding: Option<(&'static str, String, u64)>,
    /// By resource, the guard under which was written last.
    pub(crate) writers: BTreeMap<usize, usize>,
    pub(crate) late_writes: u64,
    pub(crate) acquired: u64,
    pub(crate) extended: u64,
    pub(crate) attempts: u64,
    /// For read-write locks: what each key held after the last command.
    pub(crate) entries: Entries,
    pub(crate) queues: Queues,
    pub(crate) memory: Memory,
    /// The longest wait of any thread after the end of all faults.
    pub(crate) longest_recovery: u64,
}

impl Judge {
    pub(crate) fn new(plan: &Plan) -> Judge {
        Judge {
            majority: plan.majority(),
            longest_ttl: plan
                .ttls
                .iter()
                .copied()
                .max()
                .unwrap_or(0)
                .max(plan.settling_ttl()),
            ..Judge::default()
        }
    }

    pub(crate) fn draw_token(&mut self, task: usize, client: usize, now: u64) -> usize {
        self.attempts += 1;
        self.tokens.push(Token {
            task,
            client,
            drawn_at: now,
            ..Token::default()
        });
        self.tokens.len() - 1
    }

    /// A killed client relies on nothing, and cleans nothing up.
    pub(crate) fn forget_client(&mut self, client: usize) {
        for hold in self.holds.iter_mut().filter(|hold| hold.client == client) {
            hold.is_over = true;
        }
        for token in self
            .tokens
            .iter_mut()
            .filter(|token| token.client == client)
        {
            token.is_excused = true;
        }
    }

    pub(crate) fn latest(&self, task: usize) -> Option<usize> {
        self.tokens.iter().rposition(|token| token.task == task)
    }

    /// The call that drew these tokens has returned without a guard, or with the last of them.
    pub(crate) fn close_attempts(&mut self, task: usize, now: u64) {
        for token in self
            .tokens
            .iter_mut()
            .filter(|token| token.task == task && token.state == State::Open)
        {
            token.state = State::Lost;
            token.closed_at = now;
        }
    }
}

pub(crate) fn count(times: &[Option<u64>; NODES], since: u64) -> usize {
    times
        .iter()
        .filter(|at| at.is_some_and(|at| at >= since))
        .count()
}

impl World {
    /// A node has run a command.
    pub(crate) fn executed(&mut self, command: &Command<'_>, reply: &[u8]) {
        let now = self.now;
        let node = command.node;
        let (key, token, action) = match *command.words {
            [b"SET", key, token, b"NX", b"PX", _] => (key, token, Action::Set),
            // It is asked again, by the text.
            [b"EVALSHA", ..] if reply.starts_with(b"-NOSCRIPT") => {
                return self.saw("a script by a hash that is not known");
            }
            [b"EVAL", text, ..] if text == node_note::STORE.as_bytes() => {
                return self.noted(command, reply);
            }
            [b"EVAL", text, b"1", key, token, _] if text == kinds::plain::EXTEND.as_bytes() => {
                (key, token, Action::Extend)
            }
            [b"EVAL" | b"EVALSHA", _, b"1", _, b"leave", _] => {
                if let Some(request) = Request::of(command.words) {
                    self.queued(command, &request);
                }
                self.note_entry(command, reply);
                return self.saw("an entry that is removed");
            }
            [b"EVAL" | b"EVALSHA", text, b"1", key, deed, token, ..] => {
                if let Some(request) = Request::of(command.words) {
                    self.queued(command, &request);
                    if request.verb == b"take" && !request.grants {
                        self.note_entry(command, reply);
                        return self.saw("an entry that is only stored");
                    }
                    self.note_seat(command, &request, reply);
                }
                let action = match deed {
                    _ if readers::is_script(text) => readers::action(deed, command.words),
                    b"acquire" | b"take" => Action::Set,
                    b"extend" => Action::Extend,
                    b"raise" => Action::Raise,
                    _ => Action::Release,
                };
                (key, token, action)
            }
            [b"INFO", _] => return,
            [b"TIME"] => return self.looked_at_clock(command),
            [b"GET", key] if key == NODE_KEY => return self.looked(command),
            [b"GETRANGE", _, b"0", b"63"] => return self.saw("a question for the holder of a key"),
            [b"SUBSCRIBE", channel] => {
                self.subscribed(command.connection, channel);
                return self.saw("a subscription");
            }
            [b"AUTH", _] => return self.saw("a log-in"),
            _ => {
                let text = String::from_utf8_lossy(command.words.first().unwrap_or(&&b""[..]))
                    .into_owned();
                return self.violate(
                    "protocol",
                    format!("node {node} was sent a {text}, which no client may send"),
                );
            }
        };
        let Some(number) =
            keys::attempt_of(token).filter(|&number| number < self.judge.tokens.len())
        else {
            return self.violate(
                "protocol",
                format!("node {node} was sent a token that no attempt drew"),
            );
        };
        let connection = &self.connections[command.connection];
        let client = connection.client;
        let is_stale = connection.is_closed_by_client;
        let written_at = connection.command_written_at;
        self.record_attempt(number, || {
            let text = String::from_utf8_lossy(reply).trim_end().to_owned();
            let late = if is_stale { ", on a connection closed since" } else { "" };
            let key = String::from_utf8_lossy(key);
            let about = about(command.words);
            let written = plan::seconds(written_at);
            format!(
                "client {client} → node {node}: {action:?} {key:?} by attempt {number}{about}, sent at {written}: \
                 {text}{late}"
            )
        });
        let majority = self.judge.majority;
        let seen = readers::sight(command.words, reply);
        self.saw(seen.unwrap_or_else(|| sight(command.words, reply, is_stale)));
        if key == SHARED_KEY.as_bytes() {
            self.note_key(node, key, SHARED);
            return self.executed_on_shared_key((number, node), action, reply);
        }
        let present = &mut self.judge.tokens[number];
        present.resource = keys::resource_of(key);
        if present.client != client {
            return self.violate(
                "protocol",
                format!("client {client} sent attempt {number}, which is not its own"),
            );
        }
        let present_resource = present.resource;
        if let Some(resource) = present_resource {
            self.note_key(node, key, resource);
        }
        if present_resource.is_some_and(keys::is_read_write) {
            self.check_entries(command, (key, number), (action, is_granted(reply)));
        }
        let present = &mut self.judge.tokens[number];
        match action {
            Action::Set => {
                present.asked[node] += 1;
                present.is_excused |= is_stale && present.deleted_at[node].is_some();
                let is_repair = count(&present.set_at, 0) >= majority;
                // Where it comes for the first time, it may be the attempt's own.
                let is_too_late = is_repair
                    && present.asked[node] > 1
                    && present
                        .ended_at
                        .is_some_and(|ended_at| ended_at <= written_at);
                let is_twice = present.asked[node] > 1 && !is_repair;
                // A node gets nothing more of a token behind its release.
                let is_behind = present.deleted_at[node].is_some() && !is_stale;
                if present.state == State::Held && present.asked[node] > 1 {
                    *self.seen.entry("a repair").or_default() += 1;
                }
                match reply {
                    _ if is_granted(reply) => {
                        present.set_at[node] = Some(now);
                        self.check_deadline(command, (key, number));
                        self.granted(command, number);
                    }
                    // Held by another client, for so long, or others are in front; `:-2` is no
                    // answer to that.
                    b":-2\r\n" => {}
                    b"$-1\r\n" | b":0\r\n" | [b':', b'-', ..] | [b'$', ..] => {
                        present.refused = true
                    }
                    _ => {}
                }
                if is_too_late {
                    let text = format!(
                        "the key of attempt {number} was set again on node {node}, after its lease had ended"
                    );
                    self.violate("ended for good", text);
                }
                if is_behind {
                    let text = format!(
                        "node {node} was asked for the key of attempt {number} behind its release"
                    );
                    self.violate("ended for good", text);
                }
                if is_twice {
                    self.violate(
                        "fresh token",
                        format!("node {node} was asked twice for attempt {number}"),
                    );
                }
            }
            Action::Extend => {
                if matches!(reply, b":1\r\n" | b"+OK\r\n") {
                    present.extended_at[node] = Some(now);
                    self.check_deadline(command, (key, number));
                } else if is_denial(reply)
                    && !self.nodes[node]
                        .content(key, now)
                        .is_reader(number, command.millis)
                {
                    // A writer's extension that comes after its downgrade is refused, and the entry
                    // is there.
                    present.denied_at[node] = Some(now);
                }
            }
            Action::Raise => present.refused |= matches!(reply, b":0\r\n" | b":-1\r\n"),
            Action::Release => {
                // What an earlier copy of the same release has deleted, it does not deny.
                if is_denial(reply) && present.deleted_at[node].is_none() {
                    present.denied_at[node] = Some(now);
                }
                // Whether it was there or not: what comes after this on another connection comes
                // too late.
                if let [b':', ..] = reply {
                    present.deleted_at[node] = Some(now);
                }
            }
        }
    }

    /// A node has run a command about the second key of a set. By the rules the set goes by its
    /// first one, and a node that has not the second denies the set.
    fn executed_on_shared_key(
        &mut self,
        (number, node): (usize, usize),
        action: Action,
        reply: &[u8],
    ) {
        let now = self.now;
        let token = &mut self.judge.tokens[number];
        match action {
            Action::Set => token.refused |= reply == b"$-1\r\n",
            Action::Extend | Action::Raise | Action::Release => {
                if is_denial(reply) && token.shared_deleted_at[node].is_none() {
                    token.denied_at[node] = Some(now);
                }
                if let (Action::Release, [b':', ..]) = (action, reply) {
                    token.shared_deleted_at[node] = Some(now);
                }
            }
        }
    }

    fn check_deadline(&mut self, command: &Command<'_>, (key, number): (&[u8], usize)) {
        if keys::resource_of(key).is_some_and(keys::is_read_write) {
            return;
        }
        let node = &self.nodes[command.node];
        let entry = node.content(key, self.now).entry(number).copied();
        let end = entry.map(|entry| {
            entry
                .until
                .or_else(|| node.store.deadline(key, command.millis)?)
        });
        let limit = command.millis + self.judge.longest_ttl;
        let wrong = end.filter(|end| end.is_none_or(|end| end > limit));
        if let Some(deadline) = wrong {
            self.violate(
                "bounded key",
                format!(
                    "on node {} a key would live until {deadline:?}",
                    command.node
                ),
            );
        }
    }

    /// Looks for keys that should be gone.
    pub(crate) fn look_for_leftovers(&mut self) {
        let mut left = None;
        for (index, node) in self.nodes.iter().enumerate() {
            let millis = node.millis(self.now);
            for key in node.store.keys(millis) {
                // An entry whose time is over is as good as a plain key that is gone. The value of
                // a fenced lock stays for the fence.
                for entry in node.content(key, self.now).live(millis) {
                    let token = &self.judge.tokens[entry.attempt];
                    let is_old = token.closed_at + SETTLED_AFTER / 2 < self.now;
                    if matches!(token.state, State::Lost | State::Released)
                        && is_old
                        && !token.is_excused
                    {
                        left = Some((index, entry.attempt, token.state));
                    }
                }
            }
        }
        if let Some((node, number, state)) = left {
            self.violate(
                "no leftover",
                format!("node {node} still has the key of attempt {number}, which was {state:?}"),
            );
        }
    }
}

/// For how long a lock is asked for, and what a script is told of the queue.
fn about(words: &[&[u8]]) -> String {
    let text = |word: &&[u8]| String::from_utf8_lossy(word).into_owned();
    match words {
        [b"EVAL" | b"EVALSHA", _, _, _, verb, _, rest @ ..] => {
            format!(
                " ({} {})",
                text(verb),
                rest.iter().map(text).collect::<Vec<_>>().join(" ")
            )
        }
        [.., last] if last.len() < 16 => format!(" for {} ms", text(last)),
        _ => String::new(),
    }
}

/// Whether a node replies that the key is not ours.
fn is_denial(reply: &[u8]) -> bool {
    matches!(
        reply,
        b":0\r\n" | [b':', b'-', b'1'..=b'4', b'\r', ..] | b"$-1\r\n"
    ) || reply.starts_with(b"-WRONGTYPE")
}

/// Whether a node replies that it grants: a plain yes, or a number.
pub(crate) fn is_granted(reply: &[u8]) -> bool {
    let is_number = || {
        let line = reply
            .split(|byte| *byte == b'\n')
            .nth(1)
            .and_then(|line| line.strip_suffix(b"\r"));
        line.is_some_and(|line| !line.is_empty() && line.iter().all(u8::is_ascii_digit))
    };
    matches!(reply, b"+OK\r\n" | b":1\r\n") || reply.starts_with(b"$") && is_number()
}

/// What a command and its reply are an example of.
fn sight(words: &[&[u8]], reply: &[u8], is_stale: bool) -> &'static str {
    let is_permit = readers::is_of(words[1], &kinds::permit::SCRIPT);
    match (words[0], reply) {
        (b"EVAL" | b"EVALSHA", _) if words[1] != kinds::plain::EXTEND.as_bytes() => {
            match (words[4], reply) {
                (b"raise", _) => "a fence that is raised",
                (b"release", [b'-', ..]) => "a release that is not run",
                (b"release", b":2\r\n" | b":-2\r\n") => "a release that tells another client",
                (b"release", _) if words[0] == b"EVALSHA" => "a release by EVALSHA",
                (b"release", _) => "a release by script",
                (_, [b'-', ..]) if readers::is_of(words[1], &kinds::fenced::SCRIPT) => {
                    "a fenced lock's script that is answered with an error"
                }
                (_, [b'-', ..]) => "a script that is answered with an error",
                (b"acquire", [b'$', ..]) => "a fence that is given",
                (b"acquire", [b':', ..]) => "a fenced lock of another client",
                (b"take", [b'$', ..]) if is_granted(reply) => "a fence that is given by a queue",
                (b"take", b":1\r\n") if is_permit => "a permit that is granted by a queue",
                (b"take", b":1\r\n") => "a lock that is granted by a queue",
                (b"take", _) if words[10] != b"" => "a challenge",
                (b"take", _) if is_permit => "an entry in the queue of a semaphore",
                (b"take", _) => "an entry in a queue",
                _ => "something else of a fenced lock",
            }
        }
        (b"SET", b"+OK\r\n") if is_stale => "a SET that runs after its connection was closed",
        (b"SET", b"+OK\r\n") => "a SET that is granted",
        (b"SET", b"$-1\r\n") => "a SET that is refused",
        (b"SET", _) => "a SET that is answered with an error",
        (_, b":-1\r\n") => "an extension of another client's key",
        (_, [b'-', ..]) => "a script that is answered with an error",
        (_, b":0\r\n") => "an extension of a key that is gone",
        _ => "an extension by script",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Extend,
    Raise,
    Release,
    Set,
}
