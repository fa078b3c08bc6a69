//! Credentials that a function of a C program finds.

use super::boundary::calls;
use super::code::Code;
use super::config::ConfigHandle;
use super::failure::Failure;
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::{Borrowed, View};
use super::text::{Bytes, Str};
use super::userdata::{ReleaseFn, Userdata};
use crate::Credentials;
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// `quorumlock_login`: what the function has set, if anything.
type LoginObject = ForkSafeMutex<Option<Credentials>>;

/// `quorumlock_provider`.
type ProviderFn = extern "C" fn(*mut c_void, Str, *const LoginObject) -> c_int;

/// What the function has set for a node.
fn provided(function: ProviderFn, userdata: &Userdata, node: &str) -> Option<Credentials> {
    let login = ForkSafeMutex::new(None).ok()?;
    let number = function(userdata.pointer(), Str::of(node), &raw const login);
    let credentials = login.lock().ok()?.take();
    credentials.filter(|_| number == 0)
}

calls! {
    fn quorumlock_login_set(
        login: View<LoginObject>,
        user: Bytes,
        user_length: usize,
        password: Bytes,
        password_length: usize,
        refresh_after_ms: u64
    ) {
        let login = login.optional().ok_or_else(|| Failure::null("login"))?;
        let password = password.text(password_length, "password")?;
        let mut credentials = Credentials::new(password);
        if let Some(user) = user.optional_text(user_length, "user")? {
            credentials = credentials.user(user);
        }
        if refresh_after_ms > 0 {
            credentials = credentials.refresh_after(Duration::from_millis(refresh_after_ms));
        }
        *login.lock()? = Some(credentials);
        Ok(Code::Ok)
    }

    fn quorumlock_config_set_provider(
        config: Borrowed<ConfigHandle>,
        provider: Option<ProviderFn>,
        userdata: *mut c_void,
        release: ReleaseFn
    ) {
        // Owned from here on: it is released also if this fails.
        let userdata = Userdata::new(userdata, release);
        let config = config.required("config")?;
        let function = provider.ok_or_else(|| Failure::null("provider"))?;
        config.change(|builder| Ok(builder.credentials(move |node| {
            Ok(provided(function, &userdata, node).ok_or("nothing is set")?)
        })))
    }
}
