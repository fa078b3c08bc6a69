//! The nodes and settings of a client to be.

use super::boundary::{call, call_or, call_with_error};
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::{Borrowed, Output, Returned, new_handle};
use super::observer::{self, ObserverFn};
use super::text::Bytes;
use super::userdata::{ReleaseFn, Userdata};
use crate::{Builder, Redlock, RestartPolicy, host_label};
use std::ffi::{c_int, c_void};
use std::ptr::null;
use std::time::Duration;

/// `quorumlock_config`.
pub(super) struct ConfigHandle(ForkSafeMutex<Settings>);

/// What has been set.
#[derive(Clone)]
pub(super) struct Settings {
    builder: Builder,
    /// The URLs of nodes. Apart from the builder, so that the last one can be changed.
    pub(super) nodes: Vec<String>,
}

/// The URL with this parameter, in place of one of the same name.
pub(super) fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (location, query) = url.split_once('?').map_or((url, None), |(location, query)| (location, Some(query)));
    let is_other = |parameter: &&str| parameter.split_once('=').map(|(other, _)| other) != Some(name);
    let others = query.into_iter().flat_map(|query| query.split('&')).filter(is_other);
    let parameters: Vec<String> = others.map(str::to_owned).chain([format!("{name}={value}")]).collect();
    format!("{location}?{}", parameters.join("&"))
}

impl Settings {
    fn of(builder: Builder) -> Settings {
        Settings { builder, nodes: Vec::new() }
    }
}

/// `quorumlock_restart_policy`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) enum RestartPolicyNumber {
    Observed = 0,
    Off = 1,
    Strict = 2,
}

impl RestartPolicyNumber {
    fn of(number: c_int) -> Option<RestartPolicyNumber> {
        [RestartPolicyNumber::Observed, RestartPolicyNumber::Off, RestartPolicyNumber::Strict]
            .into_iter()
            .find(|&guard| guard as c_int == number)
    }
}

impl ConfigHandle {
    pub(super) fn builder(&self) -> Result<Builder> {
        let settings = self.0.lock()?.clone();
        Ok(settings.builder.nodes(settings.nodes))
    }

    /// Changes settings, or gives the reason why not.
    pub(super) fn try_change(&self, change: impl FnOnce(&mut Settings) -> Result<()>) -> Result<Code> {
        change(&mut *self.0.lock()?)?;
        Ok(Code::Ok)
    }

    pub(super) fn change(&self, change: impl FnOnce(Builder) -> Builder) -> Result<Code> {
        self.try_change(|settings| {
            settings.builder = change(settings.builder.clone());
            Ok(())
        })
    }

    fn add_node(&self, url: String) -> Result<Code> {
        self.try_change(|settings| {
            settings.nodes.push(url);
            Ok(())
        })
    }
}

fn change(config: &Borrowed<ConfigHandle>, change: impl FnOnce(Builder) -> Builder) -> Code {
    call(|| config.required("config")?.change(change))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_new() -> *const ConfigHandle {
    call_or(null(), || Some(new_handle(ConfigHandle(ForkSafeMutex::new(Settings::of(Redlock::builder())).ok()?))))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_from_env(
    prefix: Bytes,
    prefix_length: usize,
    config: Output<*const ConfigHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let prefix = prefix.text(prefix_length, "prefix")?;
        let config = config.required("config")?;
        config.write_handle(ConfigHandle(ForkSafeMutex::new(Settings::of(Builder::from_env(prefix)?))?));
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_free(config: Returned<ConfigHandle>) {
    call_or((), || config.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_add_node(config: Borrowed<ConfigHandle>, url: Bytes, url_length: usize) -> Code {
    call(|| {
        let config = config.required("config")?;
        let url = url.text(url_length, "url")?;
        config.add_node(url.to_owned())
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_add_durable_node(
    config: Borrowed<ConfigHandle>,
    url: Bytes,
    url_length: usize,
) -> Code {
    call(|| {
        let config = config.required("config")?;
        let url = url.text(url_length, "url")?;
        config.add_node(with_parameter(url, "durable", "true"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_prefix(
    config: Borrowed<ConfigHandle>,
    prefix: Bytes,
    prefix_length: usize,
) -> Code {
    call(|| {
        let config = config.required("config")?;
        let prefix = prefix.text(prefix_length, "prefix")?;
        config.change(|builder| builder.prefix(prefix))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_label(config: Borrowed<ConfigHandle>, label: Bytes, label_length: usize) -> Code {
    call(|| {
        let config = config.required("config")?;
        let label = label.text(label_length, "label")?;
        config.change(|builder| builder.label(label))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_label_here(config: Borrowed<ConfigHandle>) -> Code {
    change(&config, |builder| builder.label(host_label()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_node_timeout_ms(config: Borrowed<ConfigHandle>, timeout_ms: u64) -> Code {
    change(&config, |builder| builder.node_timeout(Duration::from_millis(timeout_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_drift_factor(config: Borrowed<ConfigHandle>, factor: f64) -> Code {
    change(&config, |builder| builder.drift_factor(factor))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_retry_delay_ms(
    config: Borrowed<ConfigHandle>,
    shortest_ms: u64,
    longest_ms: u64,
) -> Code {
    let (shortest, longest) = (Duration::from_millis(shortest_ms), Duration::from_millis(longest_ms));
    change(&config, |builder| builder.retry_delay(shortest, longest))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_unavailable_after_ms(config: Borrowed<ConfigHandle>, time_ms: u64) -> Code {
    change(&config, |builder| builder.unavailable_after(Duration::from_millis(time_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_ttl_ms(config: Borrowed<ConfigHandle>, ttl_ms: u64) -> Code {
    change(&config, |builder| builder.ttl(Duration::from_millis(ttl_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_max_ttl_ms(config: Borrowed<ConfigHandle>, ttl_ms: u64) -> Code {
    change(&config, |builder| builder.max_ttl(Duration::from_millis(ttl_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_restart_policy(config: Borrowed<ConfigHandle>, policy: c_int) -> Code {
    call(|| {
        let config = config.required("config")?;
        let policy = RestartPolicyNumber::of(policy).ok_or_else(|| Failure::plain(Code::InvalidArgument))?;
        config.change(|builder| {
            builder.restart_policy(match policy {
                RestartPolicyNumber::Observed => RestartPolicy::Observed,
                RestartPolicyNumber::Off => RestartPolicy::Off,
                RestartPolicyNumber::Strict => RestartPolicy::Strict,
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_durable(config: Borrowed<ConfigHandle>, durable: c_int) -> Code {
    change(&config, |builder| builder.durable(durable != 0))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_release_notifications(config: Borrowed<ConfigHandle>, enabled: c_int) -> Code {
    change(&config, |builder| builder.release_notifications(enabled != 0))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_fence_retention_ms(config: Borrowed<ConfigHandle>, time_ms: u64) -> Code {
    change(&config, |builder| builder.fence_retention(Duration::from_millis(time_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_place_lease_ms(config: Borrowed<ConfigHandle>, time_ms: u64) -> Code {
    change(&config, |builder| builder.place_lease(Duration::from_millis(time_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_spin_us(config: Borrowed<ConfigHandle>, time_us: u64) -> Code {
    change(&config, |builder| builder.spin(Duration::from_micros(time_us)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_add_observer(
    config: Borrowed<ConfigHandle>,
    observer: Option<ObserverFn>,
    userdata: *mut c_void,
    release: ReleaseFn,
) -> Code {
    call(|| {
        // Owned from here on: it is released also if this fails.
        let userdata = Userdata::new(userdata, release);
        let config = config.required("config")?;
        let observer = observer::calling(observer, userdata)?;
        config.change(|builder| builder.observer(observer))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_replaces_one_of_its_name() {
        let table = [
            ("redis://h", "redis://h?durable=true"),
            ("redis://h?db=1", "redis://h?db=1&durable=true"),
            ("redis://h?durable=true", "redis://h?durable=true"),
            ("redis://h?durable=false&db=1", "redis://h?db=1&durable=true"),
            ("redis://h?durability=false", "redis://h?durability=false&durable=true"),
            ("redis://h?durable", "redis://h?durable&durable=true"),
        ];
        for (url, expected) in table {
            assert_eq!(with_parameter(url, "durable", "true"), expected);
        }
    }
}
