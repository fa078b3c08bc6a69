//! One connection's conversation with a server that may say anything, at any time, in any pieces.
//!
//! Input: the handshake, then steps until the bytes are used up; the low half of a byte says which, the high half how.
//! Beside the session runs a model: the requests in the order in which they were made, and all bytes received, decoded
//! afresh. Rules:
//! 1. A reply answers the oldest unanswered request, once, and means what that request makes of it. Nothing else is
//!    answered, and nothing is answered without a reply.
//! 2. On a connection whose standing is `Rejected`, every vote of an acquisition or an extension is that fault. So is
//!    that of a release, unless a duplicate has deleted the key.
//! 3. A reply that does not fit its request, or that no request asked for, is an error. It answers nothing, and the
//!    model asks for no more events after it.
//! 4. Abandoning hands out the unanswered requests, all of them, oldest first; later bytes answer nothing.
//! 5. What is sent is what was asked, in that order, however it is cut; a release is sent in no form twice, and an
//!    extension once.
//! 6. A set of keys is one request with a reply for each key, and the worst of them counts. A refusal
//!    names the keys, and whether others were set.
//! 7. A take is granted, or shows the whole entry of its call; damage in it is a fault of the lock. It goes by script,
//!    or by SET from when scripts turned out not to work. What releases and leaves report by a script is kept until it
//!    is taken, a bit for each key.
//! 8. The receive buffer stays within twice of what it had to hold, and returns to its size when it is empty.

use super::{Input, Tree};
use quorumlock::ServerError;
use quorumlock::algorithm::fault::{Cause, Fault, Phase};
use quorumlock::algorithm::holder::HolderTag;
use quorumlock::algorithm::kind::EntryKind;
use quorumlock::algorithm::kind::Kind;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::algorithm::protocol_error::ProtocolError;
use quorumlock::algorithm::queue::{Entry, Member, QueueReply, Slots, Storage, TakeRequest, TicketRequest};
use quorumlock::algorithm::time::Timestamp;
use quorumlock::algorithm::vote::Vote;
use quorumlock::protocol::error_reply::ErrorReply;
use quorumlock::protocol::handshake::Handshake;
use quorumlock::protocol::kinds;
use quorumlock::protocol::lock_key::LockKey;
use quorumlock::protocol::operation::{Operation, Verb};
use quorumlock::protocol::resp::{Decoder, Reply};
use quorumlock::protocol::server_info::ServerInfo;
use quorumlock::protocol::session::{
    Abandoned, Answer, Command, HandshakeState, Log, Session, SessionEvent, Ticket, Wakes,
};
use std::collections::VecDeque;

const RECEIVE_BUFFER: usize = 16 * 1024;
/// What a single lock is of, and sets are of more of.
const NAMES: [&str; 4] = ["orders/42", "orders/43", "orders/44", "orders/45"];
const USER: &str = "alice";
const PASSWORD: &str = "hunter2";

/// What servers say, in and out of place. The first ones accept, the next ones refuse, the last ones answer no request.
const REPLIES: [&str; 24] = [
    "+OK\r\n",
    ":1\r\n",
    "$92\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123456789012345678901234567890123456789\r\n",
    "$11\r\nrole:master\r\n",
    "$-1\r\n",
    ":0\r\n",
    "-ERR unknown command 'EVAL', with args beginning with: 'orders/42' \r\n",
    "-NOPERM this user has no permissions to run the 'eval' command\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    "-NOAUTH Authentication required.\r\n",
    "$10\r\nrole:slave\r\n",
    "$43\r\nvalkey_version:9.1.0\r\nredis_version:7.2.4\r\n\r\n",
    "$18\r\nredis_mode:cluster\r\n",
    "+QUEUED\r\n",
    "*2\r\n$2\r\nOK\r\n:1\r\n",
    ":-1\r\n",
    "-ERR syntax error\r\n",
    ":2\r\n",
    ":-3\r\n",
    "$49\r\ny 1700000000000000 3 -1 0a1b2c3d fte 00000000abm7\r\n",
    "$14\r\nn inf 0 0 - - \r\n",
    ":-2\r\n",
    "-NOSCRIPT No matching script.\r\n",
];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut run = Run::begin(input.byte());
    while !input.is_empty() && !run.failed {
        let step = input.byte();
        run.step(step % 16, usize::from(step / 16), &mut input);
        run.compare();
    }
    run.end();
}

/// A reply that is expected.
#[derive(Clone, Copy)]
struct Asked {
    request: Request,
    at: Timestamp,
    /// Which key of how many it is about.
    part: usize,
    keys: usize,
}

impl Asked {
    /// Of a lock's request, the last reply.
    fn is_last(self) -> bool {
        self.part + 1 == self.keys
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Acquire(Ticket),
    Auth,
    Extend(Ticket),
    InfoPersistence,
    InfoReplication,
    InfoServer,
    /// Removes an entry. Whether it went by the hash.
    Leave(Ticket, bool),
    /// Ends the lock. Whether it went by the hash.
    Release(Ticket, bool),
    Select,
    /// Takes the lock in turn.
    Take(Ticket, Way),
}

/// How a take is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Hash,
    Set,
    Text,
}

struct Run {
    session: Session,
    /// Everything that was asked, and how much of it is answered.
    asked: Vec<Asked>,
    answered: usize,
    /// Operations to be sent again, and as what.
    misunderstood: VecDeque<(Ticket, Verb, Request, usize)>,
    /// What was said to the request whose replies are arriving.
    said: Vec<Said>,
    /// Whether the next take is to go by script.
    takes_by_script: bool,
    wakes: Wakes,
    standing: HandshakeState,
    identity: ServerInfo,
    /// How many requests the server has taken notice of, and what it has written that is still on its way.
    served: usize,
    on_the_way: Vec<u8>,
    received: Vec<u8>,
    understood: usize,
    sent: Vec<u8>,
    long_left: usize,
    /// The most that the receive buffer had to hold since it was empty.
    peak: usize,
    failed: bool,
}

impl Run {
    fn begin(choice: u8) -> Run {
        let set = |bit: u8| choice >> bit & 1 == 1;
        let handshake = Handshake {
            user: set(0).then(|| USER.to_owned()),
            password: set(1).then(|| PASSWORD.to_owned()),
            database: if set(2) { 3 } else { 0 },
            checks_durability: set(3),
            ..Handshake::default()
        };
        let mut run = Run {
            session: Session::open(&handshake, Timestamp::ORIGIN),
            asked: Vec::new(),
            answered: 0,
            misunderstood: VecDeque::new(),
            said: Vec::new(),
            takes_by_script: true,
            wakes: Wakes::default(),
            standing: HandshakeState::Pending,
            identity: ServerInfo::default(),
            served: 0,
            on_the_way: Vec::new(),
            received: Vec::new(),
            understood: 0,
            sent: Vec::new(),
            long_left: 3,
            peak: 0,
            failed: false,
        };
        let handshake = [
            (Request::Auth, set(1)),
            (Request::Select, set(2)),
            (Request::InfoServer, true),
            (Request::InfoPersistence, set(3)),
            (Request::InfoReplication, true),
        ];
        for request in handshake.into_iter().filter_map(|(request, is_sent)| is_sent.then_some(request)) {
            run.asked.push(Asked { request, at: Timestamp::ORIGIN, part: 0, keys: 1 });
        }
        run
    }

    fn step(&mut self, step: u8, how: usize, input: &mut Input<'_>) {
        match step {
            0 | 1 => {
                let keys = if step == 0 { 1 } else { 1 + how % NAMES.len() };
                let (ticket, now) = self.ask(keys, Request::Acquire);
                let ttl_millis = u64::from(ticket.generation);
                self.queue(ticket, Verb::Acquire { ttl_millis }, keys, now);
            }
            2 => {
                let keys = 1 + how % NAMES.len();
                let (ticket, now) = self.ask(keys, |ticket| Request::Release(ticket, false));
                if self.queue(ticket, Verb::Release(None), keys, now) {
                    self.set_request(keys, Request::Release(ticket, true));
                }
            }
            3 => {
                let keys = 1 + how % NAMES.len();
                let (ticket, now) = self.ask(keys, Request::Extend);
                let ttl_millis = u64::from(ticket.generation);
                self.queue(ticket, Verb::Extend { ttl_millis }, keys, now);
            }
            4 => {
                if let Some((ticket, verb, request, keys)) = self.misunderstood.pop_front() {
                    let request = match request {
                        Request::Take(ticket, Way::Text) if !self.takes_by_script => Request::Take(ticket, Way::Set),
                        request => request,
                    };
                    let (_, now) = self.ask(keys, |_| request);
                    let operation = &Operation { verb, kind: Kind::Plain, retention_millis: 1 };
                    let (key, token) = (key(keys), token(ticket));
                    let command = Command { ticket, operation, key: key.as_bytes(), token: &token };
                    self.session.ask_again(&command, now);
                }
            }
            5 => {
                let fault = Fault::new(Phase::Handshake, Cause::Duplicate(how));
                self.session.reject(fault);
                self.standing = HandshakeState::Rejected(fault);
            }
            6 if how.is_multiple_of(2) => {
                let way = if self.takes_by_script { Way::Text } else { Way::Set };
                let (ticket, now) = self.ask(1, |ticket| Request::Take(ticket, way));
                if self.queue(ticket, take(ticket), 1, now) {
                    self.set_request(1, Request::Take(ticket, Way::Hash));
                }
            }
            6 => {
                let (ticket, now) = self.ask(1, |ticket| Request::Leave(ticket, false));
                if self.queue(ticket, Verb::Leave(Some(entry(ticket))), 1, now) {
                    self.set_request(1, Request::Leave(ticket, true));
                }
            }
            7 => {
                let count = (how * how * how).min(self.session.pipeline.unsent(&Log::default()).len());
                self.sent.extend_from_slice(&self.session.pipeline.unsent(&Log::default())[..count]);
                self.session.pipeline.sent(count);
            }
            8 | 9 => {
                let reply = self.fitting_reply(how);
                self.on_the_way.extend(reply.bytes());
            }
            10 => {
                self.served += 1;
                self.on_the_way.extend(REPLIES[how].bytes());
            }
            11 => {
                let length = usize::from(input.byte());
                self.on_the_way.extend(input.take(length));
            }
            12 => {
                // A long INFO: not too long and not too often, for the sake of speed.
                self.served += 1;
                self.long_left = self.long_left.saturating_sub(1);
                let text = "field:value\r\n".repeat(if self.long_left > 0 { how * how * 24 } else { how });
                self.on_the_way.extend(format!("${}\r\n{text}\r\n", text.len()).bytes());
            }
            13 => self.receive(how * how * how * how),
            14 => self.understand(),
            _ => {
                self.receive(usize::MAX);
                for _ in 0..how * 2 {
                    if !self.failed {
                        self.understand();
                    }
                }
            }
        }
    }

    /// Queues an operation. Returns whether it is a script that is called by its hash.
    fn queue(&mut self, ticket: Ticket, verb: Verb, keys: usize, now: Timestamp) -> bool {
        let before = self.session.pipeline.unsent(&Log::default()).len();
        let operation = &Operation { verb, kind: Kind::Plain, retention_millis: 1 };
        let (key, token) = (key(keys), token(ticket));
        let command = Command { ticket, operation, key: key.as_bytes(), token: &token };
        self.session.queue(&command, now);
        self.session.pipeline.unsent(&Log::default())[before..].windows(11).any(|words| words == b"\r\nEVALSHA\r\n")
    }

    /// Makes what was just asked about so many keys this request.
    fn set_request(&mut self, keys: usize, request: Request) {
        self.asked.iter_mut().rev().take(keys).for_each(|asked| asked.request = request);
    }

    /// Expects the replies to a request about so many keys.
    fn ask(&mut self, keys: usize, request: impl FnOnce(Ticket) -> Request) -> (Ticket, Timestamp) {
        let count = self.asked.len() as u32;
        let (ticket, at) = (Ticket { slot: count % 3, generation: count }, Timestamp::from_nanos(u64::from(count)));
        let request = request(ticket);
        self.asked.extend((0..keys).map(|part| Asked { request, at, part, keys }));
        (ticket, at)
    }

    /// What a server could say to the next request.
    fn fitting_reply(&mut self, how: usize) -> &'static str {
        let replies: &[usize] = match self.asked.get(self.served).map(|asked| asked.request) {
            Some(Request::Acquire(_)) => &[0, 4, 8],
            Some(Request::Auth | Request::Select) => &[0, 0, 0, 10],
            Some(Request::Extend(_)) => &[1, 5, 16, 6, 7, 9, 17],
            Some(Request::InfoReplication) => &[3, 3, 7, 11],
            Some(Request::InfoPersistence) => &[3, 7, 11, 12],
            Some(Request::InfoServer) => &[2, 12, 7, 6, 13],
            Some(Request::Leave(..)) => &[1, 5, 18, 19, 22, 7, 23],
            Some(Request::Release(..)) => &[1, 5, 6, 7, 9, 18, 19, 22, 23],
            Some(Request::Take(_, Way::Set)) => &[0, 4, 8],
            Some(Request::Take(..)) => &[1, 20, 21, 22, 7, 8, 23, 6],
            None => &[0],
        };
        self.served += 1;
        REPLIES[replies[how % replies.len()]]
    }

    fn receive(&mut self, most: usize) {
        let pending = self.received.len() - self.understood;
        if pending == 0 {
            self.peak = 0;
        }
        let space = self.session.incoming.space();
        assert!(!space.is_empty(), "no space to read to");
        let bound = RECEIVE_BUFFER.max(2 * self.peak);
        assert!(space.len() <= bound - pending, "{} bytes of space beside {pending}", space.len());
        let count = most.min(space.len()).min(self.on_the_way.len());
        space[..count].copy_from_slice(&self.on_the_way[..count]);
        self.received.extend(self.on_the_way.drain(..count));
        self.session.incoming.received(count);
        self.peak = self.peak.max(pending + count);
    }

    /// Asks the session for an event, and the model whether it is the right one.
    fn understand(&mut self) {
        let got = self.session.next_event(&Log::default());
        loop {
            let bytes = &self.received[self.understood..];
            if bytes.is_empty() {
                return assert_eq!(got, Ok(None), "an event out of nothing");
            }
            let Some(&asked) = self.asked.get(self.answered) else {
                return self.fail(got, ProtocolError::Unrequested);
            };
            let (reply, length) = match Decoder::default().decode(bytes) {
                Ok(None) => return assert_eq!(got, Ok(None), "an event out of half a reply"),
                Ok(Some((reply, length))) => (Tree::of(reply), length),
                Err(error) => return self.fail(got, error),
            };
            let Some(meaning) = self.meaning(asked, &reply) else {
                return self.fail(got, ProtocolError::UnexpectedReply);
            };
            self.understood += length;
            self.answered += 1;
            match (meaning, got.clone()) {
                (Meaning::Nothing, _) => {}
                (Meaning::Event(expected), got) => return assert_eq!(got, Ok(Some(expected)), "to {reply:?}"),
                (Meaning::Fault(ticket), Ok(Some(SessionEvent::Answered(got, Answer::Vote(Vote::Fault(fault)))))) => {
                    return assert_eq!((got, fault.phase), (ticket, Phase::Reply));
                }
                (Meaning::Rejected, Ok(Some(SessionEvent::Rejected(fault)))) => {
                    self.standing = HandshakeState::Rejected(fault);
                    return assert_eq!(fault.phase, Phase::Handshake);
                }
                (Meaning::WrongForm(ticket, request), Ok(Some(SessionEvent::Answered(again, Answer::WrongForm)))) => {
                    let verb = match request {
                        Request::Take(..) => take(ticket),
                        Request::Leave(..) => Verb::Leave(Some(entry(ticket))),
                        _ => Verb::Release(None),
                    };
                    self.misunderstood.push_back((ticket, verb, request, asked.keys));
                    return assert_eq!(again, ticket);
                }
                (_, event) => panic!("{event:?} to {reply:?}"),
            }
        }
    }

    fn fail(&mut self, got: Result<Option<SessionEvent>, ProtocolError>, error: ProtocolError) {
        assert_eq!(got, Err(error));
        self.failed = true;
    }

    /// What a reply means to a request, or `None` when it does not fit.
    fn meaning(&mut self, asked: Asked, reply: &Tree) -> Option<Meaning> {
        let is_pending = self.standing == HandshakeState::Pending;
        let refused = if is_pending { Meaning::Rejected } else { Meaning::Nothing };
        Some(match (asked.request, reply) {
            (Request::Auth | Request::Select, Tree::Simple(text)) if text == b"OK" => Meaning::Nothing,
            (Request::Auth | Request::Select, Tree::Error(_)) => refused,
            (Request::InfoPersistence, Tree::Error(_)) => Meaning::Nothing,
            (Request::InfoPersistence, Tree::Bulk(Some(section))) => {
                self.identity.learn(section);
                Meaning::Nothing
            }
            (Request::InfoServer | Request::InfoReplication, Tree::Error(text)) if !is_withheld(text) => refused,
            (Request::InfoServer | Request::InfoReplication, Tree::Bulk(Some(_)) | Tree::Error(_)) => {
                if let Tree::Bulk(Some(section)) = reply {
                    self.identity.learn(section);
                }
                if asked.request == Request::InfoServer || !is_pending {
                    return Some(Meaning::Nothing);
                }
                match self.identity.objection() {
                    Some(_) => Meaning::Rejected,
                    None => {
                        self.standing = HandshakeState::Accepted;
                        Meaning::Event(SessionEvent::Accepted)
                    }
                }
            }
            (request, reply) => {
                self.said.push(said(request, reply)?);
                if matches!(request, Request::Release(..) | Request::Leave(..)) {
                    match reply {
                        Tree::Integer(2 | -2) => self.wakes.told |= 1 << asked.part,
                        Tree::Integer(3 | -3) => self.wakes.more |= 1 << asked.part,
                        Tree::Integer(4 | -4) => self.wakes.is_denied = true,
                        _ => {}
                    }
                }
                if !asked.is_last() {
                    return Some(Meaning::Nothing);
                }
                let said = std::mem::take(&mut self.said);
                // What is refused is remembered at once: the request may not be made again.
                if let (Request::Take(_, Way::Text), Some(Said::Withheld)) = (request, worst(&said)) {
                    self.takes_by_script = false;
                }
                self.answer(request, &said)?
            }
        })
    }

    /// What the replies to all parts of a lock's request mean: the worst of them, or the first of the worst.
    fn answer(&self, request: Request, said: &[Said]) -> Option<Meaning> {
        let (worst, standing) = (worst(said)?, self.standing);
        let (ticket, again) = match request {
            Request::Acquire(ticket) | Request::Extend(ticket) => (ticket, None),
            Request::Leave(ticket, by_hash) => (ticket, by_hash.then_some(Request::Leave(ticket, false))),
            Request::Take(ticket, Way::Hash) => (ticket, Some(Request::Take(ticket, Way::Text))),
            Request::Take(ticket, Way::Text) => (ticket, Some(Request::Take(ticket, Way::Set))),
            Request::Take(ticket, Way::Set) => (ticket, None),
            Request::Release(ticket, by_hash) => (ticket, by_hash.then_some(Request::Release(ticket, false))),
            _ => return None,
        };
        let is_release = matches!(request, Request::Release(..));
        let vote = |vote| Meaning::Event(SessionEvent::Answered(ticket, Answer::Vote(vote)));
        Some(match (worst, standing) {
            // What is done on a duplicate is done on the server.
            (Said::Granted, standing) if standing.is_duplicate() => vote(Vote::Granted),
            // A node that may not vote releases all the same.
            (Said::Withheld, HandshakeState::Rejected(fault)) if !is_release && !standing.is_duplicate() => {
                vote(Vote::Fault(fault))
            }
            (Said::Withheld, _) if again.is_some() => Meaning::WrongForm(ticket, again.unwrap_or(request)),
            (Said::NotRun(_), HandshakeState::Rejected(fault)) if is_release => {
                Meaning::Event(SessionEvent::NotRun(ticket, fault))
            }
            (Said::NotRun(cause), _) if is_release => {
                Meaning::Event(SessionEvent::NotRun(ticket, Fault::new(Phase::Reply, cause)))
            }
            (_, HandshakeState::Rejected(fault)) => vote(Vote::Fault(fault)),
            (Said::Fault | Said::NotRun(_) | Said::Withheld, _) => Meaning::Fault(ticket),
            (Said::Refused, _) if matches!(request, Request::Acquire(_)) && said.len() > 1 => {
                let refused = (0..).zip(said).filter(|(_, said)| matches!(said, Said::Refused));
                let keys = refused.fold(0, |keys, (part, _)| keys | 1 << part);
                let is_partial = said.iter().any(|said| matches!(said, Said::Granted));
                let vote = if is_partial { Vote::Partial } else { Vote::Refused };
                Meaning::Event(SessionEvent::Answered(ticket, Answer::RefusedFor(vote, keys)))
            }
            (Said::Queued(reply), _) => Meaning::Event(SessionEvent::Answered(ticket, Answer::Queued(Box::new(reply)))),
            (Said::Refused, _) => vote(Vote::Refused),
            (Said::Absent, _) => vote(Vote::Absent),
            (Said::Granted, _) => vote(Vote::Granted),
        })
    }

    /// What can be seen of the session is what the model says.
    fn compare(&mut self) {
        assert_eq!(self.session.take_wakes(), std::mem::take(&mut self.wakes));
        assert_eq!(self.session.pipeline.backlog().requests, self.asked.len() - self.answered);
        assert_eq!(self.session.pipeline.backlog().oldest, self.asked.get(self.answered).map(|asked| asked.at));
        assert_eq!(self.session.standing(), self.standing);
    }

    fn end(mut self) {
        self.compare();
        self.sent.extend_from_slice(self.session.pipeline.unsent(&Log::default()));
        check_commands(&self.sent, &self.asked);
        let shown = format!("{:?}", self.session);
        assert!(!shown.contains(USER) && !shown.contains(PASSWORD), "{shown}");

        let unanswered = self.asked[self.answered..].iter().filter(|asked| asked.is_last());
        let unanswered = unanswered.filter_map(|asked| match asked.request {
            Request::Acquire(ticket) | Request::Take(ticket, _) => Some((ticket, Abandoned::Acquire)),
            Request::Extend(ticket) | Request::Leave(ticket, _) => Some((ticket, Abandoned::Extend)),
            Request::Release(ticket, _) => Some((ticket, Abandoned::Release)),
            _ => None,
        });
        let (unanswered, abandoned): (Vec<_>, Vec<_>) = (unanswered.collect(), self.session.abandon().collect());
        assert_eq!(abandoned.len(), unanswered.len());
        for (expected, got) in unanswered.into_iter().zip(abandoned) {
            // What was written of them depends on the moment; what they are does not.
            let is_unwritten = expected.1 != Abandoned::Release && got == (expected.0, Abandoned::Unwritten);
            assert!(got == expected || is_unwritten, "{got:?} for {expected:?}");
        }
        assert_eq!((self.session.pipeline.backlog().requests, self.session.pipeline.backlog().oldest), (0, None));
        assert_eq!(self.session.abandon().count(), 0);
        self.session.incoming.space()[0] = b'+';
        self.session.incoming.received(1);
        assert_eq!(self.session.next_event(&Log::default()), Err(ProtocolError::Unrequested));
    }
}

/// What the model expects of an event. Where a fault is the server's, its cause is left to the session.
enum Meaning {
    Event(SessionEvent),
    Fault(Ticket),
    Nothing,
    Rejected,
    WrongForm(Ticket, Request),
}

/// What the reply to one command about a lock says.
#[derive(Clone, Copy)]
enum Said {
    Absent,
    Fault,
    Granted,
    /// The command was not run, and may be later.
    NotRun(Cause),
    Queued(QueueReply),
    Refused,
    /// The user may not, or the server does not know how.
    Withheld,
}

/// The worst of the replies to all parts of a request, or the first of the worst.
fn worst(said: &[Said]) -> Option<Said> {
    said.iter().rev().max_by_key(|said| said.weight()).copied()
}

impl Said {
    fn weight(self) -> u8 {
        match self {
            Said::Granted => 0,
            Said::Absent => 1,
            Said::Refused | Said::Queued(_) => 2,
            Said::Fault => 3,
            Said::NotRun(_) => 4,
            Said::Withheld => 5,
        }
    }
}

/// What a reply to a command about a lock says, or `None` when it does not fit.
fn said(request: Request, reply: &Tree) -> Option<Said> {
    Some(match (request, reply) {
        (Request::Acquire(_) | Request::Take(_, Way::Set), reply) => match reply {
            Tree::Simple(text) if text == b"OK" => Said::Granted,
            Tree::Bulk(None) => Said::Refused,
            Tree::Error(_) => Said::Fault,
            _ => return None,
        },
        (request, Tree::Error(text)) => refused(request, text),
        (Request::Extend(_) | Request::Take(..), Tree::Integer(1)) => Said::Granted,
        (Request::Extend(_), Tree::Integer(0)) => Said::Absent,
        (Request::Extend(_), Tree::Integer(-1)) => Said::Refused,
        (Request::Take(..), Tree::Integer(-2)) => Said::Fault,
        (Request::Take(..), Tree::Bulk(Some(text))) if text.contains(&b' ') => {
            queued(text).map_or(Said::Fault, Said::Queued)
        }
        (Request::Leave(..) | Request::Release(..), Tree::Integer(1..=4)) => Said::Granted,
        (Request::Leave(..) | Request::Release(..), Tree::Integer(0 | -4..=-2)) => Said::Refused,
        _ => return None,
    })
}

/// What an error reply to a script means.
fn refused(request: Request, text: &[u8]) -> Said {
    let by_hash = matches!(request, Request::Leave(_, true) | Request::Release(_, true) | Request::Take(_, Way::Hash));
    let may_be_another = by_hash || matches!(request, Request::Take(..));
    match request {
        Request::Extend(_) | Request::Release(..) if first_word(text) == b"WRONGTYPE" => Said::Refused,
        _ if is_barred(text) && may_be_another || by_hash && first_word(text) == b"NOSCRIPT" => Said::Withheld,
        Request::Release(..) if is_barred(text) => Said::NotRun(Cause::NoScripts),
        Request::Release(..) if is_not_run(text) => Said::NotRun(ErrorReply::read(text).cause),
        _ => Said::Fault,
    }
}

/// Whether a server that says this to a release has not run it, and may run it later.
fn is_not_run(text: &[u8]) -> bool {
    !matches!(
        ErrorReply::read(text).cause,
        Cause::FenceAhead | Cause::Server(ServerError::WrongType) | Cause::UnexpectedValue
    )
}

/// The server does not know scripts, or the user may not run them.
fn is_barred(text: &[u8]) -> bool {
    let is_denied = String::from_utf8_lossy(text).contains(" run the 'eval");
    if text.starts_with(b"NOPERM") { is_denied } else { is_withheld(text) }
}

/// The seven fields of a reply about the queue, if they are those.
fn queued(text: &[u8]) -> Option<QueueReply> {
    let fields: Vec<&[u8]> = text.splitn(7, |&byte| byte == b' ').collect();
    let [storage, ticket, rank, held, holder, slots, head] = fields[..] else { return None };
    let number = |digits: &[u8]| String::from_utf8(digits.to_vec()).ok()?.parse::<u64>().ok();
    let storage = match storage {
        b"y" => Storage::Before,
        b"n" => Storage::Now,
        b"o" => Storage::NoMemory,
        b"d" => Storage::Denied,
        _ => return None,
    };
    let held = if held == b"-1" { None } else { Some(std::time::Duration::from_millis(number(held)?)) };
    Some(QueueReply {
        storage,
        ticket: number(ticket)?,
        rank: number(rank)?.try_into().ok()?,
        held,
        holder: (holder != b"-").then(|| HolderTag::exact(holder)),
        is_other_library: holder.ends_with(b"!"),
        slots: Slots::of(slots),
        head: if head.is_empty() { None } else { Member::new(head) },
    })
}

fn take(ticket: Ticket) -> Verb {
    let proposed = TicketRequest::Proposed(ticket.slot.into());
    let request = TakeRequest { entry: Some(entry(ticket)), ticket: proposed, ..TakeRequest::WITHOUT_ENTRY };
    Verb::Take { ttl_millis: ticket.generation.into(), request }
}

fn entry(ticket: Ticket) -> Entry {
    Entry { client: 0xab, kind: EntryKind::Mutex, number: ticket.generation.into() }
}

/// Another token for each request, so that it shows when one is sent for another.
fn token(ticket: Ticket) -> OwnerToken {
    let mut entropy = [0; OwnerToken::ENTROPY];
    entropy[..4].copy_from_slice(&ticket.generation.to_le_bytes());
    OwnerToken::from_entropy(entropy)
}

/// The key of so many names.
fn key(keys: usize) -> LockKey {
    LockKey::of("", &NAMES[..keys])
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// The user may not, or the server does not know how.
fn is_withheld(text: &[u8]) -> bool {
    let unknown = [b"ERR unknown ".as_slice(), b"ERR Could not find scripting engine"];
    first_word(text) == b"NOPERM" || unknown.iter().any(|opening| text.starts_with(opening))
}

/// The command and the script in it, by its hash or its text.
fn called(by_hash: bool) -> [&'static [u8]; 2] {
    if by_hash {
        [b"EVALSHA", kinds::plain::SCRIPT.sha1.as_bytes()]
    } else {
        [b"EVAL", kinds::plain::SCRIPT.text.as_bytes()]
    }
}

/// All that was sent, sent or not yet: one command for each request.
fn check_commands(mut bytes: &[u8], asked: &[Asked]) {
    let mut releases: Vec<(Ticket, usize, bool)> = Vec::new();
    for asked in asked {
        let Ok(Some((Reply::Array(Some(words)), length))) = Decoder::default().decode(bytes) else {
            panic!("not a command: {}", bytes.escape_ascii());
        };
        bytes = &bytes[length..];
        let words: Vec<&[u8]> =
            words.map(|word| if let Reply::Bulk(Some(word)) = word { word } else { b"?" }).collect();
        let key = NAMES[asked.part].as_bytes();
        let fits = match (asked.request, words.as_slice()) {
            (Request::Acquire(ticket), [b"SET", name, owner, b"NX", b"PX", ttl]) => {
                (*name, *owner) == (key, &token(ticket).digits()[..])
                    && *ttl == ticket.generation.to_string().as_bytes()
            }
            (Request::Auth, [b"AUTH", b"hunter2"] | [b"AUTH", b"alice", b"hunter2"]) => true,
            (Request::Extend(ticket), words) => {
                let (token, ttl) = (token(ticket).digits(), ticket.generation.to_string());
                *words == [b"EVAL", kinds::plain::EXTEND.as_bytes(), b"1", key, &token, ttl.as_bytes()]
            }
            (Request::Take(ticket, Way::Set), [b"SET", name, owner, b"NX", b"PX", ttl]) => {
                (*name, *owner) == (key, &token(ticket).digits()[..])
                    && *ttl == ticket.generation.to_string().as_bytes()
            }
            (Request::Take(ticket, way), words) => {
                let [call, text] = called(way == Way::Hash);
                let (token, ttl, clock) =
                    (token(ticket).digits(), ticket.generation.to_string(), ticket.slot.to_string());
                let member = entry(ticket).member();
                let (ttl, clock) = (ttl.as_bytes(), clock.as_bytes());
                *words == [call, text, b"1", key, b"take", &token, ttl, member.text(), clock, b"p", b""]
            }
            (Request::Leave(ticket, by_hash), words) => {
                let [call, text] = called(by_hash);
                *words == [call, text, b"1", key, b"leave", entry(ticket).member().text()]
            }
            (Request::InfoPersistence, words) => *words == [b"INFO".as_slice(), b"persistence"],
            (Request::InfoReplication, words) => *words == [b"INFO".as_slice(), b"replication"],
            (Request::InfoServer, words) => *words == [b"INFO".as_slice(), b"server"],
            (Request::Release(ticket, by_hash), words) => {
                let sent = (ticket, asked.part, by_hash);
                assert!(!releases.contains(&sent), "a release in the same form again");
                releases.push(sent);
                let [call, text] = called(by_hash);
                *words == [call, text, b"1", key, b"release", &token(ticket).digits()]
            }
            (Request::Select, words) => *words == [b"SELECT".as_slice(), b"3"],
            _ => false,
        };
        assert!(fits, "sent at {:?}: {}", asked.at, words.join(&b' ').escape_ascii());
    }
    assert!(bytes.is_empty(), "sent without being asked: {}", bytes.escape_ascii());
}
