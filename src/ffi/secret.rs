//! A lease as text.

use super::boundary::call_or;
use super::handle::{Borrowed, Returned};
use super::text::Str;
use crate::SecretText;

/// `quorumlock_secret`.
pub(super) struct SecretHandle {
    pub(super) text: SecretText,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_secret_text(secret: Borrowed<SecretHandle>) -> Str {
    call_or(Str::EMPTY, || {
        Some(Str::of(secret.optional()?.text.expose()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_secret_free(secret: Returned<SecretHandle>) {
    call_or((), || secret.take().map(drop));
}
