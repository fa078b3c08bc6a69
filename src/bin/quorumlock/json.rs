//! JSON, as far as it is written here: objects of texts, numbers, truths and lists.

use crate::printable::is_printable;
use std::fmt::{Display, Formatter, Result};

/// An object, as its members in JSON.
pub(crate) struct Object(pub(crate) Vec<String>);

/// What is JSON as it is displayed. A text is not.
pub(crate) trait Value: Display {}

macro_rules! values {
    ($($kind:ty),*) => {
        $(impl Value for $kind {})*
    };
}

values!(
    bool, f64, i32, i128, u8, u16, u64, u128, usize, Json, Object
);

/// A value that is written as JSON already.
pub(crate) struct Json(pub(crate) String);

impl Display for Json {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.0)
    }
}

/// A member of an object.
pub(crate) fn member(name: &str, value: impl Value) -> Vec<String> {
    vec![format!("{}:{value}", quoted(name))]
}

/// An object of these members, in this order: `"name": value`, or `"name" = value` if the value is
/// a text. In place of `_: object` are the members of another object.
macro_rules! object {
    (@ _ : $other:expr) => { $other.0 };
    (@ $name:tt : $value:expr) => { crate::json::member($name, $value) };
    (@ $name:tt = $text:expr) => { crate::json::object!(@ $name : crate::json::quoted(&$text)) };
    ($($name:tt $is:tt $value:expr),* $(,)?) => {{
        let members: &[Vec<String>] = &[$(crate::json::object!(@ $name $is $value)),*];
        crate::json::Object(members.concat())
    }};
}

pub(crate) use object;

impl Display for Object {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{{{}}}", self.0.join(","))
    }
}

/// The value, or null.
pub(crate) fn maybe(value: Option<impl Value>) -> Json {
    Json(value.map_or("null".to_owned(), |value| value.to_string()))
}

/// A list of these values.
pub(crate) fn list(values: impl IntoIterator<Item = impl Value>) -> Json {
    let values = values.into_iter().map(|value| value.to_string());
    Json(format!("[{}]", Vec::from_iter(values).join(",")))
}

/// A text.
pub(crate) fn quoted(text: impl Display) -> Json {
    let mut out = String::from('"');
    for letter in text.to_string().chars() {
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
    Json(out + "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let empty = object! {};
        let object = object! {
            "a\"b" = "line\nend\u{1}\\\u{202e}é\u{e0001}",
            "n": 7,
            _: object! { "none": maybe(None::<u64>) },
            _: empty,
            "half": maybe(Some(0.5)),
            "l": list([quoted("x"), crate::json::Json(object! {}.to_string())]),
        };
        assert_eq!(
            object.to_string(),
            r#"{"a\"b":"line\nend\u0001\\\u202eé\udb40\udc01","n":7,"none":null,"half":0.5,"l":["x",{}]}"#
        );
    }
}
