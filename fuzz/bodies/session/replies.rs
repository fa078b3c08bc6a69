//! What replies mean, as the model reads them.

use super::super::Tree;
use super::requests::{Asked, Request, Way};
use quorumlock::ServerError;
use quorumlock::algorithm::holder::HolderTag;
use quorumlock::algorithm::queue::{Member, QueueReply, Slots, Storage};
use quorumlock::algorithm::vote::Vote;
use quorumlock::fault::{Cause, Fault, Phase};
use quorumlock::protocol::error_reply::ErrorReply;
use quorumlock::protocol::moved::NamedMaster;
use quorumlock::protocol::server_info::ServerInfo;
use quorumlock::protocol::session::{Answer, HandshakeState, SessionEvent, Ticket, Wakes};
use std::collections::VecDeque;

/// What servers reply, in and out of place. The first ones accept, the next ones refuse, the last
/// ones answer no request.
pub(super) const REPLIES: [&str; 27] = [
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
    "$46\r\ncluster_slots_assigned:16384\r\ncluster_size:1\r\n\r\n",
    "$46\r\ncluster_slots_assigned:16384\r\ncluster_size:2\r\n\r\n",
    "-MOVED 3999 127.0.0.1:6381\r\n",
];

/// What the model expects of an event. Where a fault is the server's, its cause is left to the
/// session.
pub(super) enum Meaning {
    Event(SessionEvent),
    Fault(Ticket),
    Nothing,
    Rejected(Phase),
    WrongForm(Ticket, Request),
}

/// What the reply to one command about a lock means.
#[derive(Clone, Copy)]
enum Said {
    Absent,
    Fault(Cause),
    Granted,
    /// The command was not run, and may be later.
    NotRun(Cause),
    Queued(QueueReply),
    Refused,
    /// The user may not, or the server does not know how.
    Withheld,
}

impl Said {
    fn weight(self) -> u8 {
        match self {
            Said::Granted => 0,
            Said::Absent => 1,
            Said::Refused | Said::Queued(_) => 2,
            Said::Fault(cause) => 3 + u8::from(is_not_run(cause)),
            Said::NotRun(_) => 4,
            Said::Withheld => 5,
        }
    }
}

/// The worst of the replies to all parts of a request, or the first of the worst.
fn worst(said: &[Said]) -> Option<Said> {
    said.iter().rev().max_by_key(|said| said.weight()).copied()
}

/// Whether another server has the key.
fn is_moved(said: &[Said]) -> bool {
    matches!(
        worst(said),
        Some(Said::Fault(Cause::NotMaster) | Said::NotRun(Cause::NotMaster))
    )
}

/// What a reply to a command about a lock means, or `None` when it does not fit.
fn said(request: Request, reply: &Tree) -> Option<Said> {
    Some(match (request, reply) {
        (Request::Acquire(_) | Request::Take(_, Way::Set), reply) => match reply {
            Tree::Simple(text) if text == b"OK" => Said::Granted,
            Tree::Bulk(None) => Said::Refused,
            Tree::Error(text) => Said::Fault(ErrorReply::read(text).cause),
            _ => return None,
        },
        (request, Tree::Error(text)) => refused(request, text),
        (Request::Extend(_) | Request::Take(..), Tree::Integer(1)) => Said::Granted,
        (Request::Extend(_), Tree::Integer(0)) => Said::Absent,
        (Request::Extend(_), Tree::Integer(-1)) => Said::Refused,
        (Request::Take(..), Tree::Integer(-2)) => Said::Fault(Cause::UnexpectedValue),
        (Request::Take(..), Tree::Bulk(Some(text))) if text.contains(&b' ') => {
            queued(text).map_or(Said::Fault(Cause::UnexpectedValue), Said::Queued)
        }
        (Request::Leave(..) | Request::Release(..), Tree::Integer(1..=4)) => Said::Granted,
        (Request::Leave(..) | Request::Release(..), Tree::Integer(0 | -4..=-2)) => Said::Refused,
        _ => return None,
    })
}

/// What an error reply to a script means.
fn refused(request: Request, text: &[u8]) -> Said {
    let by_hash = matches!(
        request,
        Request::Leave(_, true) | Request::Release(_, true) | Request::Take(_, Way::Hash)
    );
    let cause = ErrorReply::read(text).cause;
    let may_be_another = by_hash || matches!(request, Request::Take(..));
    match request {
        Request::Extend(_) | Request::Release(..) if first_word(text) == b"WRONGTYPE" => {
            Said::Refused
        }
        _ if is_barred(text) && may_be_another || by_hash && first_word(text) == b"NOSCRIPT" => {
            Said::Withheld
        }
        Request::Release(..) if is_barred(text) => Said::NotRun(Cause::NoScripts),
        Request::Release(..) if is_not_run(cause) => Said::NotRun(cause),
        _ => Said::Fault(cause),
    }
}

/// Whether a server that replies so to a release has not run it, and may run it later.
fn is_not_run(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::FenceAhead | Cause::Server(ServerError::WrongType) | Cause::UnexpectedValue
    )
}

/// The server does not know scripts, or the user may not run them.
fn is_barred(text: &[u8]) -> bool {
    let is_denied = String::from_utf8_lossy(text).contains(" run the 'eval");
    if text.starts_with(b"NOPERM") {
        is_denied
    } else {
        is_withheld(text)
    }
}

/// The seven fields of a reply about the queue, if they are those.
fn queued(text: &[u8]) -> Option<QueueReply> {
    let fields: Vec<&[u8]> = text.splitn(7, |&byte| byte == b' ').collect();
    let [storage, ticket, rank, held, holder, slots, head] = fields[..] else {
        return None;
    };
    let number = |digits: &[u8]| String::from_utf8(digits.to_vec()).ok()?.parse::<u64>().ok();
    let storage = match storage {
        b"y" => Storage::Before,
        b"n" => Storage::Now,
        b"o" => Storage::NoMemory,
        b"d" => Storage::Denied,
        _ => return None,
    };
    let held = if held == b"-1" {
        None
    } else {
        Some(std::time::Duration::from_millis(number(held)?))
    };
    Some(QueueReply {
        storage,
        ticket: number(ticket)?,
        rank: number(rank)?.try_into().ok()?,
        held,
        holder: (holder != b"-").then(|| HolderTag::of(holder)),
        is_other_library: holder.ends_with(b"!"),
        slots: Slots::of(slots),
        head: if head.is_empty() {
            None
        } else {
            Member::new(head)
        },
    })
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// The user may not, or the server does not know how.
fn is_withheld(text: &[u8]) -> bool {
    let unknown = [
        b"ERR unknown ".as_slice(),
        b"ERR Could not find scripting engine",
    ];
    first_word(text) == b"NOPERM" || unknown.iter().any(|opening| text.starts_with(opening))
}

/// What a server could reply to this request, or to none.
pub(super) fn fitting(request: Option<Request>, how: usize) -> &'static str {
    let replies: &[usize] = match request {
        Some(Request::Acquire(_)) => &[0, 4, 8, 26],
        Some(Request::Auth | Request::Select) => &[0, 0, 0, 10],
        Some(Request::Cluster) => &[24, 24, 24, 24, 25, 7, 2, 13],
        Some(Request::Extend(_)) => &[1, 5, 16, 6, 7, 9, 17, 26],
        Some(Request::InfoReplication) => &[3, 3, 7, 11],
        Some(Request::InfoPersistence) => &[3, 7, 11, 12],
        Some(Request::InfoServer) => &[2, 12, 7, 6, 13, 13],
        Some(Request::Leave(..)) => &[1, 5, 18, 19, 22, 7, 23],
        Some(Request::Release(..)) => &[1, 5, 6, 7, 9, 18, 19, 22, 23, 26],
        Some(Request::Take(_, Way::Set)) => &[0, 4, 8],
        Some(Request::Take(..)) => &[1, 20, 21, 22, 7, 8, 23, 6, 26],
        None => &[0],
    };
    REPLIES[replies[how % replies.len()]]
}

/// What the replies so far mean for the next ones.
pub(super) struct Model {
    pub(super) standing: HandshakeState,
    /// Whether the next take is to go by script.
    pub(super) takes_by_script: bool,
    pub(super) wakes: Wakes,
    identity: ServerInfo,
    /// Whether `CLUSTER INFO` was asked.
    pub(super) has_asked_cluster: bool,
    /// Whether an error has named a master.
    has_named: bool,
    /// The replies so far to the request whose replies are arriving.
    said: Vec<Said>,
    /// Replies that are handed out later.
    early: VecDeque<(Asked, Vec<Said>)>,
}

impl Model {
    pub(super) fn new() -> Model {
        Model {
            standing: HandshakeState::Pending,
            takes_by_script: true,
            wakes: Wakes::default(),
            identity: ServerInfo::default(),
            has_asked_cluster: false,
            has_named: false,
            said: Vec::new(),
            early: VecDeque::new(),
        }
    }

    /// Whether `CLUSTER INFO` is to be asked now.
    pub(super) fn asks_cluster(&mut self) -> bool {
        self.identity.is_in_cluster() && !std::mem::replace(&mut self.has_asked_cluster, true)
    }

    /// What a reply means that was kept.
    pub(super) fn take_early(&mut self) -> Option<(Asked, Meaning)> {
        if self.awaits_cluster() {
            return None;
        }
        let (asked, said) = self.early.pop_front()?;
        Some((asked, self.judge(asked, said)?))
    }

    /// What the replies to all parts of a lock's request mean now.
    fn judge(&mut self, asked: Asked, said: Vec<Said>) -> Option<Meaning> {
        if is_moved(&said)
            && self.standing == HandshakeState::Accepted
            && self.has_named
            && self.identity.is_in_only_shard()
        {
            self.early.push_back((asked, said));
            return Some(Meaning::Rejected(Phase::Reply));
        }
        self.learn_form(asked.request, &said);
        self.answer(asked.request, &said)
    }

    /// The requests whose replies are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = Asked> + '_ {
        self.early.iter().map(|(asked, _)| *asked)
    }

    fn awaits_cluster(&self) -> bool {
        self.standing == HandshakeState::Pending && self.identity.is_in_cluster()
    }

    /// What is refused is remembered: the request may not be made again.
    fn learn_form(&mut self, request: Request, said: &[Said]) {
        if let (Request::Take(_, Way::Text), Some(Said::Withheld)) = (request, worst(said)) {
            self.takes_by_script = false;
        }
    }

    /// What a reply means to a request, or `None` when it does not fit.
    pub(super) fn meaning(&mut self, asked: Asked, reply: &Tree) -> Option<Meaning> {
        let is_pending = self.standing == HandshakeState::Pending;
        let rejected = Meaning::Rejected(Phase::Handshake);
        let refused = if is_pending {
            rejected
        } else {
            Meaning::Nothing
        };
        if let Tree::Error(text) = reply {
            self.has_named |= NamedMaster::read(text).is_some();
        }
        Some(match (asked.request, reply) {
            (Request::Auth | Request::Select, Tree::Simple(text)) if text == b"OK" => {
                Meaning::Nothing
            }
            (Request::Auth | Request::Select, Tree::Error(_)) => refused,
            (Request::InfoPersistence, Tree::Error(_)) => Meaning::Nothing,
            (Request::InfoPersistence, Tree::Bulk(Some(section))) => {
                self.identity.learn(section);
                Meaning::Nothing
            }
            (Request::InfoServer | Request::InfoReplication, Tree::Error(text))
                if !is_withheld(text) =>
            {
                refused
            }
            (
                Request::InfoServer | Request::InfoReplication,
                Tree::Bulk(Some(_)) | Tree::Error(_),
            ) => {
                if let Tree::Bulk(Some(section)) = reply {
                    self.identity.learn(section);
                }
                if asked.request == Request::InfoServer
                    || !is_pending
                    || self.identity.is_in_cluster()
                {
                    return Some(Meaning::Nothing);
                }
                self.decide()
            }
            (Request::Cluster, Tree::Error(_)) => refused,
            (Request::Cluster, Tree::Bulk(Some(section))) => {
                self.identity.learn(section);
                if is_pending {
                    self.decide()
                } else {
                    Meaning::Nothing
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
                let departs = matches!(request, Request::Release(..) | Request::Leave(..));
                if self.awaits_cluster() && (is_moved(&said) || !departs) {
                    self.early.push_back((asked, said));
                    return Some(Meaning::Nothing);
                }
                self.judge(asked, said)?
            }
        })
    }

    /// The handshake is answered.
    fn decide(&mut self) -> Meaning {
        match self.identity.objection(Phase::Handshake) {
            Some(_) => Meaning::Rejected(Phase::Handshake),
            None => {
                self.standing = HandshakeState::Accepted;
                Meaning::Event(SessionEvent::Accepted)
            }
        }
    }

    /// What the replies to all parts of a lock's request mean: the worst of them, or the first of
    /// the worst.
    fn answer(&self, request: Request, said: &[Said]) -> Option<Meaning> {
        let worst = worst(said)?;
        let standing = self.standing;
        let (ticket, again) = match request {
            Request::Acquire(ticket) | Request::Extend(ticket) => (ticket, None),
            Request::Leave(ticket, by_hash) => {
                (ticket, by_hash.then_some(Request::Leave(ticket, false)))
            }
            Request::Take(ticket, Way::Hash) => (ticket, Some(Request::Take(ticket, Way::Text))),
            Request::Take(ticket, Way::Text) => (ticket, Some(Request::Take(ticket, Way::Set))),
            Request::Take(ticket, Way::Set) => (ticket, None),
            Request::Release(ticket, by_hash) => {
                (ticket, by_hash.then_some(Request::Release(ticket, false)))
            }
            _ => return None,
        };
        let is_release = matches!(request, Request::Release(..));
        let vote = |vote| Meaning::Event(SessionEvent::Answered(ticket, Answer::Vote(vote)));
        Some(match (worst, standing) {
            // What is done on a duplicate is done on the server.
            (Said::Granted, standing) if standing.is_duplicate() => vote(Vote::Granted),
            // A node that may not vote releases all the same.
            (Said::Withheld, HandshakeState::Rejected(fault))
                if !is_release && !standing.is_duplicate() =>
            {
                vote(Vote::Fault(fault))
            }
            (Said::Withheld, _) if again.is_some() => {
                Meaning::WrongForm(ticket, again.unwrap_or(request))
            }
            (Said::NotRun(_), HandshakeState::Rejected(fault)) if is_release => {
                Meaning::Event(SessionEvent::NotRun(ticket, fault))
            }
            (Said::NotRun(cause), _) if is_release => Meaning::Event(SessionEvent::NotRun(
                ticket,
                Fault::new(Phase::Reply, cause),
            )),
            (_, HandshakeState::Rejected(fault)) => vote(Vote::Fault(fault)),
            (Said::Fault(_) | Said::NotRun(_) | Said::Withheld, _) => Meaning::Fault(ticket),
            (Said::Refused, _) if matches!(request, Request::Acquire(_)) && said.len() > 1 => {
                let refused = (0..)
                    .zip(said)
                    .filter(|(_, said)| matches!(said, Said::Refused));
                let keys = refused.fold(0, |keys, (part, _)| keys | 1 << part);
                let is_partial = said.iter().any(|said| matches!(said, Said::Granted));
                let vote = if is_partial {
                    Vote::Partial
                } else {
                    Vote::Refused
                };
                Meaning::Event(SessionEvent::Answered(
                    ticket,
                    Answer::RefusedFor(vote, keys),
                ))
            }
            (Said::Queued(reply), _) => Meaning::Event(SessionEvent::Answered(
                ticket,
                Answer::Queued(Box::new(reply)),
            )),
            (Said::Refused, _) => vote(Vote::Refused),
            (Said::Absent, _) => vote(Vote::Absent),
            (Said::Granted, _) => vote(Vote::Granted),
        })
    }
}
