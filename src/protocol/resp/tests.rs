//! Tests of the RESP2 codec: tables of bytes, cut at every byte. `fuzz/bodies` has any bytes.

use super::*;

#[test]
fn encodes_arrays_of_bulk_strings() {
    let mut out = Vec::new();
    encode(&mut out, &[b"SET", b"k\r\n", b""]);
    assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
}

#[test]
fn writes_every_magnitude_in_decimal() {
    for number in [0, 9, 10, 99, 12_345, u64::MAX] {
        assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
    }
}

#[test]
fn decodes_every_type_split_at_every_byte() {
    let replies: [(&[u8], &str); 11] = [
        (b"+OK\r\n", "Simple(2 bytes)"),
        (b"+\r\n", "Simple(0 bytes)"),
        (b"-ERR no\r\n", "Error(6 bytes)"),
        (b":-42\r\n", "Integer(-42)"),
        (
            b":-9223372036854775808\r\n",
            "Integer(-9223372036854775808)",
        ),
        (b"$-1\r\n", "Bulk(null)"),
        (b"$0\r\n\r\n", "Bulk(0 bytes)"),
        (b"$5\r\na\r\nbc\r\n", "Bulk(5 bytes)"),
        (b"*-1\r\n", "Array(null)"),
        (b"*0\r\n", "Array(0 elements)"),
        (b"*3\r\n$1\r\nx\r\n:1\r\n$-1\r\n", "Array(3 elements)"),
    ];
    for (bytes, shown) in replies {
        for split in 0..bytes.len() {
            assert_eq!(
                decode(&bytes[..split]),
                Ok(None),
                "{shown} split at {split}"
            );
        }
        let followed = [bytes, b"+NEXT\r\n"].concat();
        let (reply, length) = decode(&followed).unwrap().unwrap();
        assert_eq!(
            (format!("{reply:?}").as_str(), length),
            (shown, bytes.len())
        );
    }
}

#[test]
fn reads_the_elements_of_arrays() {
    let bytes = b"*3\r\n$7\r\nmessage\r\n:7\r\n$-1\r\n:8\r\n";
    let Some((Reply::Array(Some(elements)), _)) = decode(bytes).unwrap() else {
        panic!()
    };
    let expected = [
        Reply::Bulk(Some(b"message")),
        Reply::Integer(7),
        Reply::Bulk(None),
    ];
    assert_eq!(elements.collect::<Vec<_>>(), expected);
}

#[test]
fn refuses_whatever_servers_do_not_send() {
    use ProtocolError::*;
    let long_line = [b"+".as_slice(), &vec![b'x'; MAX_LINE + 1]].concat();
    let cases: [(&[u8], ProtocolError); 29] = [
        (b"HTTP/1.1 400 Bad Request\r\n", UnknownType),
        (b"%1\r\n", UnknownType),
        (b"_\r\n", UnknownType),
        (b"\r\n", UnknownType),
        (b":1x\r\n", BadNumber),
        (b":\r\n", BadNumber),
        (b":-\r\n", BadNumber),
        (b":+1\r\n", BadNumber),
        (b":01\r\n", BadNumber),
        (b":-0\r\n", BadNumber),
        (b": 1\r\n", BadNumber),
        (b":9223372036854775808\r\n", BadNumber),
        (b":-9223372036854775809\r\n", BadNumber),
        (b"$-2\r\n", BadNumber),
        (b"$1048577\r\n", BulkTooLong),
        (b"$99999999999999999999\r\n", BadNumber),
        (b"*65\r\n", ArrayTooLong),
        (b"*-2\r\n", BadNumber),
        (b":123456789012345678901", BadNumber),
        (b"*1\r\n*", TooDeep),
        (b"*2\r\n:1\r\n+OK\r\n", UnexpectedReply),
        (b"*1\r\n-ERR no\r\n", UnexpectedReply),
        (b"+OK\n", MissingCrlf),
        (b"+OK\rx", MissingCrlf),
        (b"+O\nK\r\n", MissingCrlf),
        (b"$2\r\nabc", MissingCrlf),
        (b"$2\r\nab\rx", MissingCrlf),
        (b"*1\r\n?\r\n", UnknownType),
        (&long_line, LineTooLong),
    ];
    for (bytes, error) in cases {
        assert_eq!(
            decode(bytes),
            Err(error),
            "{}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(30)])
        );
    }
}

#[test]
fn limits_do_not_multiply() {
    let mut bytes = b"*64\r\n".to_vec();
    for _ in 0..3 {
        bytes.extend_from_slice(format!("${MAX_BULK}\r\n").as_bytes());
        bytes.resize(bytes.len() + MAX_BULK, b'x');
        bytes.extend_from_slice(b"\r\n");
    }
    assert_eq!(decode(&bytes), Err(ProtocolError::ReplyTooLong));
}

#[test]
fn accepts_exactly_what_the_limits_allow() {
    let line = [b"+".as_slice(), &vec![b'x'; MAX_LINE], b"\r\n"].concat();
    assert!(decode(&line).unwrap().is_some());
    let bulk = [
        format!("${MAX_BULK}\r\n").as_bytes(),
        &vec![b'x'; MAX_BULK],
        b"\r\n",
    ]
    .concat();
    assert!(decode(&bulk).unwrap().is_some());
    let array = [b"*64\r\n".as_slice(), &b":1\r\n".repeat(64)].concat();
    assert!(decode(&array).unwrap().is_some());
}
