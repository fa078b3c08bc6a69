//! One connection's conversation with a server that may send anything, at any time, in any pieces.
//!
//! Input: the handshake, then steps until the bytes are used up; the low half of a byte selects the
//! step, the high half its variant. Beside the session runs a model: the requests in the order in
//! which they were made, and all bytes received, decoded afresh. [`requests`] knows what is sent
//! for a request, and [`replies`] what a reply to it means. Rules:
//! 1. A reply answers the oldest unanswered request, once, and means what that request makes of it.
//!    Nothing else is answered, and nothing is answered without a reply.
//! 2. On a connection whose standing is `Rejected`, every vote of an acquisition or an extension is
//!    that fault. So is the vote of a release, unless a duplicate has deleted the key.
//! 3. A reply that does not fit its request, or that no request asked for, is an error. It answers
//!    nothing, and the model asks for no more events after it.
//! 4. Abandoning hands out the unanswered requests, all of them, oldest first; later bytes answer
//!    nothing.
//! 5. What is sent is what was asked, in that order, however it is cut; a release is sent in no
//!    form twice, and an extension once.
//! 6. A set of keys is one request with a reply for each key, and the worst of them counts. A
//!    refusal names the keys, and whether others were set.
//! 7. A take is granted, or shows the whole entry of its call; damage in it is a fault of the lock.
//!    It goes by script, or by SET from when scripts turned out not to work. What releases and
//!    leaves report by a script is kept until it is taken, a bit for each key.
//! 8. A server in cluster mode is asked one question more, and replies that come before that one's
//!    count then. One that names another master is rejected, and its reply is that fault, or
//!    unanswered.
//! 9. The receive buffer stays within twice of what it had to hold, and returns to its size when it
//!    is empty.

mod replies;
mod requests;

use super::{Input, Tree};
use quorumlock::algorithm::kind::Kind;
use quorumlock::algorithm::time::Timestamp;
use quorumlock::algorithm::vote::Vote;
use quorumlock::fault::protocol_error::ProtocolError;
use quorumlock::fault::{Cause, Fault, Phase};
use quorumlock::protocol::credentials::Credentials;
use quorumlock::protocol::handshake::Handshake;
use quorumlock::protocol::operation::{Operation, Verb};
use quorumlock::protocol::resp;
use quorumlock::protocol::session::{
    Abandoned, Answer, Command, HandshakeState, Log, Session, SessionEvent, Ticket,
};
use replies::{Meaning, Model, REPLIES, fitting};
use requests::{Asked, NAMES, Request, Way, check_commands, entry, key, take, token};
use std::collections::VecDeque;

const RECEIVE_BUFFER: usize = 16 * 1024;
const USER: &str = "alice";
const PASSWORD: &str = "hunter2";

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

struct Run {
    session: Session,
    /// Everything that was asked, and how much of it is answered.
    asked: Vec<Asked>,
    answered: usize,
    /// Operations to be sent again, and as what.
    misunderstood: VecDeque<(Ticket, Verb, Request, usize)>,
    model: Model,
    /// How many requests the server has taken notice of, and what it has written that is still on
    /// its way.
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
            credentials: set(1).then(|| match set(0) {
                true => Credentials::new(PASSWORD).user(USER),
                false => Credentials::new(PASSWORD),
            }),
            database: if set(2) { 3 } else { 0 },
            checks_durability: set(3),
            ..Handshake::default()
        };
        let mut run = Run {
            session: Session::open(&handshake, Timestamp::ORIGIN),
            asked: Vec::new(),
            answered: 0,
            misunderstood: VecDeque::new(),
            model: Model::new(),
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
        for request in handshake
            .into_iter()
            .filter_map(|(request, is_sent)| is_sent.then_some(request))
        {
            run.asked.push(Asked {
                request,
                at: Timestamp::ORIGIN,
                part: 0,
                keys: 1,
            });
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
                        Request::Take(ticket, Way::Text) if !self.model.takes_by_script => {
                            Request::Take(ticket, Way::Set)
                        }
                        request => request,
                    };
                    let (_, now) = self.ask(keys, |_| request);
                    with_command(ticket, verb, keys, |command| {
                        self.session.ask_again(command, now);
                    });
                }
            }
            5 => {
                let fault = Fault::new(Phase::Handshake, Cause::Duplicate(how));
                self.session.reject(fault);
                self.model.standing = HandshakeState::Rejected(fault);
            }
            6 if how.is_multiple_of(2) => {
                let way = if self.model.takes_by_script {
                    Way::Text
                } else {
                    Way::Set
                };
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
                let count =
                    (how * how * how).min(self.session.pipeline.unsent(&Log::default()).len());
                self.sent
                    .extend_from_slice(&self.session.pipeline.unsent(&Log::default())[..count]);
                self.session.pipeline.sent(count);
            }
            8 | 9 => {
                let request = self.asked.get(self.served).map(|asked| asked.request);
                self.served += 1;
                self.on_the_way.extend(fitting(request, how).bytes());
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
                let text = "field:value\r\n".repeat(if self.long_left > 0 {
                    how * how * 24
                } else {
                    how
                });
                self.on_the_way
                    .extend(format!("${}\r\n{text}\r\n", text.len()).bytes());
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
        with_command(ticket, verb, keys, |command| {
            self.session.queue(command, now);
        });
        self.session.pipeline.unsent(&Log::default())[before..]
            .windows(11)
            .any(|words| words == b"\r\nEVALSHA\r\n")
    }

    /// Makes what was just asked about so many keys this request.
    fn set_request(&mut self, keys: usize, request: Request) {
        self.asked
            .iter_mut()
            .rev()
            .take(keys)
            .for_each(|asked| asked.request = request);
    }

    /// Expects the replies to a request about so many keys.
    fn ask(&mut self, keys: usize, request: impl FnOnce(Ticket) -> Request) -> (Ticket, Timestamp) {
        let count = self.asked.len() as u32;
        let ticket = Ticket {
            slot: count % 3,
            generation: count,
        };
        let at = Timestamp::from_nanos(u64::from(count));
        let request = request(ticket);
        self.asked.extend((0..keys).map(|part| Asked {
            request,
            at,
            part,
            keys,
        }));
        (ticket, at)
    }

    fn receive(&mut self, most: usize) {
        let pending = self.received.len() - self.understood;
        if pending == 0 {
            self.peak = 0;
        }
        let space = self.session.incoming.space();
        assert!(!space.is_empty(), "no space to read to");
        let bound = RECEIVE_BUFFER.max(2 * self.peak);
        assert!(
            space.len() <= bound - pending,
            "{} bytes of space beside {pending}",
            space.len()
        );
        let count = most.min(space.len()).min(self.on_the_way.len());
        space[..count].copy_from_slice(&self.on_the_way[..count]);
        self.received.extend(self.on_the_way.drain(..count));
        self.session.incoming.received(count);
        self.peak = self.peak.max(pending + count);
    }

    /// Asks the session for an event, and the model whether it is the right one.
    fn understand(&mut self) {
        let got = self.session.next_event(&Log::default());
        if let Some((asked, meaning)) = self.model.take_early() {
            return self.check(meaning, got, asked);
        }
        loop {
            let bytes = &self.received[self.understood..];
            if bytes.is_empty() {
                return assert_eq!(got, Ok(None), "an event out of nothing");
            }
            let Some(&asked) = self.asked.get(self.answered) else {
                return self.fail(got, ProtocolError::Unrequested);
            };
            let (reply, length) = match resp::decode(bytes) {
                Ok(None) => return assert_eq!(got, Ok(None), "an event out of half a reply"),
                Ok(Some((reply, length))) => (Tree::of(reply), length),
                Err(error) => return self.fail(got, error),
            };
            let Some(meaning) = self.model.meaning(asked, &reply) else {
                return self.fail(got, ProtocolError::UnexpectedReply);
            };
            self.understood += length;
            self.answered += 1;
            if self.model.asks_cluster() {
                self.asked.push(Asked {
                    request: Request::Cluster,
                    at: Timestamp::ORIGIN,
                    part: 0,
                    keys: 1,
                });
            }
            if !matches!(meaning, Meaning::Nothing) {
                return self.check(meaning, got, asked);
            }
        }
    }

    /// That the session has made this of the reply to a request.
    fn check(
        &mut self,
        meaning: Meaning,
        got: Result<Option<SessionEvent>, ProtocolError>,
        asked: Asked,
    ) {
        match (meaning, got) {
            (Meaning::Event(expected), got) => assert_eq!(got, Ok(Some(expected))),
            (
                Meaning::Fault(ticket),
                Ok(Some(SessionEvent::Answered(got, Answer::Vote(Vote::Fault(fault))))),
            ) => assert_eq!((got, fault.phase), (ticket, Phase::Reply)),
            (Meaning::Rejected(phase), Ok(Some(SessionEvent::Rejected(fault)))) => {
                self.model.standing = HandshakeState::Rejected(fault);
                assert_eq!(fault.phase, phase);
            }
            (
                Meaning::WrongForm(ticket, request),
                Ok(Some(SessionEvent::Answered(again, Answer::WrongForm))),
            ) => {
                let verb = match request {
                    Request::Take(..) => take(ticket),
                    Request::Leave(..) => Verb::Leave(Some(entry(ticket))),
                    _ => Verb::Release(None),
                };
                self.misunderstood
                    .push_back((ticket, verb, request, asked.keys));
                assert_eq!(again, ticket);
            }
            (_, event) => panic!("{event:?} to {:?}", asked.request),
        }
    }

    fn fail(&mut self, got: Result<Option<SessionEvent>, ProtocolError>, error: ProtocolError) {
        assert_eq!(got, Err(error));
        self.failed = true;
    }

    /// What can be seen of the session is what the model expects.
    fn compare(&mut self) {
        assert_eq!(
            self.session.take_wakes(),
            std::mem::take(&mut self.model.wakes)
        );
        assert_eq!(
            self.session.pipeline.backlog().requests,
            self.asked.len() - self.answered
        );
        assert_eq!(
            self.session.pipeline.backlog().oldest,
            self.asked.get(self.answered).map(|asked| asked.at)
        );
        assert_eq!(self.session.standing(), self.model.standing);
    }

    fn end(mut self) {
        self.compare();
        self.sent
            .extend_from_slice(self.session.pipeline.unsent(&Log::default()));
        check_commands(&self.sent, &self.asked);
        let shown = format!("{:?}", self.session);
        assert!(
            !shown.contains(USER) && !shown.contains(PASSWORD),
            "{shown}"
        );

        let kept: Vec<Asked> = self.model.kept().collect();
        let unanswered = kept.iter().chain(&self.asked[self.answered..]);
        let unanswered = unanswered.filter(|asked| asked.is_last());
        let unanswered = unanswered.filter_map(|asked| match asked.request {
            Request::Acquire(ticket) | Request::Take(ticket, _) => {
                Some((ticket, Abandoned::Acquire))
            }
            Request::Extend(ticket) | Request::Leave(ticket, _) => {
                Some((ticket, Abandoned::Extend))
            }
            Request::Release(ticket, _) => Some((ticket, Abandoned::Release)),
            _ => None,
        });
        let (unanswered, abandoned): (Vec<_>, Vec<_>) =
            (unanswered.collect(), self.session.abandon().collect());
        assert_eq!(abandoned.len(), unanswered.len());
        for (expected, got) in unanswered.into_iter().zip(abandoned) {
            // What was written of them depends on the moment; what they are does not.
            let is_unwritten =
                expected.1 != Abandoned::Release && got == (expected.0, Abandoned::Unwritten);
            assert!(got == expected || is_unwritten, "{got:?} for {expected:?}");
        }
        assert_eq!(
            (
                self.session.pipeline.backlog().requests,
                self.session.pipeline.backlog().oldest
            ),
            (0, None)
        );
        assert_eq!(self.session.abandon().count(), 0);
        self.session.incoming.space()[0] = b'+';
        self.session.incoming.received(1);
        assert_eq!(
            self.session.next_event(&Log::default()),
            Err(ProtocolError::Unrequested)
        );
    }
}

fn with_command(ticket: Ticket, verb: Verb, keys: usize, act: impl FnOnce(&Command<'_>)) {
    let operation = &Operation {
        verb,
        kind: Kind::Plain,
        retention_millis: 1,
    };
    let key = key(keys);
    let token = token(ticket);
    act(&Command::new(ticket, operation, &key, &token));
}
