//! Where the beginning of a handshake shows whether it resumes a session.

use super::*;

/// For each connection through a proxy that was answered, in order: whether it resumed a session.
pub(super) fn resumed(proxy: &Proxy) -> Vec<bool> {
    let answers = proxy.beginnings().into_iter();
    let answers = answers.filter(|answer| !answer.is_empty());
    answers.map(|answer| is_resumed(&answer)).collect()
}

/// Whether the server's first flight resumes a session.
fn is_resumed(answer: &[u8]) -> bool {
    let hello = usize::from(answer[3]) << 8 | usize::from(answer[4]);
    assert_eq!((answer[0], answer[5]), (22, 2), "no ServerHello");
    let hello_ends = 5 + hello;
    // TLS 1.3: the extension pre_shared_key with the index 0. TLS 1.2: no Certificate follows, in
    // that record or the next one.
    let has_pre_shared_key = answer[..hello_ends]
        .windows(6)
        .any(|bytes| bytes == [0, 41, 0, 2, 0, 0]);
    let is_1_3 = answer[..hello_ends]
        .windows(6)
        .any(|bytes| bytes == [0, 43, 0, 2, 3, 4]);
    let message = usize::from(answer[7]) << 8 | usize::from(answer[8]);
    let next = match 9 + message < hello_ends {
        true => answer[9 + message],
        false if answer[hello_ends] == 22 => answer[hello_ends + 5],
        false => 0,
    };
    if is_1_3 {
        has_pre_shared_key
    } else {
        next != 11
    }
}
