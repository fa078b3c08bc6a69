//! Disturbs the messages that subscribers receive, and leaves all other replies as they are.

use super::{Direction, Shared, Wire, spawn, write_all};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// What a message begins with that is delivered to a subscriber.
const BEGIN: &[u8] = b"*3\r\n$7\r\nmessage\r\n";

/// What becomes of each message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disturbance {
    /// It does not arrive.
    Drop,
    /// It arrives so much later.
    Delay(Duration),
    /// It arrives twice.
    Repeat,
    /// Each second one arrives so much later, behind those that follow it.
    Reorder(Duration),
}

/// Takes out the messages that do not arrive now, and sees to it that they do later. Returns the
/// rest, if that is less. A message is short and is read whole.
pub(super) fn take_out(
    wire: &Arc<Wire>,
    direction: Direction,
    bytes: &[u8],
    shared: &Shared,
) -> Option<Vec<u8>> {
    let disturbance = shared
        .state()
        .disturbance
        .filter(|_| direction == Direction::ToClient)?;
    let mut rest = Vec::new();
    for (is_message, part) in parts(bytes) {
        let (times, late) = match disturbance {
            _ if !is_message => (1, None),
            Disturbance::Drop => (0, None),
            Disturbance::Delay(delay) => (0, Some(delay)),
            Disturbance::Repeat => (2, None),
            Disturbance::Reorder(delay) if shared.state().disturbed.is_multiple_of(2) => {
                (0, Some(delay))
            }
            Disturbance::Reorder(_) => (1, None),
        };
        shared.state().disturbed += usize::from(is_message);
        (0..times).for_each(|_| rest.extend_from_slice(part));
        if let Some(delay) = late {
            deliver_late(Arc::clone(wire), delay, part.to_vec());
        }
    }
    Some(rest)
}

fn deliver_late(wire: Arc<Wire>, delay: Duration, bytes: Vec<u8>) {
    spawn("late message", move || {
        thread::sleep(delay);
        let _writing = wire.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that has ended meanwhile gets nothing.
        let _ = write_all(&mut &wire.client, &bytes, &wire);
    });
}

/// Each message, and what lies between them.
fn parts(bytes: &[u8]) -> Vec<(bool, &[u8])> {
    let mut begins: Vec<usize> = bytes
        .windows(BEGIN.len())
        .enumerate()
        .filter(|(_, text)| *text == BEGIN)
        .map(|(at, _)| at)
        .collect();
    begins.push(bytes.len());
    let before = (false, &bytes[..begins[0]]);
    let messages = begins.windows(2).flat_map(|ends| {
        let (message, other) = bytes[ends[0]..ends[1]].split_at(length(&bytes[ends[0]..ends[1]]));
        [(true, message), (false, other)]
    });
    [before]
        .into_iter()
        .chain(messages)
        .filter(|(_, part)| !part.is_empty())
        .collect()
}

/// How long a message is: seven lines.
fn length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(6)
        .map_or(bytes.len(), |(at, _)| at + 1)
}

#[test]
fn messages_are_told_apart_from_other_replies() {
    let message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n";
    let other = b":1\r\n";
    let bytes = [other.as_slice(), message, message, other].concat();
    let expected: Vec<(bool, &[u8])> = vec![
        (false, other),
        (true, message),
        (true, message),
        (false, other),
    ];
    assert_eq!(parts(&bytes), expected);
    assert_eq!(parts(other), [(false, other.as_slice())]);
}
