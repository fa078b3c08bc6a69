//! Text of servers, keys and names, as it is written: what a terminal acts on is an escape.

/// The text with an escape in place of each character that does not print: `\n`, `\u{1b}`. A
/// control character acts on the terminal, and a mark of direction changes the order in which the
/// line is read.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_printable(letter) {
            out.push(letter);
        } else {
            out.extend(letter.escape_debug());
        }
    }
    out
}

/// Whether a character prints, and does nothing else.
pub(crate) fn is_printable(letter: char) -> bool {
    match letter.is_ascii() {
        true => !letter.is_ascii_control(),
        // Behind a letter, because a mark that combines with one prints there.
        false => format!("a{letter}").escape_debug().nth(1) == Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_print_is_an_escape() {
        let table = [
            ("orders/42 \"a\\b\" 'c'", "orders/42 \"a\\b\" 'c'"),
            ("é e\u{301} हिन्दी 鍵 🔒", "é e\u{301} हिन्दी 鍵 🔒"),
            ("a\x1b[2J\r\n\t\x07\x7f", r"a\u{1b}[2J\r\n\t\u{7}\u{7f}"),
            (
                "\u{9b}31m \u{202e} \u{2066} \u{200b} \u{feff} \u{2028}",
                r"\u{9b}31m \u{202e} \u{2066} \u{200b} \u{feff} \u{2028}",
            ),
        ];
        for (text, shown) in table {
            assert_eq!(printable(text), shown);
        }
    }
}
