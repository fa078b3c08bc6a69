//! The library's entropy: owner tokens that the judge knows by number, and jitter from the seed.

use crate::algorithm::lease::OwnerToken;
use crate::{kernel, keys};
use std::convert::Infallible;

pub(crate) fn draw<R>(_source: &mut R) -> Result<OwnerToken, Infallible> {
    Ok(kernel::with(|world| {
        let task = world.current_task();
        let client = world.current_client();
        let number = world.judge.draw_token(task, client, world.now);
        world.asks();
        let mut entropy = [0; OwnerToken::ENTROPY];
        entropy[..8].copy_from_slice(&keys::beginning(number));
        entropy[8..16].copy_from_slice(&world.random.next().to_be_bytes());
        OwnerToken::from_entropy(entropy)
    }))
}

pub(crate) fn draw_jitter<R>(_source: &mut R) -> Result<u64, Infallible> {
    Ok(kernel::with(|world| world.random.next()))
}
