//! How a connection introduces itself: who we are to the server, and in which database we work.

use std::fmt;

/// What to send first on a connection.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// The ACL user; none is the default user.
    pub user: Option<String>,
    /// The password; none sends no `AUTH`.
    pub password: Option<String>,
    /// The database; 0 sends no `SELECT`.
    pub database: u32,
}

/// Shows whether there is a password, never which.
impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting")
            .field("user", &self.user.as_ref().map(|_| "…"))
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("database", &self.database)
            .finish()
    }
}
