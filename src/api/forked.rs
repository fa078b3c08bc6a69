//! Handles in a child made by `fork`: they answer `Forked`, and touch nothing.
//!
//! Parent and child share the connections, and with them every byte that is written, every reply
//! that is read and every option that is set. The child has only the thread of the parent that
//! forked: a mutex that another one had stays locked for ever, what that thread was changing stays
//! half changed, and its end never comes. So what was made before a fork is the parent's, and a
//! child that uses it all the same gets an error. Invariants:
//!
//! 1. Every operation of a handle asks first, before it takes a mutex: [`check`], or `is_inherited`
//!    where it cannot fail.
//! 2. What the handles of a client share is never dropped in a child
//!    ([`Client`](crate::api::client::Client)): no thread is joined, no memory freed that another
//!    thread was changing. It is left as it is until the child ends. Only the child's copies of the
//!    connections are closed, if no other thread was using them: a close sends nothing to the node
//!    while the parent has its own.
//! 3. Streams and wake-ups ask once more. Even an operation that forgets to, or one in whose middle
//!    a callback forks, writes and reads no byte of the parent's, and sets no option.
//!
//! What a child makes itself is its own. What lasts for the whole process, the lease clock, has no
//! mutex.

use crate::events::error::{Error, ErrorKind, Result};
use crate::os::fork::ForkEpoch;

/// Refuses what was made before a fork.
///
/// # Errors
/// [`Forked`](ErrorKind::Forked).
pub(crate) fn check(created_in: ForkEpoch) -> Result<()> {
    if created_in.is_forked() {
        let message =
            "created before a fork, belongs to the parent process: build a client in the child";
        return Err(Error::new(ErrorKind::Forked, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_what_to_do() {
        assert!(check(ForkEpoch::current().unwrap()).is_ok());
        let error = check(ForkEpoch::of_a_parent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked);
        assert!(
            error.to_string().contains("build a client in the child") && error.causes().is_empty()
        );
    }
}
