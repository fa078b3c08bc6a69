//! Reads Rust text just well enough for the house rules: what is code in it, and which modules its
//! paths lead to.
//!
//! Three steps. [`code`] blanks comments, strings and characters, so that a rule sees only what the
//! compiler acts on. [`without_tests`] blanks what is under `#[cfg(test)]` as well. [`paths`] lists
//! the module paths that the code names, both in `use` and in the middle of an expression. Line
//! breaks survive, so that lines keep their numbers.
//!
//! This is no parser: macros are read as they are written, and a path that a macro puts together is
//! not seen.

use std::ops::Range;

/// The text with comments, strings and character literals blanked.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = literal_length(rest, out.chars().next_back());
        let (taken, later) = rest.split_at(length.unwrap_or(first.len_utf8()));
        match length {
            Some(_) => blank(&mut out, taken),
            None => out.push(first),
        }
        rest = later;
    }
    out
}

/// Code with every item under `#[cfg(test)]` blanked, and where those items are.
pub(crate) fn without_tests(code: &str) -> (String, Vec<Range<usize>>) {
    let mut out = String::with_capacity(code.len());
    let mut items = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let attribute = &from[..from.find(']').map_or(from.len(), |end| end + 1)];
        let words = tokens(attribute);
        let otherwise =
            words.contains(&"any") || words.windows(3).any(|three| three == ["not", "(", "test"]);
        if words.contains(&"test") && !otherwise {
            let item = &from[..attribute.len() + item_length(&from[attribute.len()..])];
            items.push(out.len()..out.len() + item.len());
            blank(&mut out, item);
            rest = &from[item.len()..];
        } else {
            out.push_str(attribute);
            rest = &from[attribute.len()..];
        }
    }
    out.push_str(rest);
    (out, items)
}

/// The modules in other files that a file declares for tests only: each name, and the `#[path]` if
/// it has one.
pub(crate) fn test_modules(text: &str) -> Vec<(String, Option<String>)> {
    let code = code(text);
    let items = without_tests(&code).1.into_iter();
    items
        .filter_map(|item| {
            let [.., "mod", name, ";"] = tokens(&code[item.clone()])[..] else {
                return None;
            };
            let path = text[item]
                .split_once("#[path = \"")
                .and_then(|(_, path)| path.split_once('"'));
            Some((name.to_owned(), path.map(|(path, _)| path.to_owned())))
        })
        .collect()
}

/// The words and signs of some code, in order. `::` is one sign.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, later) = rest.split_at(length);
        tokens.push(token);
        rest = later.trim_start();
    }
    tokens
}

/// A path as the code names it, and the name that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// From the crate's root: `crate::engine::node_connection` in any file, `super::link` in
    /// `net/engine.rs`, both as `net, link`.
    pub(crate) path: Vec<String>,
    /// The name that a `use` assigns to it, for following re-exports. `*` for all that is there.
    pub(crate) alias: Option<String>,
}

/// The paths into the crate that the code of `module` names. `children` are the modules right below
/// it.
pub(crate) fn paths(code: &str, module: &[String], children: &[String]) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    // The inline modules around the place that is read, each with the depth of its braces.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        let here = || {
            module
                .iter()
                .cloned()
                .chain(inline.iter().map(|(name, _)| name.clone()))
                .collect::<Vec<_>>()
        };
        let before = if at == 0 { "" } else { tokens[at - 1] };
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|&(_, around)| around <= depth);
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => {
                depth += 1;
                inline.push((tokens[at + 1].to_owned(), depth));
                at += 2;
            }
            // `use<'a>` in a return type captures lifetimes and imports nothing.
            "use" if tokens.get(at + 1) != Some(&"<") => {
                let (leaves, end) = use_tree(&tokens, at + 1);
                let local = if inline.is_empty() { children } else { &[] };
                for (leaf, alias) in leaves {
                    found.extend(resolve(&leaf, &here(), local).map(|path| Named {
                        path,
                        alias: Some(alias),
                    }));
                }
                at = end;
            }
            // `pub(in crate::engine)` states where an item may be seen, not what the item needs.
            "in" if before == "(" => {
                while at + 1 < tokens.len() && tokens[at + 1] != ")" {
                    at += 1;
                }
            }
            first if tokens.get(at + 1) == Some(&"::") && !["::", "."].contains(&before) => {
                let mut leaf = vec![first];
                while tokens.get(at + 1) == Some(&"::")
                    && tokens.get(at + 2).is_some_and(|next| is_name(next))
                {
                    leaf.push(tokens[at + 2]);
                    at += 2;
                }
                let local = if inline.is_empty() { children } else { &[] };
                found
                    .extend(resolve(&leaf, &here(), local).map(|path| Named { path, alias: None }));
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The paths that the code imports, as they are written. For other crates, whose modules have no
/// files here.
pub(crate) fn imports(code: &str) -> Vec<Vec<&str>> {
    let tokens = tokens(code);
    let starts =
        (0..tokens.len()).filter(|&at| tokens[at] == "use" && tokens.get(at + 1) != Some(&"<"));
    starts
        .flat_map(|at| use_tree(&tokens, at + 1).0)
        .map(|(leaf, _)| leaf)
        .collect()
}

/// The leaves of a use tree that begins at a token, each with the name it gets, and the place of
/// its semicolon.
fn use_tree<'a>(tokens: &[&'a str], start: usize) -> (Vec<(Vec<&'a str>, String)>, usize) {
    let mut leaves = Vec::new();
    let mut prefixes: Vec<Vec<&str>> = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    let mut alias = None;
    let mut at = start;
    loop {
        let token = tokens.get(at).copied().unwrap_or(";");
        match token {
            "," | "}" | ";" => {
                if let Some(&last) = path.last() {
                    if last == "self" && path.len() > 1 {
                        path.pop();
                    }
                    let name = alias.take().or(path.last().copied()).unwrap_or(last);
                    leaves.push((path, name.to_owned()));
                }
                if token == "}" {
                    prefixes.pop();
                }
                // After a brace the leaf is done: what follows is a comma, another brace or the
                // semicolon.
                path = if token == "}" {
                    Vec::new()
                } else {
                    prefixes.last().cloned().unwrap_or_default()
                };
                if token == ";" {
                    return (leaves, at);
                }
                // A prefix alone is no leaf: `{a, }`.
                if matches!(tokens.get(at + 1), Some(&"}")) {
                    path = Vec::new();
                }
            }
            "{" => {
                prefixes.push(path.clone());
                if tokens.get(at + 1) == Some(&"}") {
                    path = Vec::new();
                }
            }
            "as" => {
                alias = tokens.get(at + 1).copied();
                at += 1;
            }
            "::" => {}
            word => path.push(word),
        }
        at += 1;
    }
}

/// A path as it is written in the module `here`, from the crate's root; `None` when it leads to
/// another crate.
fn resolve(leaf: &[&str], here: &[String], children: &[String]) -> Option<Vec<String>> {
    let (mut base, mut rest) = match *leaf.first()? {
        "crate" => (root_of(here), &leaf[1..]),
        "self" | "super" => (here.to_vec(), leaf),
        child if children.iter().any(|known| known == child) => (here.to_vec(), leaf),
        _ => return None,
    };
    while let [first @ ("self" | "super"), later @ ..] = rest {
        if *first == "super" {
            base.pop();
        }
        rest = later;
    }
    base.extend(
        rest.iter()
            .map(|&name| name.trim_start_matches("r#").to_owned()),
    );
    Some(base)
}

/// The root of the crate that a module is in: a program below `bin/` is one of its own.
fn root_of(here: &[String]) -> Vec<String> {
    if here.first().is_some_and(|top| top == "bin") {
        here[..here.len().min(2)].to_vec()
    } else {
        Vec::new()
    }
}

/// The length of the comment, string or character that the text begins with.
fn literal_length(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment_length(text));
    }
    // A prefix belongs to a string only where no longer word ends.
    let prefix = if before.is_some_and(is_word) {
        0
    } else {
        text.find(|c| !"bcr".contains(c)).unwrap_or(0)
    };
    let (prefix, rest) = text.split_at(if prefix > 2 { 0 } else { prefix });
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        if rest[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[hashes + 1..]
                .find(&end)
                .map_or(rest.len(), |at| hashes + 1 + at + end.len());
            return Some(prefix.len() + length);
        }
        return None;
    }
    if rest.starts_with('"') {
        return Some(prefix.len() + quoted_length(rest, '"'));
    }
    // A lifetime is an apostrophe too, but has no second one after its first letter.
    let mut letters = rest.chars().skip(1);
    let is_character =
        rest.starts_with('\'') && (letters.next() == Some('\\') || letters.next() == Some('\''));
    is_character.then(|| prefix.len() + quoted_length(rest, '\''))
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(sign) = text[at..].find(['/', '*']).map(|next| at + next) {
        at = sign + 1;
        if text[sign..].starts_with("/*") {
            depth += 1;
            at = sign + 2;
        } else if text[sign..].starts_with("*/") {
            depth -= 1;
            at = sign + 2;
            if depth == 0 {
                return at;
            }
        }
    }
    text.len()
}

/// The length of the item that code begins with: to its semicolon, or to the end of its braces.
/// What has neither, such as a field, ends with the braces around it at the latest.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c == ';' || c == '}') {
            return at + 1;
        }
    }
    code.len()
}

/// Spaces for every byte, so that places in the code are places in the text.
fn blank(out: &mut String, text: &str) {
    out.extend(
        text.bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' }),
    );
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

#[test]
fn comments_and_strings_are_no_code() {
    let cases = [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("x \" y", z)"#, "f(        , z)"),
        ("r#\"a \" b\"# c", "           c"),
        (r"b'\'' + '\\' + 'x'", "      +      +    "),
        ("&'a str, 'b'", "&'a str,    "),
        ("r#type + bar\"x\"", "r#type + bar   "),
        ("\"a\nb\"", "  \n  "),
    ];
    for (text, expected) in cases {
        assert_eq!(code(text), expected, "{text}");
    }
}
