//! What a node is asked about the key of a read-write lock, and what its reply means (rules, section 14).
//!
//! ```text
//!    the key has          acquire, read    acquire, write   extend           raise       its reply is
//!    no hold              Granted          Granted          Absent           Refused     :1; :0
//!    readers, not us      Granted          Held             Absent, Refused  Refused     :1; :-4 - n; :0, :-1
//!    64 readers, not us   Held             Held             Absent, Refused  Refused     :-4 - n; :0, :-1
//!    a writer, not us     Held             Held             Refused          Refused     :-4 - n; :-1; :0
//!    us, as a reader      Granted          Held             Granted as such  Refused     :1; :-1
//!    us, as the writer    Granted          Granted          Granted          Granted     :1
//!    no read-write lock   UnexpectedValue  UnexpectedValue  UnexpectedValue  as before   :-2
//!    a number ahead       as above         FenceAhead       as above         FenceAhead  :-3
//! ```
//!
//! A writer that asks for a number is answered that, in place of `:1`; one that does not is never answered `:-3`. An
//! extension that asks for a writer's hold is refused for one that is a reader's: it was sent before the downgrade. A
//! raise is such an extension, by no time and to a number. `:-4 - n` reports that the node refuses for n milliseconds
//! more. Calls take the lock in turn, by [`queue`](super::queue): what is granted is the same, where no entry is in
//! front that excludes it. Only a repair acquires, whichever calls wait.
//!
//! # Why a writer is alone
//!
//! 1. A client is inside its lease only while a quorum of nodes has an entry of it that has not ended: a node counts an
//!    entry's time from when it runs the command, which is after the client has begun to count, and clocks differ by no
//!    more than the drift that was taken off.
//! 2. Two quorums have a node in common. Let a writer and another client be inside at once. Some node then has granted
//!    both, and it has run one command after the other.
//! 3. If the writer came second, the entry of the other one was there and had not ended: the node refuses. If the
//!    writer came first, its entry was there and had not ended: the node refuses a reader and a writer alike.
//! 4. An entry that is there is changed by commands with its own token alone. An extension acts on an entry that has
//!    not ended, and never on one that is gone: a node that has granted a writer since has no entry of ours. It makes
//!    no entry shorter, so one that arrives late takes nothing away. It makes no reader a writer, so an entry that
//!    others were let in beside stays a reader's.
//! 5. A downgraded writer counts as a reader from when it asks for that. A node that has not done it yet has a writer's
//!    entry, which refuses more.
//! 6. A node that has lost its entries does not vote until the leases that it knew have ended (rule 7.4).
//!
//! `tests/models/shared` searches all states of two readers and two writers on three nodes, and finds a trace against
//! each weaker rule: one time to live for all readers, a node that ignores readers or a writer, an extension of what
//! has ended or of what was downgraded, and votes after a loss.
//!
//! # Why the numbers of writers grow
//!
//! As those of fenced locks, by the same exchange and the same proof: [`fence`](crate::algorithm::fence). That asks for
//! two things of a node.
//!
//! 1. Its number never falls while the key lasts: readers, writers without a number, releases and downgrades write it
//!    as it stands. What is not kept any more, or was lost, the floor makes up for.
//! 2. While it has a writer's entry of ours, no other client changes the number. A number is given out together with an
//!    entry, which no node grants beside ours. A raise asks for its own writer's entry. So before a node gives a number
//!    to the next writer, our entry has gone, or is a reader's that will have gone by then: from there on no raise of
//!    ours is run. Readers in between change nothing in that.

#[cfg(test)]
mod tests;
