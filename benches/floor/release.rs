//! The release of a bare program: compare and delete, and perhaps a message to one that waits. The
//! library's own looks at the queue of the lock as well.

/// `KEYS[1]` the lock, `ARGV[1]` the token, `ARGV[2]` a channel and `ARGV[3]` a message, or
/// neither. Returns 1 or 0.
pub(crate) const SCRIPT: &str = "local ours = redis.call('GET', KEYS[1]) == ARGV[1]\n\
    if ours then redis.call('DEL', KEYS[1]) end\n\
    if ours and ARGV[2] then redis.call('PUBLISH', ARGV[2], ARGV[3]) end\n\
    return ours and 1 or 0";
/// What servers call it.
const SHA1: &str = "6a2f388b5ec17b35f2bb07db997a9ce611c8ac58";

/// Writes the release.
pub(crate) fn write(
    out: &mut Vec<u8>,
    resource: &str,
    token: &[u8],
    message: Option<(&str, &str)>,
) {
    let mut words: Vec<&[u8]> = vec![
        b"EVALSHA",
        SHA1.as_bytes(),
        b"1",
        resource.as_bytes(),
        token,
    ];
    words.extend(
        message
            .into_iter()
            .flat_map(|(channel, message)| [channel.as_bytes(), message.as_bytes()]),
    );
    quorumlock::protocol::resp::encode(out, &words);
}
