//! What a server replies about itself: `INFO` and `CLUSTER INFO`, and its error replies.
//!
//! Input: where a section is cut, then the section, which is read as an error reply, too. Rules:
//! 1. Reading never panics.
//! 2. Cut at a line feed, it means the same.
//! 3. What is shown of it breaks no line of a log, and is short: it is of the library's own words
//!    and of numbers.
//! 4. The address of a master that is named is shown as one that leads to it.

use super::Input;
use quorumlock::Phase;
use quorumlock::protocol::error_reply::ErrorReply;
use quorumlock::protocol::moved::NamedMaster;
use quorumlock::protocol::server_info::ServerInfo;
use std::net::SocketAddr;

/// No message that is made of numbers and the library's own words is longer.
const LONGEST: usize = 400;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let lines = usize::from(input.byte());
    let section = input.rest();
    check_info(section, lines);
    check_error(section);
}

fn check_info(section: &[u8], lines: usize) {
    let mut info = ServerInfo::default();
    info.learn(section);
    let mut in_parts = ServerInfo::default();
    let cut = section
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(lines)
        .map_or(section.len(), |(index, _)| index + 1);
    in_parts.learn(&section[..cut]);
    in_parts.learn(&section[cut..]);
    assert!(info == in_parts, "the meaning depends on the cut");

    let _ = (info.process(), info.incarnation(), info.aof_enabled());
    let shown = [
        info.server().unwrap_or_default(),
        info.eviction().unwrap_or_default().to_owned(),
        info.objection(Phase::Handshake)
            .map_or_else(String::new, |fault| fault.cause.to_string()),
    ];
    shown.iter().for_each(|text| check_shown(text));
}

fn check_error(text: &[u8]) {
    check_shown(&ErrorReply::read(text).fault("EVAL").cause.to_string());
    let Some(master) = NamedMaster::read(text) else {
        return;
    };
    let shown = master.to_string();
    assert!(!shown.contains(char::is_control), "{shown:?}");
    if let Some(address) = master.address() {
        assert_eq!(shown.parse::<SocketAddr>(), Ok(address));
    }
}

fn check_shown(text: &str) {
    let is_plain = !text.contains(char::is_control) && text.len() <= LONGEST;
    assert!(is_plain, "{text:?}");
}
