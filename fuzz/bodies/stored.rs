//! Any value, and any key, on a node: other programs write there too.
//!
//! Input: how much of it is the key; the key; the value. Rules:
//! 1. Reading never panics.
//! 2. A key is the key of one lock at most: written from its kind and its name, it is the same.
//! 3. What is read of a value, written as the nodes store it, is read as the same again.
//! 4. Each holder that is read has a token, and its label may be shown.
//! 5. A note that a node is taken to have written is within its limits. All other values are
//!    damage, and none ends the connection.

use super::Input;
use quorumlock::algorithm::incarnation::run_id::{ReplicationIds, RunId};
use quorumlock::algorithm::incarnation::{Found, Incarnation, LONGEST_MAX_TTL};
use quorumlock::algorithm::label::HolderLabel;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::protocol::key_space;
use quorumlock::protocol::kinds::KEYS;
use quorumlock::protocol::kinds::fenced::FencedValue;
use quorumlock::protocol::kinds::plain::Signature;
use quorumlock::protocol::kinds::read_write::ReadWriteValue;
use quorumlock::protocol::node_note::NodeLook;
use quorumlock::protocol::resp::{self, Reply};

const TIME: &[u8] = b"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let length = usize::from(input.byte());
    check_key(&String::from_utf8_lossy(input.take(length)), length / 2);
    let value = input.rest();
    check_holders(value);
    check_texts(value);
    check_note(value);
}

fn check_key(key: &str, prefix: usize) {
    if let Some((kind, name)) = key_space::lock(key) {
        assert_eq!(kind.key("", name), key);
    }
    let _ = key_space::name(key, prefix);
    let semaphore = key_space::semaphore_of_slot(key);
    if let Some(slot) = key_space::slot(key.as_bytes()) {
        let number = key.strip_prefix(semaphore.unwrap()).unwrap();
        assert_eq!(number[1..].parse(), Ok(slot));
    }
}

fn check_holders(value: &[u8]) {
    for kind in KEYS {
        let Some(lock) = (kind.parse)(value) else {
            continue;
        };
        for hold in &lock.holds {
            let token = hold.signature.get(..OwnerToken::LENGTH);
            assert!(token.and_then(OwnerToken::from_digits).is_some());
        }
        let label = lock.label.as_bytes();
        assert!(label.is_empty() || HolderLabel::is_label(label));
    }
}

fn check_texts(value: &[u8]) {
    if let Some(plain) = Signature::parse(value) {
        assert_eq!(plain.text(), value);
    }
    if let Some(fenced) = FencedValue::parse(value) {
        assert_eq!(fenced.text(), value);
    }
    if let Some(read_write) = ReadWriteValue::parse(value) {
        let text = read_write.text();
        // Nothing is stored then.
        let again = ReadWriteValue::parse(&text).unwrap_or_default();
        assert!(again == read_write, "{}", text.escape_ascii());
    }
}

fn check_note(value: &[u8]) {
    let mut look = NodeLook::default();
    look.learn_value(Reply::Bulk(Some(value))).unwrap();
    let (time, _) = resp::decode(TIME).unwrap().unwrap();
    look.learn_time(time).unwrap();
    let present = Incarnation {
        run_id: RunId::new(&[b'1'; 40]).unwrap(),
        replication: ReplicationIds::new(&[b'2'; 40], &[b'0'; 40]).unwrap(),
    };
    let seen = look.seen(Some(present), 0);
    let seen = seen.look().unwrap();
    assert!(seen.continues(seen) || !present.is_still(&present));
    match seen.found {
        Found::Damage => {}
        Found::Note(note) => assert!(note.max_ttl <= LONGEST_MAX_TTL),
        Found::Nothing => panic!("a value is no absence"),
    }
}
