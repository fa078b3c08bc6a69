//! JSON, as far as it is written here: objects of texts, numbers, truths and lists.

use crate::printable::is_printable;
use std::fmt::{Display, Write};

/// An object in the making.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Object {
        Object(String::new())
    }

    /// A member whose value is JSON already, or a number or a truth.
    pub(crate) fn raw(mut self, name: &str, value: impl Display) -> Object {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a String does not fail.
        let _ = write!(self.0, "{comma}{}:{value}", quoted(name));
        self
    }

    pub(crate) fn text(self, name: &str, value: impl Display) -> Object {
        self.raw(name, quoted(&value.to_string()))
    }

    /// A text or null.
    pub(crate) fn maybe(self, name: &str, value: Option<impl Display>) -> Object {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    /// A number, a truth or null.
    pub(crate) fn maybe_raw(self, name: &str, value: Option<impl Display>) -> Object {
        match value {
            Some(value) => self.raw(name, value),
            None => self.raw(name, "null"),
        }
    }

    /// With the members of another one behind its own.
    pub(crate) fn and(mut self, other: Object) -> Object {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&other.0);
        self
    }

    pub(crate) fn list(self, name: &str, values: impl IntoIterator<Item = String>) -> Object {
        self.raw(name, list(values))
    }
}

impl Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}

/// A list of values that are JSON already.
pub(crate) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            _ if is_printable(letter) => out.push(letter),
            _ => letter
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let object = Object::new()
            .text("a\"b", "line\nend\u{1}\\\u{202e}é\u{e0001}")
            .raw("n", 7)
            .maybe("none", None::<&str>)
            .maybe_raw("half", Some(0.5))
            .list("l", [quoted("x"), Object::new().to_string()]);
        assert_eq!(
            object.to_string(),
            r#"{"a\"b":"line\nend\u0001\\\u202eé\udb40\udc01","n":7,"none":null,"half":0.5,"l":["x",{}]}"#
        );
    }
}
