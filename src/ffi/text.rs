//! Texts, as C has them: a pointer and a length.

use super::code::Code;
use super::failure::{Failure, Result};
use std::ffi::c_char;

/// Longest text that is read. Longer ones are mistakes, such as a negative length.
const LONGEST: usize = 1 << 20;
/// Most texts that are read at once. More are mistakes as well.
const MOST: usize = 1 << 12;

/// `quorumlock_str`: a text of the library's, or one of several that C keeps.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Str {
    data: *const c_char,
    length: usize,
}

impl Default for Str {
    fn default() -> Str {
        Str::of("")
    }
}

impl Str {
    /// Lasts as long as the text; the header states how long that is.
    pub(super) const fn of(text: &str) -> Str {
        Str {
            data: text.as_ptr().cast(),
            length: text.len(),
        }
    }
}

/// The pointer of a text that C keeps; its length is the next argument.
#[repr(transparent)]
pub(super) struct Bytes(*const c_char);

impl Bytes {
    /// The text, for the time of a call. It is looked at only if its length can be one.
    pub(super) fn text(&self, length: usize, argument: &str) -> Result<&str> {
        read(self.0, length, argument)
    }

    /// None for NULL.
    pub(super) fn optional_text(&self, length: usize, argument: &str) -> Result<Option<&str>> {
        if self.0.is_null() {
            return Ok(None);
        }
        self.text(length, argument).map(Some)
    }
}

/// A text that C keeps for the time of a call.
fn read<'t>(data: *const c_char, length: usize, argument: &str) -> Result<&'t str> {
    if data.is_null() {
        return Err(Failure::null(argument));
    }
    if length > LONGEST {
        return Err(Failure::new(
            Code::TooLong,
            format!("{argument} has {length} bytes, more than {LONGEST}"),
        ));
    }
    // SAFETY: The header demands that so many bytes can be read there, and that they do not change
    // during the call. They are no more than fit into an address space.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::new(Code::NotUtf8, format!("{argument} is not UTF-8")))
}

/// The pointer of texts that C keeps; their number is the next argument.
#[repr(transparent)]
pub(super) struct Texts(*const Str);

impl Texts {
    /// The texts, for the time of a call. They are looked at only if there can be so many.
    pub(super) fn texts(&self, count: usize, argument: &str) -> Result<Vec<&str>> {
        if self.0.is_null() {
            return Err(Failure::null(argument));
        }
        if count > MOST {
            return Err(Failure::new(
                Code::TooLong,
                format!("{argument} has {count} texts, more than {MOST}"),
            ));
        }
        // SAFETY: As in `Bytes::text`: the header demands that so many can be read there. `Str` is
        // laid out as there.
        let texts = unsafe { std::slice::from_raw_parts(self.0, count) };
        texts
            .iter()
            .map(|text| read(text.data, text.length, argument))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    fn text(bytes: &[u8], length: usize) -> Result<String> {
        Bytes(bytes.as_ptr().cast())
            .text(length, "name")
            .map(str::to_owned)
    }

    #[test]
    fn several_texts_are_read_where_there_can_be_so_many() {
        let texts = ["a", "", "b"].map(Str::of);
        let read = |count| {
            Texts(texts.as_ptr())
                .texts(count, "names")
                .map(|texts| texts.join("+"))
        };
        assert_eq!(read(3).unwrap(), "a++b");
        assert_eq!(read(0).unwrap(), "");
        assert_eq!(read(MOST + 1).unwrap_err().code, Code::TooLong);
        assert_eq!(
            Texts(null()).texts(0, "names").unwrap_err().message,
            "names is NULL"
        );
        let missing = Str {
            data: null(),
            length: 1,
        };
        assert_eq!(
            Texts(&raw const missing)
                .texts(1, "names")
                .unwrap_err()
                .code,
            Code::NullPointer
        );
    }

    #[test]
    fn a_text_is_its_bytes_and_nothing_else_is_read() {
        assert_eq!(text(b"abc", 2).unwrap(), "ab");
        assert_eq!(text(b"", 0).unwrap(), "");
        assert_eq!(text(b"a\0b", 3).unwrap(), "a\0b");
        assert_eq!(text(b"\xff", 1).unwrap_err().code, Code::NotUtf8);
        for length in [LONGEST + 1, usize::MAX, isize::MAX as usize] {
            assert_eq!(text(b"a", length).unwrap_err().code, Code::TooLong);
        }
        assert_eq!(
            Bytes(null()).text(0, "name").unwrap_err().message,
            "name is NULL"
        );
    }
}
