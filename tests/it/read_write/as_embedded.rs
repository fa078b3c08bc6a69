//! What no read-write lock has written is foreign to a real server and to the embedded node.
//! Requests in any order are compared in [`embedded_vs_real`](crate::embedded_vs_real).

use crate::embedded_vs_real::foreign::reply_of_both;
use crate::embedded_vs_real::{connect_both, pairs};
use quorumlock::protocol::kinds::read_write::SCRIPT;

/// Longer than a test lasts, in milliseconds.
const LONG: &str = "600000";
/// Longer than the holds of [`LONG`].
const RETENTION: &str = "1200000";
/// The greatest number that counts exactly.
const MOST: &str = "9007199254740991";

/// One client and another one.
fn tokens() -> [String; 2] {
    ["1", "2"].map(|digit| digit.repeat(40))
}

/// A request in words: "W" and "R" are the two accesses, a number is the least fence, and "-" the
/// end of words.
fn request<'r>(row: &'r str, [ours, theirs]: &'r [String; 2]) -> Vec<&'r str> {
    let words = row.split(' ').map(|word| match word {
        "OURS" => ours.as_str(),
        "THEIRS" => theirs.as_str(),
        "LONG" => LONG,
        "KEPT" => RETENTION,
        "MOST" => MOST,
        "-" => "",
        other => other,
    });
    words.collect()
}

/// Values, and whether the script reads them as those of a read-write lock.
pub(crate) fn values() -> Vec<(String, bool)> {
    let ours = "01".repeat(20);
    let theirs = "2".repeat(40);
    let late = (1_u64 << 53) - 1;
    vec![
        (format!("w {late} {theirs}"), true),
        (format!("w {late} {theirs} +{late}"), true),
        (format!("w 1 {ours}"), true),
        (format!("r {late}:{theirs}"), true),
        (
            format!("r {late}:{theirs} 1:{ours} {late}:{ours} +7 w 8"),
            true,
        ),
        (format!("+{late}"), true),
        (String::new(), false),
        (format!("+{} q", late + 1), true),
        ("+1 +1".to_owned(), true),
        ("q 1".to_owned(), false),
        (format!("f 7 {late}"), true),
        ("f 7 1".to_owned(), true),
        ("f 7 0".to_owned(), true),
        (format!("w 0 {theirs}"), true),
        (format!("f {late} {late} w {late} {theirs} +{late}"), true),
        (format!("f {late} 0 r {late}:{theirs} 1:{ours}"), true),
        (format!("f 7 {late} +7"), true),
        (format!("f 0 {late}"), false),
        (format!("f 07 {late}"), false),
        (format!("f {} {late}", late + 1), false),
        (format!("f 7 {}", late + 1), false),
        (format!("f 7 {late} "), false),
        (format!("f 7  {late}"), false),
        (format!("f 7 {late} f 7 {late}"), false),
        (format!("f 7 {late} {ours}"), false),
        (format!("f 7 {late} w 1 {ours} r 1:{ours}"), false),
        (format!("{late} f 7 {late}"), false),
        (format!("w 1 {ours} f 7 {late}"), false),
        (format!("f 7 {late} +"), true),
        (format!("f{}", "0".repeat(39)), false),
        ("f 7".to_owned(), false),
        ("f".to_owned(), false),
        (format!("w 1 {ours} + +"), true),
        (format!("w {} {theirs}", late + 1), false),
        (format!("r {}:{theirs}", late + 1), false),
        ("+".to_owned(), true),
        ("r".to_owned(), false),
        ("w".to_owned(), false),
        ("r +7".to_owned(), false),
        (format!("w 1:{ours}"), false),
        (format!("r 1 {ours}"), false),
        (format!("w 01 {ours}"), false),
        (format!("w -1 {ours}"), false),
        (format!("w 1 {ours} "), false),
        (format!(" w 1 {ours}"), false),
        (format!("w 1 {ours}0"), false),
        (format!("w 1 {}", "AB".repeat(20)), false),
        (format!("w 1 {ours} q"), false),
        (format!("w 1 {ours}+"), false),
        (format!("w 1 {ours}  +"), false),
        (format!("w 1 {ours} 1 {theirs}"), false),
        (format!(" + w 1 {ours}"), true),
        (format!("r 1:{ours}  2:{theirs}"), false),
        (format!("x 1:{ours}"), false),
        (ours.clone(), false),
    ]
}

#[test]
fn what_no_read_write_lock_has_written_is_foreign_to_both() {
    let tokens = tokens();
    for (server, node) in pairs() {
        let mut sides = connect_both(&server, &node);
        for (value, is_read) in &values() {
            for row in [
                "acquire OURS LONG r",
                "acquire OURS LONG w",
                "acquire OURS LONG w KEPT 1",
                "extend OURS LONG w KEPT 1",
                "extend OURS LONG r",
                "take OURS LONG 0000000000000001w1 5 n - w KEPT 1",
                "release OURS",
            ] {
                let script = ["EVAL", SCRIPT.text, "1", "rw"];
                let call = [&script[..], &request(row, &tokens)].concat();
                reply_of_both(&mut sides, value, *is_read, &call);
            }
        }
    }
}
