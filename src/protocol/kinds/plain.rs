//! A lock whose key holds its signature alone: a plain lock, and a slot of a semaphore.
//!
//! ```text
//!    value    TOKEN           40 digits
//!             TOKEN LABEL     1 to 64 visible ASCII characters
//! ```

use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::OwnerToken;

/// What names the holder in the value of a key: an owner token, and the label of its client.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Signature {
    /// 40 digits, which release the lock. Empty: no client holds it.
    pub token: Vec<u8>,
    /// Empty, or a space and the label.
    label: Vec<u8>,
}

impl Signature {
    /// What a plain lock has as its value. None for a value that this library does not write.
    pub fn parse(value: &[u8]) -> Option<Signature> {
        Signature::parse_any(value).filter(Signature::is_held)
    }

    /// The same for a key that also exists while no client holds the lock.
    pub(super) fn parse_any(text: &[u8]) -> Option<Signature> {
        let signature = Signature::split(text, text.iter().position(|&byte| byte == b' ').unwrap_or(text.len()));
        let is_token = !signature.is_held() || OwnerToken::from_digits(&signature.token).is_some();
        let is_label = match signature.label.split_first() {
            Some((_, label)) => HolderLabel::is_label(label),
            None => true,
        };
        (is_token && is_label).then_some(signature)
    }

    /// What a client signs with, as it sends that.
    pub fn of_request(text: &[u8]) -> Signature {
        Signature::split(text, text.len().min(OwnerToken::LENGTH))
    }

    fn split(text: &[u8], length: usize) -> Signature {
        let (token, label) = text.split_at(length);
        Signature { token: token.to_vec(), label: label.to_vec() }
    }

    /// Whether a client holds the lock.
    pub fn is_held(&self) -> bool {
        !self.token.is_empty()
    }

    /// The label of the holder.
    pub fn label(&self) -> HolderLabel {
        self.label.get(1..).and_then(HolderLabel::new).unwrap_or(HolderLabel::NONE)
    }

    /// The text, as it is stored.
    pub fn text(&self) -> Vec<u8> {
        [&self.token[..], &self.label].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_a_token_and_perhaps_a_label() {
        let token = "a7".repeat(20);
        let longest = "~".repeat(HolderLabel::LONGEST);
        for (text, label) in [
            (token.clone(), None),
            (format!("{token} host7"), Some("host7")),
            (format!("{token} {longest}"), Some(&*longest)),
        ] {
            let signature = Signature::parse(text.as_bytes()).unwrap();
            assert_eq!((&*signature.token, signature.label().as_str()), (token.as_bytes(), label));
            assert_eq!(signature.text(), text.as_bytes());
            assert!(Signature::of_request(text.as_bytes()) == signature);
        }
        let upper = token.to_uppercase();
        for text in ["", " host7", "locked", &upper, &token[1..], &format!("{token} "), &format!("{token} two words")] {
            assert!(Signature::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(Signature::parse(format!("{token} {longest}~").as_bytes()).is_none());
        assert!(Signature::parse(format!("{token}host7").as_bytes()).is_none());
    }
}
