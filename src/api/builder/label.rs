//! What a client may call itself.

use crate::algorithm::label::HolderLabel;
use crate::os::host;

/// The name of this machine, a slash and the id of this process, as a
/// [`Builder::label`](crate::Builder::label): `host7/4711`. It is always usable: a long name is
/// cut, and each byte that a label cannot contain is a `-`.
///
/// ```
/// use quorumlock::{Redlock, host_label};
///
/// let redlock = Redlock::builder().node("redis://10.0.0.1").label(host_label()).build()?;
/// # Ok::<(), quorumlock::Error>(())
/// ```
pub fn host_label() -> String {
    label_of(&host::name(), std::process::id())
}

fn label_of(host: &str, process: u32) -> String {
    let process = format!("/{process}");
    let host = host.bytes().map(|byte| {
        if byte.is_ascii_graphic() {
            char::from(byte)
        } else {
            '-'
        }
    });
    host.take(HolderLabel::LONGEST - process.len())
        .chain(process.chars())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_this_process_is_always_usable() {
        assert!(HolderLabel::new(host_label().as_bytes()).is_some());
        for (host, label) in [
            ("host7", "host7/4711"),
            ("", "/4711"),
            ("a b\u{e9}", "a-b--/4711"),
        ] {
            assert_eq!(label_of(host, 4711), label);
        }
        let long = label_of(&"h".repeat(300), u32::MAX);
        assert_eq!(long, format!("{}/4294967295", "h".repeat(53)));
        assert!(HolderLabel::new(long.as_bytes()).is_some());
    }
}
