//! What a connection logs in with.

use super::command;
use crate::fault::credentials_error::CredentialsError;
use std::fmt;
use std::time::Duration;

/// Longest user and longest password, in bytes: far more than any token has.
pub const LONGEST: usize = 64 * 1024;

/// A user and a password, as a [provider](crate::Builder::credentials) returns them. `Debug` shows
/// neither.
///
/// ```
/// use quorumlock::Credentials;
/// use std::time::Duration;
///
/// let token = Credentials::new("hunter2").user("billing").refresh_after(Duration::from_secs(600));
/// assert!(!format!("{token:?}").contains("hunter2"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
    refresh_after: Option<Duration>,
}

impl Credentials {
    /// The password of the default user.
    pub fn new(password: impl Into<String>) -> Credentials {
        Credentials {
            user: None,
            password: password.into(),
            refresh_after: None,
        }
    }

    /// Names the user whose password it is. Default: the default user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Credentials {
        self.user = Some(user.into());
        self
    }

    /// Has the provider called again after this time, counted from its return, and the open
    /// connection logged in anew with what it returns then: well before the present password ends.
    /// At least 10 ms. Default: it is called again for the next connection.
    #[must_use]
    pub fn refresh_after(mut self, time: Duration) -> Credentials {
        self.refresh_after = Some(time);
        self
    }
}

/// For the layers above, the command line and the tests.
#[doc(hidden)]
impl Credentials {
    /// The same, of this user if they name none.
    pub fn or_user(self, user: Option<&str>) -> Credentials {
        match (&self.user, user) {
            (None, Some(user)) => self.user(user),
            _ => self,
        }
    }

    /// When to ask for the next ones, if at a time.
    pub fn refreshed_after(&self) -> Option<Duration> {
        self.refresh_after
    }

    /// The user, unless it is the default one.
    pub fn user_name(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Whether they log in as these do.
    pub fn are_as(&self, other: &Credentials) -> bool {
        (&self.user, &self.password) == (&other.user, &other.password)
    }

    /// The password in a text, without the end of its line.
    pub fn of_line(text: &str) -> Credentials {
        let password = text.strip_suffix('\n').unwrap_or(text);
        Credentials::new(password.strip_suffix('\r').unwrap_or(password))
    }

    /// The same, if they can be used.
    ///
    /// # Errors
    /// Why not.
    pub fn checked(self) -> Result<Credentials, CredentialsError> {
        let longest = self
            .password
            .len()
            .max(self.user.as_ref().map_or(0, String::len));
        if self.password.is_empty() {
            Err(CredentialsError::Empty)
        } else if longest > LONGEST {
            Err(CredentialsError::TooLong)
        } else {
            Ok(self)
        }
    }

    /// Writes the command that logs in.
    pub(super) fn log_in(&self, out: &mut Vec<u8>) {
        command::auth(out, self.user.as_deref(), &self.password);
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("refresh_after", &self.refresh_after)
            .finish_non_exhaustive()
    }
}
