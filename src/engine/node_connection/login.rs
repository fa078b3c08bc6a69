//! The credentials of a node, where a provider of the program's returns them.

use crate::algorithm::time::Timestamp;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::protocol::credentials::Credentials;
use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// What the program hands in: it is called with the address of a node.
pub(crate) type Provider =
    Arc<dyn Fn(&str) -> Result<Credentials, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Returns how the connections to each node are protected, if that has changed.
pub(crate) type Renewal =
    Box<dyn FnMut() -> Option<Result<Vec<TransportConfig>, CredentialsError>> + Send>;

/// Pause after a failure.
pub(in crate::engine) const PAUSE: Duration = Duration::from_secs(1);
/// How long what was returned too late for one connection is good for the next one.
const FRESH: Duration = Duration::from_secs(10);

/// What the connections to one node log in with.
pub(in crate::engine) struct Login {
    provider: BackgroundCall,
    /// What the provider has returned last.
    latest: Option<Credentials>,
    /// What was sent on the present connection, and not answered so far.
    sent: VecDeque<Credentials>,
    /// What the server has accepted last.
    pub(super) accepted: Option<Credentials>,
    /// The last fault that was reported, since the last success.
    reported: Option<Fault>,
    /// Since when a connection has asked in vain for what the provider returned later.
    unused_since: Option<Timestamp>,
    /// Whether a connection has asked the provider, which has not returned since.
    is_asked: bool,
    /// Whether the present connection waits for the provider.
    pub(super) is_awaited: bool,
    /// Whether the server has refused to log in with the latest.
    is_refused: bool,
}

/// What a connection does with what a provider has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Use {
    /// It waited for this, and can be made.
    Begin,
    /// It logs in once more.
    Replace,
    /// There is none, or it has logged in with the same.
    Keep,
}

impl Login {
    pub(in crate::engine) fn new(provider: BackgroundCall) -> Login {
        Login {
            provider,
            latest: None,
            sent: VecDeque::new(),
            accepted: None,
            reported: None,
            unused_since: None,
            is_asked: false,
            is_awaited: false,
            is_refused: false,
        }
    }

    /// A connection begins. Returns whether it can be made at once: a provider that takes longer
    /// than a connection may is not asked in vain.
    pub(super) fn begin(&mut self, now: Timestamp) -> bool {
        self.sent.clear();
        let unused = self.unused_since.take();
        let is_known = unused.is_some_and(|since| now.since(since) <= FRESH);
        self.is_awaited = !is_known;
        if !is_known {
            self.is_asked = true;
            self.provider.ask_after(Duration::ZERO);
        }
        is_known
    }

    /// What to log in with now.
    pub(super) fn next(&mut self) -> Option<&Credentials> {
        self.sent.extend(self.latest.clone());
        self.latest.as_ref()
    }

    /// The server has accepted the credentials that were sent first.
    pub(in crate::engine) fn accepted(&mut self) {
        self.accepted = self.sent.pop_front();
        self.reported = None;
    }

    /// Whether a fault is another one than that reported last.
    pub(in crate::engine) fn is_news(&mut self, fault: Fault) -> bool {
        self.reported.replace(fault) != Some(fault)
    }

    /// The server has refused to replace the credentials.
    pub(in crate::engine) fn refused(&mut self) {
        self.is_refused = true;
        self.sent.pop_front();
        self.provider.ask_after(PAUSE);
    }

    /// Takes what the provider has returned. After an error, those before count as long as the
    /// server accepts them.
    ///
    /// # Errors
    /// The connection waited for this, and cannot be made.
    pub(super) fn learn(
        &mut self,
        returned: Result<Credentials, CredentialsError>,
        is_closed: bool,
        now: Timestamp,
    ) -> Result<Use, Fault> {
        let is_asked = std::mem::take(&mut self.is_asked);
        let is_awaited = std::mem::take(&mut self.is_awaited);
        let is_replaced = match returned {
            Ok(credentials) => {
                let is_same = !std::mem::take(&mut self.is_refused)
                    && self
                        .latest
                        .as_ref()
                        .is_some_and(|latest| latest.are_as(&credentials));
                if is_same {
                    self.reported = None;
                }
                self.latest = Some(credentials);
                self.unused_since = Some(now).filter(|_| is_closed && is_asked);
                !is_same && !is_closed
            }
            Err(error) if is_awaited && self.latest.is_none() => {
                return Err(Fault::new(Phase::Handshake, Cause::Credentials(error)));
            }
            Err(_) => false,
        };
        Ok(match (is_awaited, is_replaced) {
            (true, _) => Use::Begin,
            (false, true) => Use::Replace,
            (false, false) => Use::Keep,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::ORIGIN;

    /// One whose provider returns nothing by itself.
    fn login() -> Login {
        Login::new(BackgroundCall::start("test", || None).unwrap())
    }

    fn credentials(password: &str) -> Result<Credentials, CredentialsError> {
        Ok(Credentials::new(password))
    }

    #[test]
    fn a_connection_waits_for_its_credentials_and_an_open_one_replaces_them() {
        let mut login = login();
        assert!(!login.begin(NOW) && login.is_awaited);
        assert_eq!(login.learn(credentials("a"), false, NOW), Ok(Use::Begin));
        assert_eq!(login.learn(credentials("a"), false, NOW), Ok(Use::Keep));
        assert_eq!(login.learn(credentials("b"), false, NOW), Ok(Use::Replace));
        login.refused();
        assert_eq!(
            login.learn(credentials("b"), false, NOW),
            Ok(Use::Replace),
            "again"
        );
        assert_eq!(login.learn(credentials("b"), false, NOW), Ok(Use::Keep));
    }

    #[test]
    fn what_comes_too_late_is_for_the_next_connection() {
        let mut login = login();
        let mut is_late = |late: Duration| {
            assert!(!login.begin(NOW), "it is asked");
            login.is_awaited = false; // closed
            assert_eq!(login.learn(credentials("a"), true, NOW), Ok(Use::Keep));
            let waits = !login.begin(NOW.after(late));
            login.is_awaited = false;
            waits
        };
        assert!(!is_late(FRESH), "at once");
        assert!(is_late(FRESH + Duration::from_millis(1)));
        // What was returned for no connection is not what the next one asks for.
        assert_eq!(login.learn(credentials("a"), true, NOW), Ok(Use::Keep));
        assert_eq!(login.learn(credentials("b"), true, NOW), Ok(Use::Keep));
        assert!(!login.begin(NOW));
    }

    #[test]
    fn after_a_failure_the_credentials_before_count() {
        let mut login = login();
        let failed = || Err(CredentialsError::Failed);
        let fault = Fault::new(
            Phase::Handshake,
            Cause::Credentials(CredentialsError::Failed),
        );
        assert!(!login.begin(NOW));
        assert_eq!(login.learn(failed(), false, NOW), Err(fault));
        assert!(!login.begin(NOW));
        assert_eq!(login.learn(credentials("a"), false, NOW), Ok(Use::Begin));
        assert_eq!(login.learn(failed(), false, NOW), Ok(Use::Keep));
        assert!(!login.begin(NOW));
        assert_eq!(login.learn(failed(), false, NOW), Ok(Use::Begin));
        assert!(login.latest.is_some_and(|latest| latest.password() == "a"));
    }

    #[test]
    fn what_the_server_has_accepted_is_kept_and_ends_what_was_reported() {
        let mut login = login();
        let fault = Fault::new(Phase::Handshake, Cause::Auth);
        let password = |login: &Login| {
            let accepted = login.accepted.as_ref();
            accepted.map(|credentials| credentials.password().to_owned())
        };
        let _ = login.learn(credentials("a"), false, NOW);
        assert_eq!(password(&login), None);
        assert_eq!([(); 2].map(|()| login.is_news(fault)), [true, false]);
        let _ = login.next();
        login.accepted();
        let _ = login.learn(credentials("b"), false, NOW);
        assert_eq!(password(&login), Some("a".to_owned()));
        assert!(login.is_news(fault), "it is another failure");
    }
}
