//! The results of calls: numbers with fixed meanings.
//!
//! A number that has been published is never given to anything else, and never changed. A new one
//! goes behind the others of its hundred: below 100 are answers, from 100 failures for a reason
//! outside the call, from 200 calls that make no sense.

/// `quorumlock_result`: of each its number, whether a retry cannot help until something is changed,
/// as far as the code alone shows that, and what it means.
macro_rules! codes {
    ($($code:ident = $number:literal, $is_permanent:literal, $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub(super) enum Code { $($code = $number),* }

        impl Code {
            pub(super) const ALL: &[Code] = &[$(Code::$code),*];

            pub(super) fn is_permanent(self) -> bool {
                match self { $(Code::$code => $is_permanent),* }
            }

            pub(super) fn text(self) -> &'static str {
                match self { $(Code::$code => $text),* }
            }
        }
    };
}

codes! {
    Ok = 0, false, "done";
    Held = 1, false, "held by another client";
    Expired = 2, false, "released too late";
    Lost = 3, false, "lost";
    NotHeld = 4, false, "the guard holds no lock any more";
    StillHeld = 5, false, "a level has ended, and the lock is still held";
    Config = 100, true, "a setting, name or time that cannot be used";
    Unavailable = 101, false, "too few nodes answered";
    LeaseLost = 102, true, "the lease has ended";
    Cancelled = 103, false, "cancelled";
    Entropy = 104, false, "no random bytes";
    Forked = 105, true, "created before a fork, belongs to the parent process";
    ExtensionFailed = 106, false, "not extended, and still held";
    LeaseTooShort = 107, false, "the lease is too short";
    ShutDown = 108, true, "the client is shut down";
    ShutdownIncomplete = 109, false, "the shutdown is incomplete";
    NullPointer = 200, true, "NULL where the function needs a pointer";
    NotUtf8 = 201, true, "a text that is not UTF-8";
    TooLong = 202, true, "a text of more than 1 MiB";
    Busy = 203, false, "a guard that this thread uses, or an owner that another thread uses";
    Consumed = 204, true, "a lease that was attached or made into text before";
    Unsupported = 205, true, "not on this system, or not in this build";
    InvalidArgument = 206, true, "a number without a meaning";
    Panic = 300, true, "a bug in quorumlock";
}

impl Code {
    /// Whether the call determined an answer. Then there is no error object.
    pub(super) fn is_answer(self) -> bool {
        (self as u32) < 100
    }

    pub(super) fn of(number: i32) -> Option<Code> {
        Code::ALL
            .iter()
            .copied()
            .find(|&code| code as i32 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_text() {
        for &code in Code::ALL {
            assert_eq!(Code::of(code as i32), Some(code));
            assert_eq!(
                Code::ALL
                    .iter()
                    .filter(|other| other.text() == code.text())
                    .count(),
                1
            );
        }
        assert_eq!(Code::of(99), None);
        assert!(Code::NotHeld.is_answer() && !Code::Config.is_answer());
    }
}
