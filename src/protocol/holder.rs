//! Which holder has a key that an attempt was refused for.

use super::resp::{self, Reply};
use super::{error_reply, fenced};
use crate::algorithm::fault::Cause;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::protocol_error::ProtocolError;

/// Asks for the value of a key, as far as it tells one holder from another: `GETRANGE key 0 63`. Another program may
/// keep a long value there.
pub fn ask(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode(out, &[b"GETRANGE", key, b"0", b"63"]);
}

/// What [`ask`] brought: which holder has the key, and whether the node says so at all.
///
/// # Errors
/// A reply that `GETRANGE` never gives.
pub fn meaning(reply: Reply<'_>, is_fenced: bool) -> Result<(Option<HolderTag>, bool), ProtocolError> {
    match reply {
        Reply::Bulk(value) => {
            let token = value.and_then(|value| if is_fenced { fenced::token_of(value) } else { Some(value) });
            Ok((token.and_then(HolderTag::of), true))
        }
        Reply::Error(text) => Ok((None, error_reply::cause(text) != Cause::NoPermission)),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_by_the_value_of_its_key() {
        let mut out = Vec::new();
        ask(&mut out, b"k");
        assert_eq!(String::from_utf8(out).unwrap().replace("\r\n", " "), "*4 $8 GETRANGE $1 k $1 0 $2 63 ");
        let value = b"0123456789".as_slice();
        assert_eq!(meaning(Reply::Bulk(Some(value)), false), Ok((HolderTag::of(value), true)));
        assert_eq!(meaning(Reply::Bulk(Some(b"")), false), Ok((None, true)));
        assert_eq!(meaning(Reply::Error(b"WRONGTYPE not a string"), false), Ok((None, true)));
        assert_eq!(meaning(Reply::Error(b"NOPERM no"), true), Ok((None, false)), "it is not asked again");
        assert_eq!(meaning(Reply::Integer(1), true), Err(ProtocolError::UnexpectedReply));
    }

    #[test]
    fn a_holder_of_a_fenced_lock_is_told_by_its_token() {
        let told = |value: &str| meaning(Reply::Bulk(Some(value.as_bytes())), true).unwrap().0;
        let [one, other] = ["ab".repeat(16), "cd".repeat(16)];
        let holder = told(&format!("1700000000000000 1700000000000 {one}"));
        assert_eq!(holder, HolderTag::of(one.as_bytes()));
        assert_eq!(told(&format!("1700000000000009 1700000000777 {one}")), holder, "raised, extended");
        assert_eq!(told(&format!("1700000000000000 1700000000000 {one} label")), holder);
        assert_ne!(told(&format!("1700000000000000 1700000000000 {other}")), holder);
        for free in ["1700000000000000 0 ", "1700000000000000", ""] {
            assert_eq!(told(free), None, "{free}");
        }
    }
}
