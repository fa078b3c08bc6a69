//! What arrives on the channel of a client: from a server that may send anything, and from programs
//! that may publish anything there.
//!
//! Input: whether there is a password, [`Cuts`], then what arrives until the bytes are used up.
//! Rules:
//! 1. In pieces, it means what it means in one piece: the same events, then the same error or none.
//! 2. No message counts before the subscription is confirmed, which happens once.
//! 3. A message is for a call of this client. Written as a script writes it, it means the same
//!    again.
//! 4. A message that names no call is ignored, and ends no connection.

use super::{Cuts, Input};
use quorumlock::algorithm::queue::Message;
use quorumlock::algorithm::time::Timestamp;
use quorumlock::fault::protocol_error::ProtocolError;
use quorumlock::protocol::credentials::Credentials;
use quorumlock::protocol::subscription::{Notice, Subscription, SubscriptionEvent};

const CLIENT: u64 = 0xab;
const CONFIRMED: &str = "*3\r\n$9\r\nsubscribe\r\n$27\r\nquorumlock:00000000000000ab\r\n:1\r\n";
/// What servers send in addition to messages.
const REPLIES: [&str; 6] = [
    "+OK\r\n",
    "-NOPERM this user has no permissions to run the 'subscribe' command\r\n",
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
    "*3\r\n$9\r\nsubscribe\r\n$27\r\nquorumlock:00000000000000cd\r\n:1\r\n",
    "*3\r\n$7\r\nmessage\r\n$7\r\nanother\r\n$2\r\nm7\r\n",
    ":1\r\n",
];
/// What is published, in the words of the scripts.
const TEXTS: [&str; 8] = [
    "m7 orders/42",
    "?f8 a b",
    "s3:9 pool#2",
    "?s256:9 pool#",
    "r1 k",
    "w2 ",
    ". k",
    "m07 k",
];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let has_password = input.byte() % 2 == 1;
    let mut cuts = Cuts::read(&mut input);
    let mut bytes = Vec::new();
    while !input.is_empty() {
        let choice = input.byte();
        let how = usize::from(choice / 8);
        match choice % 8 {
            0 | 1 => bytes.extend(CONFIRMED.bytes()),
            2 | 3 => bytes.extend(message(TEXTS[how % TEXTS.len()].as_bytes())),
            4 | 5 => bytes.extend(message(input.take(how))),
            6 => bytes.extend(REPLIES[how % REPLIES.len()].bytes()),
            _ => bytes.extend(input.take(how)),
        }
    }
    let whole = feed(opened(has_password), &bytes, |left| left);
    let pieces = feed(opened(has_password), &bytes, |left| cuts.piece(left));
    assert_eq!(whole, pieces, "the meaning depends on the cuts");
    for event in &whole.0 {
        if let SubscriptionEvent::Received(notice) = event {
            check(notice);
        }
    }
    // Whatever is published there.
    let published: Vec<u8> = [
        CONFIRMED.as_bytes(),
        &message(&bytes[..bytes.len().min(1000)]),
    ]
    .concat();
    assert_eq!(
        feed(opened(false), &published, |left| left).1,
        Ok(()),
        "a message ends the connection"
    );
}

fn opened(has_password: bool) -> Subscription {
    let credentials = has_password.then(|| Credentials::new("hunter2"));
    Subscription::open(credentials.as_ref(), CLIENT, Timestamp::ORIGIN)
}

/// A message on the client's channel.
fn message(text: &[u8]) -> Vec<u8> {
    let head = format!(
        "*3\r\n$7\r\nmessage\r\n$27\r\nquorumlock:{CLIENT:016x}\r\n${}\r\n",
        text.len()
    );
    [head.as_bytes(), text, b"\r\n"].concat()
}

/// What the bytes amount to, up to a refusal, an error or their end.
fn feed(
    mut subscription: Subscription,
    mut bytes: &[u8],
    mut piece: impl FnMut(usize) -> usize,
) -> (Vec<SubscriptionEvent>, Result<(), ProtocolError>) {
    let mut events = Vec::new();
    loop {
        loop {
            match subscription.next_event() {
                Err(error) => return (events, Err(error)),
                Ok(None) => break,
                Ok(Some(event)) => {
                    let was_live = events.contains(&SubscriptionEvent::Confirmed);
                    match event {
                        SubscriptionEvent::Confirmed => assert!(!was_live, "confirmed twice"),
                        SubscriptionEvent::Received(_) => {
                            assert!(was_live, "a message before it is confirmed")
                        }
                        SubscriptionEvent::Refused(_) => {
                            assert!(!was_live, "refused after it was confirmed")
                        }
                    }
                    let is_refused = matches!(event, SubscriptionEvent::Refused(_));
                    events.push(event);
                    assert_eq!(
                        subscription.is_live(),
                        events.contains(&SubscriptionEvent::Confirmed)
                    );
                    if is_refused {
                        return (events, Ok(()));
                    }
                }
            }
        }
        if bytes.is_empty() {
            return (events, Ok(()));
        }
        let space = subscription.incoming.space();
        assert!(!space.is_empty(), "no space to read to");
        let count = piece(bytes.len()).min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        bytes = &bytes[count..];
        subscription.incoming.received(count);
    }
}

/// Writes the message as a script does, and reads it again.
fn check(notice: &Notice) {
    assert_eq!(notice.entry.client, CLIENT);
    let mark: &[u8] = if notice.message == Message::Next {
        b"?"
    } else {
        b""
    };
    let member = notice.entry.member();
    let text = [mark, &member.text()[16..], b" ", notice.key.as_bytes()].concat();
    let again = feed(
        opened(false),
        &[CONFIRMED.as_bytes(), &message(&text)].concat(),
        |left| left,
    );
    assert_eq!(
        again,
        (
            vec![
                SubscriptionEvent::Confirmed,
                SubscriptionEvent::Received(notice.clone())
            ],
            Ok(())
        )
    );
}
