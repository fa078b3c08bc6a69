//! The resource's half of fencing: it remembers the greatest fence that it has seen, and refuses
//! smaller ones.

use crate::algorithm::fence::FencingToken;
use crate::os::sync::{Mutex, lock};
use std::collections::HashMap;
use std::fmt;

/// Refuses writes that come too late, within one process: remembers for each resource the greatest
/// [`FencingToken`] that it has seen.
///
/// It belongs where the resource is, not where the lock is taken: in the server that owns the
/// files, in front of the device, in the test's substitute for them. **Check and write must be one
/// step**: if another write can come between, hold a mutex of your own over both, or let the
/// storage compare.
///
/// ```
/// use quorumlock::{FenceChecker, FencingToken};
///
/// let fence = FenceChecker::new();
/// // As it came with a request.
/// let token = FencingToken::try_from(1_709_210_096_789_000_u64)?;
/// fence.check("orders/42", token)?;
/// // The same holder may write again; an earlier one may not.
/// fence.check("orders/42", token)?;
/// let earlier = FencingToken::try_from(1_709_210_096_788_999_u64)?;
/// let stale = fence.check("orders/42", earlier).unwrap_err();
/// assert_eq!(stale.seen(), token);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # In a database
///
/// A database needs no such type, only a column that holds the greatest fence, and one more
/// condition:
///
/// ```sql
/// UPDATE orders SET state = 'paid', fence = :fence WHERE id = 42 AND fence <= :fence
/// ```
///
/// No row changed: the writer is too late, and must stop. The fence is a signed 64-bit integer
/// (`BIGINT`) there; a new row begins with 0. Where a holder writes several rows or tables, let one
/// transaction begin with that condition on one row that they share, so that a later holder's first
/// write locks all earlier ones out.
#[derive(Default)]
pub struct FenceChecker {
    seen: Mutex<HashMap<Box<str>, FencingToken>>,
}

impl FenceChecker {
    /// One that has seen nothing. It keeps an entry for each resource that it is asked about.
    pub fn new() -> FenceChecker {
        FenceChecker::default()
    }

    /// Lets a holder with this token pass, and from now on none with a smaller one.
    ///
    /// # Errors
    /// A greater one has passed already: this holder's lock has ended, and it must stop.
    pub fn check(&self, resource: &str, token: FencingToken) -> Result<(), StaleFence> {
        let mut all = lock(&self.seen);
        match all.get_mut(resource) {
            Some(seen) if token < *seen => return Err(StaleFence { token, seen: *seen }),
            Some(seen) => *seen = token,
            None => {
                all.insert(resource.into(), token);
            }
        }
        Ok(())
    }

    /// The greatest token that has passed.
    pub fn seen(&self, resource: &str) -> Option<FencingToken> {
        lock(&self.seen).get(resource).copied()
    }
}

/// Shows how many resources were seen.
impl fmt::Debug for FenceChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceChecker")
            .field("resources", &lock(&self.seen).len())
            .finish()
    }
}

/// A write that came too late: the resource has seen the token of a later holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleFence {
    token: FencingToken,
    seen: FencingToken,
}

impl StaleFence {
    /// The token that was refused.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The greatest that was seen.
    pub fn seen(&self) -> FencingToken {
        self.seen
    }
}

impl fmt::Display for StaleFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fencing token {} is stale: {} was seen",
            self.token, self.seen
        )
    }
}

impl std::error::Error for StaleFence {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn smaller_ones_are_refused_for_each_resource() {
        let fence = FenceChecker::new();
        assert_eq!(fence.seen("a"), None);
        for (resource, token, passes) in [
            ("a", 5, true),
            ("b", 3, true),
            ("a", 5, true),
            ("a", 4, false),
            ("b", 4, true),
            ("a", 9, true),
        ] {
            assert_eq!(
                fence
                    .check(resource, FencingToken::saturating(token))
                    .is_ok(),
                passes,
                "{resource} {token}"
            );
        }
        assert_eq!(
            ["a", "b"].map(|name| fence.seen(name)),
            [9, 4].map(|token| Some(FencingToken::saturating(token)))
        );
        let stale = fence.check("a", FencingToken::saturating(8)).unwrap_err();
        assert_eq!((stale.token().get(), stale.seen().get()), (8, 9));
        assert_eq!(stale.to_string(), "fencing token 8 is stale: 9 was seen");
        assert_eq!(format!("{fence:?}"), "FenceChecker { resources: 2 }");
    }

    #[test]
    fn of_many_threads_none_passes_after_a_greater_one() {
        let fence = FenceChecker::new();
        thread::scope(|scope| {
            for first in 0..4 {
                let fence = &fence;
                scope.spawn(move || {
                    for token in (first..4000).step_by(4) {
                        let passed = fence.check("a", FencingToken::saturating(token)).is_ok();
                        let seen = fence.seen("a").unwrap().get();
                        assert!(if passed { seen >= token } else { seen > token });
                    }
                });
            }
        });
        assert_eq!(fence.seen("a").unwrap().get(), 3999);
    }
}
