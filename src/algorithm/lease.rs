//! The lease of a won attempt: until when may it be relied on?
//!
//! ```text
//!  t0                                                  end              t0 + ttl
//!  ├── SET written … quorum of replies read ──────────────┤──── drift ───────┤
//!  before the first byte                    the lease's end    servers may expire the key
//! ```
//!
//! A node starts to count the key's time when it runs the `SET`, which is after `t0`; so the key
//! lives on every node until `t0 + ttl` at least, by that node's clock. The drift allowed for takes
//! off what clocks may disagree by (Redlock step 3). The end is computed once, by one addition;
//! nothing subtracts elapsed time, so nothing underflows.

use super::label::HolderLabel;
use super::time::LeaseTime;
use std::fmt;
use std::time::Duration;

/// Shortest time to live: Redis counts in milliseconds.
pub const MIN_TTL: Duration = Duration::from_millis(1);
/// Longest time to live by default, and how long a restarted node does not vote. Longer work has
/// the watchdog. There is a limit at all because Redis 5 turns a huge `PX` into a lock that never
/// ends.
pub const MAX_TTL: Duration = Duration::from_secs(60);
/// The part of drift that does not depend on the time to live: servers expire keys by a clock of
/// whole milliseconds.
pub const DRIFT_FLOOR: Duration = Duration::from_millis(2);

/// A lock's time to live, in whole milliseconds, with its validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl {
    millis: u64,
    validity: Duration,
}

impl Ttl {
    /// Checks a time to live against the limits and takes off the drift: `ttl × drift_factor + 2
    /// ms`.
    ///
    /// # Errors
    /// Shorter than [`MIN_TTL`], longer than `max`, or nothing left of it after the drift.
    pub fn new(ttl: Duration, drift_factor: f64, max: Duration) -> Result<Ttl, TtlError> {
        if ttl < MIN_TTL {
            return Err(TtlError::TooShort);
        }
        if ttl > max {
            return Err(TtlError::TooLong);
        }
        let millis = u64::try_from(ttl.as_millis()).map_err(|_| TtlError::TooLong)?;
        let whole = Duration::from_millis(millis);
        let drift = whole
            .mul_f64(drift_factor.clamp(0.0, 1.0))
            .saturating_add(DRIFT_FLOOR);
        match whole.saturating_sub(drift) {
            Duration::ZERO => Err(TtlError::EatenByDrift),
            validity => Ok(Ttl { millis, validity }),
        }
    }

    /// Milliseconds, as sent to the nodes.
    pub fn millis(self) -> u64 {
        self.millis
    }

    /// The time to live as it is sent.
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// How long a lease can be relied on at most.
    pub fn validity(self) -> Duration {
        self.validity
    }

    /// The lease of an attempt that began at `t0`, before its first byte was written.
    pub fn lease_from(self, t0: LeaseTime) -> Validity {
        Validity {
            end: t0.after(self.validity),
        }
    }
}

/// Why a time to live cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlError {
    /// Less than a millisecond.
    TooShort,
    /// More than the maximum.
    TooLong,
    /// The allowance for clock drift leaves nothing: such a lock could never be won.
    EatenByDrift,
}

/// The time during which a won attempt may be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    end: LeaseTime,
}

impl Validity {
    /// One that has ended, and whose loss was reported.
    pub const LOST: Validity = Validity {
        end: LeaseTime::ORIGIN,
    };

    /// A lease that ends then.
    pub fn until(end: LeaseTime) -> Validity {
        Validity { end }
    }

    /// When it ends.
    pub fn end(self) -> LeaseTime {
        self.end
    }

    /// Whether it may be relied on at `now`.
    pub fn is_valid(self, now: LeaseTime) -> bool {
        now < self.end
    }

    /// How long it may still be relied on at `now`.
    pub fn remaining(self, now: LeaseTime) -> Duration {
        self.end.since(now)
    }
}

/// The random value that signs one attempt: 20 bytes of the operating system's entropy, as 40
/// hexadecimal digits; and the label of the holder, if its client has one. Each command about the
/// attempt's key has both.
///
/// A client that knows it can release the lock, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnerToken {
    entropy: [u8; OwnerToken::ENTROPY],
    label: HolderLabel,
}

impl OwnerToken {
    /// Bytes of entropy in a token.
    pub const ENTROPY: usize = 20;
    /// Bytes of a token on the wire, without a label.
    pub const LENGTH: usize = 2 * OwnerToken::ENTROPY;

    /// The token of this entropy, without a label.
    pub fn from_entropy(entropy: [u8; OwnerToken::ENTROPY]) -> OwnerToken {
        OwnerToken {
            entropy,
            label: HolderLabel::NONE,
        }
    }

    /// The same with this label.
    #[must_use]
    pub fn labelled(self, label: HolderLabel) -> OwnerToken {
        OwnerToken { label, ..self }
    }

    /// Its label.
    pub fn label(&self) -> &HolderLabel {
        &self.label
    }

    /// Its first eight bytes as a number: enough to tell apart what one process holds.
    pub fn beginning(&self) -> u64 {
        let first = self.entropy.first_chunk();
        first.map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// The token's digits.
    pub fn digits(&self) -> [u8; OwnerToken::LENGTH] {
        const PAIRS: [[u8; 2]; 256] = {
            let digits = b"0123456789abcdef";
            let mut pairs = [[0; 2]; 256];
            let mut byte = 0;
            while byte < pairs.len() {
                pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
                byte += 1;
            }
            pairs
        };
        let mut digits = [0; OwnerToken::LENGTH];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.entropy) {
            *pair = PAIRS[usize::from(byte)];
        }
        digits
    }

    /// The token with these digits: 40 of them, lower case, and nothing else.
    pub fn from_digits(digits: &[u8]) -> Option<OwnerToken> {
        let digits: &[u8; OwnerToken::LENGTH] = digits.try_into().ok()?;
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut entropy = [0; OwnerToken::ENTROPY];
        for (byte, pair) in entropy.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(OwnerToken::from_entropy(entropy))
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTOR: f64 = 0.01;

    #[test]
    fn drift_is_a_hundredth_and_two_milliseconds() {
        let table = [
            (3, 0.97),
            (10, 7.9),
            (100, 97.0),
            (1_000, 988.0),
            (30_000, 29_698.0),
            (86_400_000, 85_535_998.0),
        ];
        for (millis, validity) in table {
            let ttl = Ttl::new(Duration::from_millis(millis), FACTOR, Duration::MAX).unwrap();
            let lease = ttl.lease_from(LeaseTime::ORIGIN);
            let left = lease.remaining(LeaseTime::ORIGIN).as_secs_f64() * 1000.0;
            assert!((left - validity).abs() < 0.001, "{millis} ms: {left} left");
        }
    }

    #[test]
    fn the_ttl_is_bounded_on_both_sides() {
        let ttl = |duration| Ttl::new(duration, FACTOR, MAX_TTL).map(Ttl::millis);
        assert_eq!(ttl(Duration::ZERO), Err(TtlError::TooShort));
        assert_eq!(ttl(Duration::from_micros(999)), Err(TtlError::TooShort));
        assert_eq!(ttl(Duration::from_millis(1)), Err(TtlError::EatenByDrift));
        assert_eq!(ttl(Duration::from_millis(2)), Err(TtlError::EatenByDrift));
        assert_eq!(ttl(Duration::from_micros(3_999)), Ok(3));
        assert_eq!(ttl(MAX_TTL), Ok(60_000));
        assert_eq!(
            ttl(MAX_TTL + Duration::from_nanos(1)),
            Err(TtlError::TooLong)
        );
        assert_eq!(ttl(Duration::MAX), Err(TtlError::TooLong));
        assert_eq!(
            Ttl::new(Duration::MAX, FACTOR, Duration::MAX),
            Err(TtlError::TooLong)
        );
        assert_eq!(Ttl::new(MAX_TTL, 1.0, MAX_TTL), Err(TtlError::EatenByDrift));
    }

    #[test]
    fn a_lease_ends_at_its_end_and_never_underflows() {
        let ttl = Ttl::new(Duration::from_millis(102), 0.0, MAX_TTL).unwrap();
        let lease = ttl.lease_from(LeaseTime::from_nanos(5));
        let end = LeaseTime::from_nanos(100_000_005);
        assert_eq!(lease.end(), end);
        assert!(lease.is_valid(LeaseTime::from_nanos(100_000_004)));
        assert!(!lease.is_valid(end));
        assert_eq!(lease.remaining(end), Duration::ZERO);
        assert_eq!(lease.remaining(LeaseTime::NEVER), Duration::ZERO);
        assert_eq!((ttl.millis(), ttl.duration().as_millis()), (102, 102));
        assert_eq!(ttl.lease_from(LeaseTime::NEVER).end(), LeaseTime::NEVER);
    }

    #[test]
    fn a_token_is_forty_hexadecimal_digits_and_stays_secret() {
        let mut entropy = [0; 20];
        entropy[0] = 0xa7;
        entropy[19] = 0x0f;
        let token = OwnerToken::from_entropy(entropy);
        assert_eq!(&token.digits(), b"a70000000000000000000000000000000000000f");
        assert_eq!(format!("{token:?}"), "OwnerToken(…)");
        let labelled = token.labelled(HolderLabel::new(b"host7").unwrap());
        assert_eq!(labelled.label().as_str(), Some("host7"));
        assert_eq!(format!("{labelled:?}"), "OwnerToken(…)");
    }

    #[test]
    fn a_token_is_read_from_its_digits_and_from_nothing_else() {
        for byte in 0..=u8::MAX {
            let token = OwnerToken::from_entropy([byte; OwnerToken::ENTROPY]);
            assert_eq!(token.beginning(), u64::from_be_bytes([byte; 8]));
            assert_eq!(OwnerToken::from_digits(&token.digits()), Some(token));
        }
        let digits = b"a70000000000000000000000000000000000000f";
        assert!(OwnerToken::from_digits(digits).is_some());
        assert_eq!(OwnerToken::from_digits(&digits[1..]), None);
        assert_eq!(OwnerToken::from_digits(&[&digits[..], b"0"].concat()), None);
        for wrong in [b'A', b'F', b'g', b'`', b'/', b':', b' ', b'\n', 0, 0xff] {
            for at in [0, 1, 39] {
                let mut digits = *digits;
                digits[at] = wrong;
                assert_eq!(OwnerToken::from_digits(&digits), None, "{wrong} at {at}");
            }
        }
    }
}
