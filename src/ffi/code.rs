//! The results of calls: numbers with fixed meanings.
//!
//! A number that has been published is never given to anything else, and never changed. A new one
//! goes behind the others of its hundred: below 100 are answers, from 100 failures for a reason
//! outside the call, from 200 calls that make no sense.

/// `quorumlock_result`, and what each means.
macro_rules! codes {
    ($($code:ident = $number:literal, $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub(super) enum Code { $($code = $number),* }

        impl Code {
            pub(super) const ALL: &[Code] = &[$(Code::$code),*];

            pub(super) fn text(self) -> &'static str {
                match self { $(Code::$code => $text),* }
            }
        }
    };
}

codes! {
    Ok = 0, "done";
    Held = 1, "held by another client";
    Expired = 2, "released too late";
    Lost = 3, "lost";
    NotHeld = 4, "the guard holds no lock any more";
    StillHeld = 5, "a level has ended, and the lock is still held";
    Config = 100, "a setting, name or time that cannot be used";
    Unavailable = 101, "too few nodes answered";
    LeaseLost = 102, "the lease has ended";
    Cancelled = 103, "cancelled";
    Entropy = 104, "no random bytes";
    Forked = 105, "created before a fork, belongs to the parent process";
    ExtensionFailed = 106, "not extended, and still held";
    LeaseTooShort = 107, "the lease is too short";
    ShutDown = 108, "the client is shut down";
    ShutdownIncomplete = 109, "the shutdown is incomplete";
    NullPointer = 200, "NULL where something must stand";
    NotUtf8 = 201, "a text that is not UTF-8";
    TooLong = 202, "a text of more than 1 MiB";
    Busy = 203, "a guard that this thread is at work on, or an owner that another thread is";
    Consumed = 204, "a lease that was attached or made into text before";
    Unsupported = 205, "not on this system, or not in this build";
    InvalidArgument = 206, "a number that stands for nothing";
    Panic = 300, "a bug in quorumlock";
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
