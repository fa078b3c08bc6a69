//! The release of a bare program: compare and delete, and perhaps a message to one that waits. The library's own looks
//! at the queue of the lock as well.

use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::protocol::command;
use quorumlock::protocol::dialect::Dialect;

/// `KEYS[1]` the lock, `ARGV[1]` the token, `ARGV[2]` a channel and `ARGV[3]` a message, or neither. Returns 1 or 0.
pub(crate) const SCRIPT: &str = "local ours = redis.call('GET', KEYS[1]) == ARGV[1]\n\
    if ours then redis.call('DEL', KEYS[1]) end\n\
    if ours and ARGV[2] then redis.call('PUBLISH', ARGV[2], ARGV[3]) end\n\
    return ours and 1 or 0";
/// What servers call it.
const SHA1: &str = "6a2f388b5ec17b35f2bb07db997a9ce611c8ac58";

/// Writes the release, by a command of the server or by the script, which alone publishes.
pub(crate) fn write(
    out: &mut Vec<u8>,
    dialect: Dialect,
    resource: &str,
    token: &OwnerToken,
    message: Option<(&str, &str)>,
) {
    if matches!(dialect, Dialect::Delex | Dialect::Delifeq) {
        return command::release(out, dialect, resource.as_bytes(), token);
    }
    by_script(out, resource, &token.value(), message);
}

/// Writes the release by the script, of any token.
pub(crate) fn by_script(out: &mut Vec<u8>, resource: &str, token: &[u8], message: Option<(&str, &str)>) {
    let mut words: Vec<&[u8]> = vec![b"EVALSHA", SHA1.as_bytes(), b"1", resource.as_bytes(), token];
    words.extend(message.into_iter().flat_map(|(channel, message)| [channel.as_bytes(), message.as_bytes()]));
    quorumlock::protocol::resp::encode(out, &words);
}
