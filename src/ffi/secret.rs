//! A lease as text.

use super::boundary::value;
use super::handle::{Lent, Returned};
use super::text::Str;
use crate::SecretText;

/// `quorumlock_secret`.
pub(super) struct Secret {
    pub(super) text: SecretText,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_secret_text(secret: Lent<Secret>) -> Str {
    value(Str::EMPTY, || Some(Str::of(secret.optional()?.text.expose())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_secret_free(secret: Returned<Secret>) {
    value((), || secret.take().map(drop));
}
