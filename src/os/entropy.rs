//! Owner tokens and jitter, from the operating system's entropy and nowhere else.
//!
//! A generator in user space can be duplicated by fork or by a snapshot of a virtual machine, and
//! two holders would sign with one token. So every attempt asks the kernel.

use crate::algorithm::lease::OwnerToken;
use rand_core::TryCryptoRng;

/// Draws a fresh owner token.
///
/// # Errors
/// The source has no entropy to give.
pub(crate) fn draw<R: TryCryptoRng>(source: &mut R) -> Result<OwnerToken, R::Error> {
    let mut entropy = [0; OwnerToken::ENTROPY];
    source.try_fill_bytes(&mut entropy)?;
    Ok(OwnerToken::from_entropy(entropy))
}

/// Draws a number for jitter, evenly from all of `u64`.
///
/// # Errors
/// The source has no entropy to give.
pub(crate) fn draw_jitter<R: TryCryptoRng>(source: &mut R) -> Result<u64, R::Error> {
    source.try_next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use getrandom::SysRng;
    use std::collections::HashSet;

    #[test]
    fn tokens_do_not_repeat() {
        let tokens: HashSet<Vec<u8>> = (0..1000)
            .map(|_| draw(&mut SysRng).unwrap().digits().to_vec())
            .collect();
        assert_eq!(tokens.len(), 1000);
    }

    /// A constant would let contenders that collided once collide for ever.
    #[test]
    fn jitter_is_spread_over_all_of_its_range() {
        let draws: HashSet<u64> = (0..1000)
            .map(|_| draw_jitter(&mut SysRng).unwrap())
            .collect();
        assert_eq!(draws.len(), 1000);
        // 500 are expected in each half, and 40 more or less would be rare.
        let high = draws.iter().filter(|&&draw| draw > u64::MAX / 2).count();
        assert!(
            (350..=650).contains(&high),
            "{high} of 1000 are in the upper half"
        );
    }
}
