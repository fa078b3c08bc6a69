//! Properties of the RESP2 codec: any bytes, cut wherever a network may cut them.

use proptest::prelude::*;
use quorumlock::fault::protocol_error::ProtocolError;
use quorumlock::protocol::resp::{
    Decoder, MAX_ARRAY, MAX_BULK, MAX_DEPTH, MAX_LINE, Reply, encode,
};

/// A reply that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Array(Option<Vec<Value>>),
    Bulk(Option<Vec<u8>>),
    Error(Vec<u8>),
    Integer(i64),
    Simple(Vec<u8>),
}

impl Value {
    fn of(reply: Reply<'_>) -> Value {
        match reply {
            Reply::Array(elements) => {
                Value::Array(elements.map(|elements| elements.map(Value::of).collect()))
            }
            Reply::Bulk(bytes) => Value::Bulk(bytes.map(<[u8]>::to_vec)),
            Reply::Error(text) => Value::Error(text.to_vec()),
            Reply::Integer(number) => Value::Integer(number),
            Reply::Simple(text) => Value::Simple(text.to_vec()),
        }
    }

    /// As a server writes it.
    fn bytes(&self) -> Vec<u8> {
        let line = |kind: u8, text: &[u8]| [&[kind], text, b"\r\n"].concat();
        match self {
            Value::Array(None) => line(b'*', b"-1"),
            Value::Array(Some(elements)) => {
                let header = line(b'*', elements.len().to_string().as_bytes());
                header
                    .into_iter()
                    .chain(elements.iter().flat_map(Value::bytes))
                    .collect()
            }
            Value::Bulk(None) => line(b'$', b"-1"),
            Value::Bulk(Some(bytes)) => [
                &line(b'$', bytes.len().to_string().as_bytes())[..],
                bytes,
                b"\r\n",
            ]
            .concat(),
            Value::Error(text) => line(b'-', text),
            Value::Integer(number) => line(b':', number.to_string().as_bytes()),
            Value::Simple(text) => line(b'+', text),
        }
    }
}

/// Replies within the limits, of every type and depth.
fn value() -> impl Strategy<Value = Value> {
    let text = || {
        prop::collection::vec(
            any::<u8>().prop_filter("no line end", |byte| !b"\r\n".contains(byte)),
            0..40,
        )
    };
    let scalar = prop_oneof![
        prop::option::of(prop::collection::vec(any::<u8>(), 0..200)).prop_map(Value::Bulk),
        text().prop_map(Value::Error),
        prop_oneof![any::<i64>(), -10..10_i64].prop_map(Value::Integer),
        text().prop_map(Value::Simple),
    ];
    scalar.prop_recursive(MAX_DEPTH as u32 - 1, 60, 8, |element| {
        prop::option::of(prop::collection::vec(element, 0..8)).prop_map(Value::Array)
    })
}

/// All that a decoder returns for bytes that arrive in pieces: each reply with its length, and why
/// it stopped, if it did.
fn told(bytes: &[u8], ends: &[usize]) -> (Vec<(Value, usize)>, Option<ProtocolError>) {
    let mut decoder = Decoder::default();
    let mut start = 0;
    let mut replies = Vec::new();
    for &end in ends
        .iter()
        .filter(|end| **end < bytes.len())
        .chain([&bytes.len()])
    {
        loop {
            match decoder.decode(&bytes[start..end]) {
                Ok(None) => break,
                Ok(Some((reply, length))) => {
                    assert!(
                        (1..=end - start).contains(&length),
                        "{length} bytes of {}",
                        end - start
                    );
                    replies.push((Value::of(reply), length));
                    start += length;
                }
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

/// Any byte, often one that means something.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        any::<u8>(),
        prop::sample::select(&b"+-:$*\r\n0123456789"[..])
    ]
}

fn ends() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..400_usize, 0..30).prop_map(|mut ends| {
        ends.sort_unstable();
        ends
    })
}

proptest! {
    /// What was written comes back, one after the other, however it is cut, and nothing beyond it
    /// is looked at.
    #[test]
    fn replies_come_back_as_they_were(
        values in prop::collection::vec(value(), 1..4),
        ends in ends(),
        noise in any::<Vec<u8>>(),
    ) {
        let expected: Vec<_> = values.iter().map(|value| (value.clone(), value.bytes().len())).collect();
        let bytes: Vec<u8> = values.iter().flat_map(Value::bytes).collect();
        prop_assert_eq!(&told(&bytes, &ends), &(expected.clone(), None));
        let (replies, _) = told(&[&bytes[..], &noise].concat(), &ends);
        prop_assert_eq!(&replies[..expected.len()], &expected[..]);
        // All but the last byte is not enough for the last reply.
        let (replies, error) = told(&bytes[..bytes.len() - 1], &ends);
        prop_assert_eq!((replies.len(), error), (expected.len() - 1, None));
    }

    /// A command is an array of bulk strings, with any bytes in them.
    #[test]
    fn commands_are_what_they_were_made_of(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..150), 0..MAX_ARRAY),
    ) {
        let mut out = b"before".to_vec();
        encode(&mut out, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let value = Value::Array(Some(arguments.into_iter().map(|argument| Value::Bulk(Some(argument))).collect()));
        prop_assert_eq!(&out, &[b"before".to_vec(), value.bytes()].concat());
        prop_assert_eq!(told(&out[6..], &[]), (vec![(value, out.len() - 6)], None));
    }

    /// Bytes that are no reply, or one with a few of its bytes changed, mean the same however they
    /// are cut; what is accepted of them is written in the only way there is.
    #[test]
    fn no_bytes_surprise_it(
        values in prop::collection::vec(value(), 0..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), byte()), 0..6),
        noise in any::<Vec<u8>>(),
        ends in ends(),
    ) {
        let mut bytes = [values.iter().flat_map(Value::bytes).collect(), noise].concat();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let whole = told(&bytes, &[]);
        prop_assert_eq!(&told(&bytes, &ends), &whole);
        prop_assert_eq!(&told(&bytes, &(0..bytes.len()).collect::<Vec<_>>()), &whole);
        let written: Vec<u8> = whole.0.iter().flat_map(|(value, _)| value.bytes()).collect();
        prop_assert!(bytes.starts_with(&written));
    }
}

proptest! {
    // Megabytes each.
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Each limit allows its number and nothing more, for lines, strings and arrays near it.
    #[test]
    fn limits_are_where_they_say(more in 0..4_usize, cut in any::<prop::sample::Index>()) {
        let near = |limit: usize| limit - 2 + more;
        let cases = [
            (Value::Simple(vec![b'x'; near(MAX_LINE)]), ProtocolError::LineTooLong),
            (Value::Error(vec![b'x'; near(MAX_LINE)]), ProtocolError::LineTooLong),
            (Value::Bulk(Some(vec![b'x'; near(MAX_BULK)])), ProtocolError::BulkTooLong),
            (Value::Array(Some(vec![Value::Integer(1); near(MAX_ARRAY)])), ProtocolError::ArrayTooLong),
        ];
        for (value, error) in cases {
            let bytes = value.bytes();
            let (replies, found) = told(&bytes, &[cut.index(bytes.len())]);
            prop_assert_eq!((replies.len(), found), if more <= 2 { (1, None) } else { (0, Some(error)) });
        }
        let nested = (0..near(MAX_DEPTH)).fold(Value::Integer(1), |value, _| Value::Array(Some(vec![value])));
        let found = told(&nested.bytes(), &[]).1;
        prop_assert_eq!(found, (near(MAX_DEPTH) >= MAX_DEPTH).then_some(ProtocolError::TooDeep));
    }
}
