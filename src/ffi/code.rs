//! The results of calls: numbers with fixed meanings.
//!
//! A number that has been published is never given to anything else, and never changed. A new one
//! goes behind the others of its hundred: below 100 are answers, from 100 failures for a reason
//! outside the call, from 200 calls that make no sense.

/// `quorumlock_result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) enum Code {
    Ok = 0,
    Held = 1,
    Expired = 2,
    Lost = 3,
    NotHeld = 4,
    StillHeld = 5,
    Config = 100,
    Unavailable = 101,
    LeaseLost = 102,
    Cancelled = 103,
    Entropy = 104,
    Forked = 105,
    ExtensionFailed = 106,
    LeaseTooShort = 107,
    ShutDown = 108,
    ShutdownIncomplete = 109,
    NullPointer = 200,
    NotUtf8 = 201,
    TooLong = 202,
    Busy = 203,
    Consumed = 204,
    Unsupported = 205,
    InvalidArgument = 206,
    Panic = 300,
}

impl Code {
    pub(super) const ALL: [Code; 24] = [
        Code::Ok,
        Code::Held,
        Code::Expired,
        Code::Lost,
        Code::NotHeld,
        Code::StillHeld,
        Code::Config,
        Code::Unavailable,
        Code::LeaseLost,
        Code::Cancelled,
        Code::Entropy,
        Code::Forked,
        Code::ExtensionFailed,
        Code::LeaseTooShort,
        Code::ShutDown,
        Code::ShutdownIncomplete,
        Code::NullPointer,
        Code::NotUtf8,
        Code::TooLong,
        Code::Busy,
        Code::Consumed,
        Code::Unsupported,
        Code::InvalidArgument,
        Code::Panic,
    ];

    /// Whether the call determined an answer. Then there is no error object.
    pub(super) fn is_answer(self) -> bool {
        (self as u32) < 100
    }

    pub(super) fn of(number: i32) -> Option<Code> {
        Code::ALL.into_iter().find(|&code| code as i32 == number)
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Code::Ok => "done",
            Code::Held => "held by another client",
            Code::Expired => "released too late",
            Code::Lost => "lost",
            Code::NotHeld => "the guard holds no lock any more",
            Code::StillHeld => "a level has ended, and the lock is still held",
            Code::Config => "a setting, name or time that cannot be used",
            Code::Unavailable => "too few nodes answered",
            Code::LeaseLost => "the lease has ended",
            Code::Cancelled => "cancelled",
            Code::Entropy => "no random bytes",
            Code::Forked => "created before a fork, belongs to the parent process",
            Code::ExtensionFailed => "not extended, and still held",
            Code::LeaseTooShort => "the lease is too short",
            Code::ShutDown => "the client is shut down",
            Code::ShutdownIncomplete => "the shutdown is incomplete",
            Code::NullPointer => "NULL where something must stand",
            Code::NotUtf8 => "a text that is not UTF-8",
            Code::TooLong => "a text of more than 1 MiB",
            Code::Busy => {
                "a guard that this thread is at work on, or an owner that another thread is"
            }
            Code::Consumed => "a lease that was attached or made into text before",
            Code::Unsupported => "not on this system, or not in this build",
            Code::InvalidArgument => "a number that stands for nothing",
            Code::Panic => "a bug in quorumlock",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_text() {
        for code in Code::ALL {
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
