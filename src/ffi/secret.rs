//! A lease as text.

use super::boundary::{frees, parts};
use super::handle::Borrowed;
use super::text::Str;
use crate::SecretText;

/// `quorumlock_secret`.
pub(super) struct SecretHandle(pub(super) SecretText);

frees! { quorumlock_secret_free(SecretHandle); }

parts! { Borrowed<SecretHandle>:
    quorumlock_secret_text() -> Str = |secret| Str::of(secret.0.expose());
}
