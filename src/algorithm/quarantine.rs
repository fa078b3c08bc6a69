//! Whether a node's yes counts: one that was restarted may have forgotten locks, and is not
//! believed until the longest of them has ended (rule 7.4).
//!
//! ```text
//!   met ── as the process it was, or durable then and now ──────────► counts
//!    └──── as another process, or after it was a replica ───► quarantine, for max_ttl
//!    ├──── for the first time: counts; in strict mode ──────► quarantine, for max_ttl less its uptime
//!    └──── by what it remembers of itself ──────────────────► quarantine, for what is missing
//! ```
//!
//! Why it is sound. Two holders at once need a node that granted both. It did not forget the first
//! one without a restart in between. If the restart came before this client met the new process,
//! everything that was promised before has ended when `max_ttl` has passed since; and a connection
//! does not outlive its process, so the client meets the new one before it receives a grant from
//! it. That holds for every grant on which a lock rests, an extension's too: a node may have
//! granted the lock to another client, forgotten it, and been given our key again by a repair, or
//! by an old snapshot. So:
//!
//! 1. In quarantine a node's answer to an attempt is the fault [`Cause::Quarantined`], be it yes or
//!    no. Were "held" an answer, clients that try in vain would take each other for holders, and
//!    wait for ever instead of failing.
//! 2. Its yes to an extension is that fault too. Its no counts: our key is not there, whatever else
//!    it has forgotten. Its reply to a release counts as well: a key that was deleted is deleted.
//! 3. It is asked everything, so that it knows all locks when the quarantine ends; releases above
//!    all.
//! 4. The time is read from the steady clock ([`Clock::now`](super::time::Clock::now)). A wall
//!    clock set forward would end the quarantine, and not the lock of the holder on another
//!    machine. For the same reason nothing is taken off for the uptime that a restarted node tells:
//!    a server reckons it by its wall clock, and many a machine finds the right time a while after
//!    its start. Only for a node that is met for the first time there is nothing better.
//! 5. A declaration that the node is durable holds for a process until `INFO` contradicts it with
//!    `aof_enabled:0`. What a process without an append-only file has granted is lost with it, so
//!    the process after it is in quarantine as well.
//!
//! A master that was a replica has lost its keys without a restart, and keeps its process and its
//! connections. It shows in the names of its data's history, which are compared on each connection,
//! and on one that is in use once a second: before a vote that comes more than a second after the
//! last comparison, so that its own votes come behind what it shows.
//!
//! What a node remembers of itself shows more: a flush, and what happened before this client has
//! met the node at all ([`incarnation`](super::incarnation)). The stricter of the two decides. If a
//! node does not tell, these cannot be seen; nor can eviction and `DEBUG RELOAD`, which keep the
//! process, and restarts of a node that withholds its run id. Once it has shown one, to withhold it
//! counts as another process. In strict mode, every connection of such a node does. Nor can these
//! times as a replica be seen: one before this client has met the node; one that begins and ends
//! within a second of use, until the next comparison; and one whose trace is gone before the
//! comparison, because the node has freed its backlog (`repl-backlog-ttl`, an hour by default, and
//! no harm where it is longer than `max_ttl`), or got its first replica after a synchronisation
//! that did not finish, or has run `DEBUG CHANGE-REPL-ID`.

use super::incarnation::run_id::{ReplicationIds, RunId};
use super::time::Timestamp;
use super::vote::Vote;
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// What is done about nodes that were restarted, and may have forgotten locks: given to
/// [`Builder::restart_policy`](crate::Builder::restart_policy).
///
/// A node that forgets a lock while it is held may help to give it away a second time. Unless the
/// policy is `Off`, the votes of a restarted node do not count until
/// [`max_ttl`](crate::Builder::max_ttl) has passed, and with it all that the node can have
/// forgotten. It is asked as before, gets its releases, and votes are the fault
/// [`Quarantined`](crate::Cause::Quarantined) until then. Nodes that keep everything are declared
/// [`durable`](crate::Builder::durable), and need none of this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RestartPolicy {
    /// A program that has just started does not count a node that lost its keys or joined less than
    /// `max_ttl` ago, and counts all nodes of a new deployment. A node has lost its keys if it has
    /// another `run_id` than before, was a replica meanwhile, or was flushed. It remembers that.
    /// The default.
    #[default]
    Observed,
    /// A program that has just started counts every node, whatever it has lost. Two may then hold a
    /// lock at once after a restart without data. What happens to the nodes is noted at them all
    /// the same, for programs with another policy.
    Off,
    /// A program that has just started counts a node when it has lost nothing for `max_ttl`, also
    /// in a new deployment: all of its nodes may have lost their keys. The first program cannot
    /// lock until then. What a node remembers is read behind each of its votes, not once a second:
    /// three more commands for each.
    Strict,
}

/// What a server reports about its own process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its name, unless withheld.
    pub run_id: Option<RunId>,
    /// For how long it has been up at least; zero when withheld.
    pub uptime: Duration,
    /// The names of its data's history, unless withheld.
    pub replication: Option<ReplicationIds>,
    /// Whether it appends its writes to a file, unless withheld.
    pub aof_enabled: Option<bool>,
}

/// One node's record, over all its connections.
#[derive(Clone, Debug)]
pub struct Quarantine {
    policy: RestartPolicy,
    term: Duration,
    is_declared_durable: bool,
    met: Met,
    /// The history of its data when it was last seen as a master.
    replication: Option<ReplicationIds>,
    /// When it ends at the earliest, by the steady clock: nothing that any other clock shows later
    /// ends it sooner.
    end: Option<Timestamp>,
    /// When it ends by the last look at what the node remembers of itself.
    end_by_note: Option<Timestamp>,
    /// The longest that it may last.
    longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Never,
    /// A master, by the name of its process if it shows it, and whether that process keeps its
    /// keys.
    Process(Option<RunId>, bool),
    /// A replica: what it knew is replaced by what its master knows, until it is a master again.
    /// And whether the process before it kept its keys, if there was one.
    Replica(bool),
}

impl Quarantine {
    /// The record of a node that was never met. `term` is the longest that a lock may last.
    pub fn new(policy: RestartPolicy, term: Duration) -> Quarantine {
        Quarantine {
            policy,
            term,
            is_declared_durable: false,
            met: Met::Never,
            replication: None,
            end: None,
            end_by_note: None,
            longest: term,
        }
    }

    /// The same record of a node that is declared durable.
    #[must_use]
    pub fn declared_durable(mut self) -> Quarantine {
        self.is_declared_durable = true;
        self
    }

    /// Whether the node is declared durable, and this server is not.
    pub fn is_contradicted_by(&self, process: &ServerProcess) -> bool {
        self.is_declared_durable && process.aof_enabled == Some(false)
    }

    /// The node is met on a new connection, as a master. Returns for how long it is in quarantine
    /// if that begins now.
    pub fn meet(&mut self, process: &ServerProcess, now: Timestamp) -> Option<Duration> {
        let id = process.run_id;
        let was_replica = self.was_replica(process);
        let is_durable = self.is_declared_durable && !self.is_contradicted_by(process);
        let wait = match (self.policy, self.met) {
            (RestartPolicy::Off, _) => Duration::ZERO,
            // Declared to be without fail-over too; a restart from an append-only file changes the
            // history's names.
            (_, Met::Never | Met::Process(_, true) | Met::Replica(true)) if is_durable => {
                Duration::ZERO
            }
            _ if was_replica => self.term,
            (RestartPolicy::Observed, Met::Never | Met::Process(None, _)) => Duration::ZERO,
            (RestartPolicy::Strict, Met::Never) if id.is_some() => {
                self.term.saturating_sub(process.uptime)
            }
            (_, Met::Process(known, _)) if known.is_some() && known == id => Duration::ZERO,
            (_, Met::Never | Met::Process(..) | Met::Replica(_)) => self.term,
        };
        self.met = Met::Process(id, is_durable);
        self.replication = process.replication;
        self.begin(wait, now)
    }

    /// The node has reported again what it is, on a connection on which it was met. Returns for how
    /// long it is in quarantine if that begins now.
    pub fn recheck(&mut self, process: &ServerProcess, now: Timestamp) -> Option<Duration> {
        let begins =
            self.policy != RestartPolicy::Off && !self.is_durable() && self.was_replica(process);
        self.replication = process.replication;
        self.begin(if begins { self.term } else { Duration::ZERO }, now)
    }

    /// By what the node remembers of itself it has to wait for this long, from a time between the
    /// question and the reading of its reply. A later look ends the wait sooner where a reply was
    /// read late, and not because a clock was set. True if that begins a quarantine.
    pub fn wait_by_note(
        &mut self,
        left: Duration,
        [asked_at, read_at]: [Timestamp; 2],
        now: Timestamp,
    ) -> bool {
        let was_on = self.is_on();
        let end = read_at.after(left);
        // A wait that is over is not begun again by the look that it was counted from.
        if was_on || end > now {
            self.end = self.end.max(Some(asked_at.after(left)));
            self.end_by_note = Some(end);
            self.longest = self.longest.max(left);
        }
        !was_on && end > now
    }

    /// Whether the process that was met last keeps its keys.
    pub fn is_durable(&self) -> bool {
        matches!(self.met, Met::Process(_, true))
    }

    fn begin(&mut self, wait: Duration, now: Timestamp) -> Option<Duration> {
        if wait.is_zero() {
            return None;
        }
        self.end = self.end.max(Some(now.after(wait)));
        Some(wait)
    }

    /// Whether it was a replica since it was last seen as a master.
    fn was_replica(&self, process: &ServerProcess) -> bool {
        let names = self.replication.zip(process.replication);
        names.is_some_and(|(earlier, now)| now.show_a_promotion_since(&earlier))
    }

    /// The node turns out to be a replica. What it reports when it is a master again is what its
    /// own master had sent to it.
    pub fn turn_replica(&mut self) {
        self.met = Met::Replica(match self.met {
            Met::Never => true,
            Met::Process(_, keeps) | Met::Replica(keeps) => keeps,
        });
    }

    /// The process with this name is a replica now, and has named another server as the master. If
    /// it is the one that was met, the node has turned a replica. Otherwise this is the server of
    /// the URL, and the master that was met may still be there.
    pub fn moved(&mut self, id: Option<RunId>) {
        if matches!(self.met, Met::Process(known, _) if known == id) {
            self.turn_replica();
        }
    }

    /// Whether there was a quarantine that was not seen to end. No more needs to be asked of most
    /// nodes.
    pub fn is_on(&self) -> bool {
        self.end.is_some() || self.end_by_note.is_some()
    }

    /// Ends a quarantine whose time is over; false when it goes on.
    pub fn end(&mut self, now: Timestamp) -> bool {
        if self.remaining(now).is_zero() {
            self.end = None;
            self.end_by_note = None;
        }
        !self.is_on()
    }

    /// How long it lasts from now on; zero when the node counts. Never more than its whole time,
    /// though `now` may have been read before the node was met.
    pub fn remaining(&self, now: Timestamp) -> Duration {
        self.end
            .max(self.end_by_note)
            .map_or(Duration::ZERO, |end| end.since(now).min(self.longest))
    }
}

/// Why a node does not count that may have forgotten locks.
pub const UNTRUSTED: Fault = Fault::new(Phase::Reply, Cause::Quarantined);
const QUARANTINED: Vote = Vote::Fault(UNTRUSTED);

/// What counts of an answer to an attempt in quarantine.
pub fn of_attempt(vote: Vote) -> Vote {
    if let Vote::Fault(_) = vote {
        vote
    } else {
        QUARANTINED
    }
}

/// What counts of an answer to an extension in quarantine.
pub fn of_extension(vote: Vote) -> Vote {
    if vote == Vote::Granted {
        QUARANTINED
    } else {
        vote
    }
}

/// What counts of an answer to the question for the holder in quarantine: the node may have
/// forgotten its key.
pub fn of_inspection(vote: Vote) -> Vote {
    if vote == Vote::Absent {
        QUARANTINED
    } else {
        vote
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_secs(seconds))
    }

    /// A letter means a process, `-` a server that withholds its name. Uptime in seconds.
    fn process(name: char, uptime: u64) -> ServerProcess {
        let run_id = RunId::new(name.to_string().repeat(40).as_bytes()).filter(|_| name != '-');
        ServerProcess {
            run_id,
            uptime: Duration::from_secs(uptime),
            ..ServerProcess::default()
        }
    }

    #[test]
    fn a_key_that_is_not_there_counts_for_nothing_while_it_may_have_been_forgotten() {
        assert_eq!(of_inspection(Vote::Absent), QUARANTINED);
        assert_eq!(of_inspection(Vote::Granted), Vote::Granted);
    }

    /// What happens to a node, a word each: how often the clock has moved on by ten seconds, and as
    /// what it is met then (`r` a replica, `m` process `a` as one that names another master, any
    /// other letter a master). Returns how many seconds of quarantine are left after each.
    fn left(policy: RestartPolicy, story: &str) -> Vec<u64> {
        let mut quarantine = Quarantine::new(policy, TERM);
        let meet = |word: &str| {
            let (tens, name) = word.split_at(word.len() - 1);
            let now = at(1000 + 10 * tens.parse::<u64>().unwrap());
            match name.chars().next().unwrap() {
                'm' => quarantine.moved(process('a', 0).run_id),
                'r' => quarantine.turn_replica(),
                name => drop(quarantine.meet(&process(name, 9_999), now)),
            }
            let left = quarantine.remaining(now).as_secs();
            assert_eq!(quarantine.end(now), left == 0);
            left
        };
        story.split(' ').map(meet).collect()
    }

    #[test]
    fn a_changed_process_is_in_quarantine_for_the_whole_term_since_it_was_met() {
        use RestartPolicy::*;
        let table: [(&str, RestartPolicy, &[u64]); 22] = [
            ("0a 1a 9a", Observed, &[0, 0, 0]),
            ("0a 1b", Observed, &[0, 60]),
            ("0a 1b 2b 6b 7b", Observed, &[0, 60, 50, 10, 0]),
            // Changed twice: it begins anew. So it does when the first one is back: it has not seen
            // what came between.
            ("0a 1b 4c 7c 9c", Observed, &[0, 60, 60, 30, 10]),
            ("0a 1b 4a 9a", Observed, &[0, 60, 60, 10]),
            ("0a 500b", Observed, &[0, 60]),
            // It never showed its run id: nothing can be known. It showed one, and does not any
            // more: it may be another.
            ("0- 1- 2-", Observed, &[0, 0, 0]),
            ("0- 1a 2a", Observed, &[0, 0, 0]),
            ("0a 1- 2- 7-", Observed, &[0, 60, 50, 0]),
            ("0a 1- 2a", Observed, &[0, 60, 50]),
            ("0- 1a 2b", Observed, &[0, 0, 60]),
            // A master again after it was a replica, the same process or not.
            ("0a 1r 5a 6a", Observed, &[0, 0, 60, 50]),
            ("0r 5a", Observed, &[0, 60]),
            ("0a 1b 2r 3b 8b", Observed, &[0, 60, 50, 60, 10]),
            ("0a 1m 2a", Observed, &[0, 0, 60]),
            ("0m 1a", Observed, &[0, 0]),
            // By way of another server, whose shard it is still the master of.
            ("0b 1m 2b", Observed, &[0, 0, 0]),
            ("0a 1b 2- 3r 4a", Off, &[0, 0, 0, 0, 0]),
            ("0a 1a 2b 8b", Strict, &[0, 0, 60, 0]),
            ("0- 1- 8-", Strict, &[60, 60, 60]),
            ("0- 1a 2a", Strict, &[60, 60, 50]),
            ("0r 1a", Strict, &[0, 60]),
        ];
        for (story, policy, expected) in table {
            assert_eq!(left(policy, story), expected, "{policy:?} {story}");
        }
    }

    /// A word each, as [`left`]: `+` after the letter of a process with an append-only file, `-` of
    /// one without.
    #[test]
    fn a_declared_node_counts_while_it_and_the_process_before_it_keep_their_keys() {
        let table: [(&str, &[u64]); 12] = [
            ("a+ b+ c+", &[0, 0, 0]),
            ("a- b-", &[0, 60]),
            // What the first process granted is gone, whatever the second one keeps.
            ("a- b+", &[0, 60]),
            ("a+ b-", &[0, 60]),
            ("a- b+ c+", &[0, 60, 60]),
            // Switched on in a running process.
            ("a- a+ b+", &[0, 0, 0]),
            // A replica, or moved to another server, in between.
            ("a+ r b+", &[0, 0, 0]),
            ("a- r b+", &[0, 0, 60]),
            ("a- m b+", &[0, 0, 60]),
            ("r b+", &[0, 0]),
            // Not shown: the declaration is believed.
            ("a b c", &[0, 0, 0]),
            ("a b- c", &[0, 60, 60]),
        ];
        for (story, expected) in table {
            let mut quarantine = Quarantine::new(RestartPolicy::Observed, TERM).declared_durable();
            let left = story.split(' ').map(|word| {
                match word {
                    "m" => quarantine.moved(process('a', 0).run_id),
                    "r" => quarantine.turn_replica(),
                    _ => {}
                }
                if matches!(word, "m" | "r") {
                    return quarantine.remaining(at(1000)).as_secs();
                }
                let mut server = process(word.chars().next().unwrap(), 0);
                match &word[1..] {
                    "" => {}
                    sign => server.aof_enabled = Some(sign == "+"),
                }
                assert_eq!(
                    quarantine.is_contradicted_by(&server),
                    word.ends_with('-'),
                    "{story}"
                );
                quarantine.meet(&server, at(1000));
                assert_eq!(quarantine.is_durable(), !word.ends_with('-'), "{story}");
                quarantine.remaining(at(1000)).as_secs()
            });
            assert_eq!(left.collect::<Vec<_>>(), expected, "{story}");
        }
        let server = process('a', 0);
        assert!(
            !Quarantine::new(RestartPolicy::Observed, TERM).is_contradicted_by(&server),
            "nothing was declared"
        );
    }

    #[test]
    fn in_strict_mode_a_stranger_must_have_been_up_for_the_whole_term() {
        for (uptime, wait) in [(0, 60), (1, 59), (59, 1), (60, 0), (61, 0)] {
            let meet = |policy| Quarantine::new(policy, TERM).meet(&process('a', uptime), at(0));
            assert_eq!(
                meet(RestartPolicy::Strict),
                (wait > 0).then(|| Duration::from_secs(wait)),
                "{uptime:?}"
            );
            assert_eq!(
                (meet(RestartPolicy::Observed), meet(RestartPolicy::Off)),
                (None, None)
            );
        }
        // The uptime that a restarted node reports does not shorten the quarantine.
        let mut quarantine = Quarantine::new(RestartPolicy::Strict, TERM);
        assert_eq!(quarantine.meet(&process('a', 60), at(0)), None);
        assert_eq!(quarantine.meet(&process('b', u64::MAX), at(9)), Some(TERM));
    }

    #[test]
    fn a_master_that_was_a_replica_is_in_quarantine_like_a_restarted_one() {
        use RestartPolicy::*;
        let process = |name: char, [current, former]: [char; 2]| {
            let [current, former] = [current, former].map(|id| id.to_string().repeat(40));
            let replication = ReplicationIds::new(current.as_bytes(), former.as_bytes());
            ServerProcess {
                replication,
                ..process(name, 9_999)
            }
        };
        // Process, then the two names; `+` where it is the same connection still. Ten seconds lie
        // between two words.
        let table: [(&str, RestartPolicy, &[u64]); 9] = [
            ("pa0 pba pba", Observed, &[0, 60, 50]),
            ("pa0 +ba +ba", Observed, &[0, 60, 50]),
            ("pba +ba pba", Observed, &[0, 0, 0]),
            ("pa0 +b0 pc0", Observed, &[0, 0, 0]),
            ("pa0 +cm +dm", Observed, &[0, 60, 60]),
            ("pa0 qax +ax", Observed, &[0, 60, 50]),
            ("-a0 -ba", Observed, &[0, 60]),
            ("pa0 +ba pcb", Off, &[0, 0, 0]),
            ("pa0 +ba pba", Strict, &[0, 60, 50]),
        ];
        for (story, policy, expected) in table {
            let mut quarantine = Quarantine::new(policy, TERM);
            let mut now = at(1000);
            let left = story.split(' ').map(|word| {
                let [name, current, former] =
                    <[char; 3]>::try_from(word.chars().collect::<Vec<_>>()).unwrap();
                match name {
                    '+' => quarantine.recheck(&process('p', [current, former]), now),
                    name => quarantine.meet(&process(name, [current, former]), now),
                };
                let left = quarantine.remaining(now).as_secs();
                now = now.after(Duration::from_secs(10));
                left
            });
            assert_eq!(left.collect::<Vec<_>>(), expected, "{policy:?} {story}");
        }
    }

    #[test]
    fn a_wait_by_a_note_ends_sooner_where_its_reply_was_read_late_and_not_because_a_clock_was_set()
    {
        let seconds = Duration::from_secs;
        let mut quarantine = Quarantine::new(RestartPolicy::Observed, TERM);
        assert!(
            !quarantine.wait_by_note(seconds(0), [at(9), at(10)], at(10)),
            "the node counts"
        );
        assert!(quarantine.wait_by_note(seconds(40), [at(10), at(20)], at(20)));
        assert!(!quarantine.wait_by_note(seconds(25), [at(30), at(30)], at(30)));
        assert_eq!(quarantine.remaining(at(30)), seconds(25));
        // Both clocks were set forward.
        for left in [5, 0] {
            assert!(!quarantine.wait_by_note(seconds(left), [at(31), at(31)], at(31)));
            assert_eq!(quarantine.remaining(at(31)), seconds(24), "until 55");
        }
        assert!(quarantine.end(at(55)));
        assert!(
            !quarantine.wait_by_note(seconds(25), [at(30), at(30)], at(60)),
            "it is over"
        );
        // What this client has met is as it was.
        quarantine.meet(&process('a', 0), at(100));
        quarantine.meet(&process('b', 0), at(100));
        assert!(!quarantine.wait_by_note(seconds(10), [at(100), at(100)], at(100)));
        assert_eq!(quarantine.remaining(at(100)), TERM);
    }

    #[test]
    fn it_ends_no_sooner_than_its_time_is_over() {
        let mut quarantine = Quarantine::new(RestartPolicy::Observed, TERM);
        quarantine.meet(&process('a', 0), at(0));
        assert!(!quarantine.is_on());
        quarantine.meet(&process('b', 0), at(100));
        assert!(
            quarantine.is_on() && !quarantine.end(Timestamp::from_nanos(at(160).as_nanos() - 1))
        );
        assert_eq!(quarantine.remaining(at(159)), Duration::from_secs(1));
        assert!(quarantine.end(at(160)) && !quarantine.is_on());
        assert!(quarantine.end(at(0)), "over is over");
    }

    #[test]
    fn in_quarantine_no_yes_counts_and_few_noes_do() {
        let fault = |cause| Vote::Fault(Fault::new(Phase::Reply, cause));
        let table = [
            (Vote::Granted, QUARANTINED, QUARANTINED),
            (Vote::Refused, QUARANTINED, Vote::Refused),
            (Vote::Absent, QUARANTINED, Vote::Absent),
            (
                fault(Cause::OutOfMemory),
                fault(Cause::OutOfMemory),
                fault(Cause::OutOfMemory),
            ),
        ];
        for (vote, attempt, extension) in table {
            assert_eq!(
                (of_attempt(vote), of_extension(vote)),
                (attempt, extension),
                "{vote:?}"
            );
        }
    }
}
