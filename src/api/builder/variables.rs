//! Settings from variables of the environment, or of a file of the same form.
//!
//! One table names each variable and the setting that it makes. An error names the variable and
//! never the value, because a value may hold a password.

use super::Builder;
use crate::algorithm::lease::{Ttl, TtlError};
use crate::algorithm::quarantine::RestartPolicy;
use crate::algorithm::time::{Human, parse_duration};
use crate::events::error::{Error, Result, config_error};
use crate::protocol::endpoint;
use Setter::{Other, Text, Time, Truth};
use std::ffi::OsStr;
use std::time::Duration;

/// What makes a setting of a value. A value that cannot be one is refused.
enum Setter {
    Text(fn(Builder, &str) -> Builder),
    Time(fn(Builder, Duration) -> Builder),
    Truth(fn(Builder, bool) -> Builder),
    /// With what the value must be; none if it cannot be that.
    Other(&'static str, fn(Builder, &str) -> Option<Builder>),
}

/// A variable that makes no setting, for this reason.
const fn refused(why: &'static str) -> Setter {
    Other(why, |_, _| None)
}

/// What a variable about TLS needs.
#[cfg(not(feature = "tls"))]
const NO_TLS: Setter = refused("needs TLS, which this program was built without (feature tls)");

/// Each variable behind the prefix, and its setting. `NODES` is apart: an error in it names the
/// node.
const VARIABLES: &[(&str, Setter)] = &[
    #[cfg(not(feature = "tls"))]
    ("CACERT", NO_TLS),
    #[cfg(not(feature = "tls"))]
    ("CERT", NO_TLS),
    #[cfg(not(feature = "tls"))]
    ("KEY", NO_TLS),
    #[cfg(feature = "tls")]
    (
        "CACERT",
        Text(|builder, value| builder.change_tls(|tls| tls.roots_file(value))),
    ),
    #[cfg(feature = "tls")]
    (
        "CERT",
        Text(|builder, value| builder.change_tls(|tls| tls.certificate_file(value.into()))),
    ),
    (
        "DRIFT_FACTOR",
        Other("must be a number, such as 0.01", |builder, value| {
            Some(builder.drift_factor(value.parse().ok()?))
        }),
    ),
    ("DURABLE", Truth(Builder::durable)),
    ("FENCE_RETENTION", Time(Builder::fence_retention)),
    #[cfg(feature = "tls")]
    (
        "KEY",
        Text(|builder, value| builder.change_tls(|tls| tls.key_file(value.into()))),
    ),
    (
        "LABEL",
        Other(
            "must be 1 to 64 visible ASCII characters",
            |builder, value| {
                Some(builder.label(value)).filter(|builder| builder.settings.label.is_some())
            },
        ),
    ),
    ("MAX_TTL", Time(Builder::max_ttl)),
    ("NODE_TIMEOUT", Time(Builder::node_timeout)),
    (
        "PASSWORD_FILE",
        Text(|builder, value| builder.password_file(value)),
    ),
    ("PLACE_LEASE", Time(Builder::place_lease)),
    ("PREFIX", Text(|builder, value| builder.prefix(value))),
    (
        "RELEASE_NOTIFICATIONS",
        Truth(Builder::release_notifications),
    ),
    (
        "RESTART_POLICY",
        Other("must be observed, strict or off", |builder, value| {
            let policy = match value {
                "observed" => RestartPolicy::Observed,
                "off" => RestartPolicy::Off,
                "strict" => RestartPolicy::Strict,
                _ => return None,
            };
            Some(builder.restart_policy(policy))
        }),
    ),
    (
        "RETRY_DELAY",
        Other(
            "must be two durations, such as 2ms,250ms",
            |builder, value| {
                let (shortest, longest) = value.split_once(',')?;
                Some(builder.retry_delay(
                    parse_duration(shortest.trim())?,
                    parse_duration(longest.trim())?,
                ))
            },
        ),
    ),
    (
        "SNI",
        refused("is no setting any more: write ?server_name= in each URL"),
    ),
    (
        "SPIN",
        Other("must be a duration, such as 100us", |builder, value| {
            Some(builder.spin(parse_duration(value)?))
        }),
    ),
    ("TLS", refused("is no setting: write rediss:// in each URL")),
    ("TTL", Time(Builder::ttl)),
    ("UNAVAILABLE_AFTER", Time(Builder::unavailable_after)),
];

impl Builder {
    /// Reads nodes and settings from the environment variables that begin with `prefix`,
    /// `"QUORUMLOCK_"` by custom: with the underscore. Services, the command line and C programs
    /// then have one configuration.
    ///
    /// | Variable behind the prefix | Value | Setting |
    /// |---|---|---|
    /// | `NODES` | URLs, separated by commas or blanks; a comma in a password is written `%2C`. Needed | [`nodes`](Builder::nodes) |
    /// | `CACERT` | a file of certificates in PEM | `Tls::roots_file`, with the [feature `tls`](crate::docs::tls) |
    /// | `CERT` | a file with a certificate in PEM | `Tls::identity_file`, with the [feature `tls`](crate::docs::tls) |
    /// | `DRIFT_FACTOR` | `0.01` | [`drift_factor`](Builder::drift_factor) |
    /// | `DURABLE` | `true` or `false` | [`durable`](Builder::durable) |
    /// | `FENCE_RETENTION` | `24h` | [`fence_retention`](Builder::fence_retention) |
    /// | `KEY` | a file with the private key of `CERT` | `Tls::identity_file`, with the [feature `tls`](crate::docs::tls) |
    /// | `LABEL` | `billing@host7/4711` | [`label`](Builder::label) |
    /// | `MAX_TTL` | `60s` | [`max_ttl`](Builder::max_ttl) |
    /// | `NODE_TIMEOUT` | `100ms` | [`node_timeout`](Builder::node_timeout) |
    /// | `PASSWORD_FILE` | a file with a password | [`password_file`](Builder::password_file) |
    /// | `PLACE_LEASE` | `1s` | [`place_lease`](Builder::place_lease) |
    /// | `PREFIX` | any text | [`prefix`](Builder::prefix) |
    /// | `RELEASE_NOTIFICATIONS` | `true` or `false` | [`release_notifications`](Builder::release_notifications) |
    /// | `RESTART_POLICY` | `observed`, `strict` or `off` | [`restart_policy`](Builder::restart_policy) |
    /// | `RETRY_DELAY` | `2ms,250ms` | [`retry_delay`](Builder::retry_delay) |
    /// | `SPIN` | `100us` | [`spin`](Builder::spin) |
    /// | `TTL` | `10s` | [`ttl`](Builder::ttl) |
    /// | `UNAVAILABLE_AFTER` | `3s` | [`unavailable_after`](Builder::unavailable_after) |
    ///
    /// A duration is a number, with decimals if need be, and `us`, `ms`, `s`, `m`, `h` or `d`. A
    /// variable that is unset or empty leaves the default. Other variables are ignored; those about
    /// TLS are an error without the feature. `SNI` and `TLS` are errors: write `?server_name=` and
    /// `rediss://` in each URL. `TTL` is no longer than `MAX_TTL`. The builder can be changed
    /// further.
    ///
    /// ```no_run
    /// use quorumlock::Builder;
    ///
    /// // QUORUMLOCK_NODES="redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3" QUORUMLOCK_TTL=30s
    /// let redlock = Builder::from_env("QUORUMLOCK_")?.build()?;
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config): no nodes, or a value that cannot be used. The message
    /// names the variable, and not the value, which may hold a password.
    pub fn from_env(prefix: &str) -> Result<Builder> {
        Builder::from_variables(prefix, std::env::vars_os())
    }

    /// [`from_env`](Builder::from_env), with variables that come from elsewhere, such as a file. Of
    /// two with the same name, the later counts.
    ///
    /// ```
    /// use quorumlock::Builder;
    ///
    /// let variables = [("LOCKS_NODES", "redis://10.0.0.1"), ("LOCKS_PREFIX", "jobs/")];
    /// let redlock = Builder::from_variables("LOCKS_", variables)?.build()?;
    ///
    /// let error = Builder::from_variables("LOCKS_", [("LOCKS_NODES", "redis://:secret@")]).unwrap_err();
    /// assert_eq!(error.to_string(), "LOCKS_NODES: node 0: no host; write redis://host:port");
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_env`](Builder::from_env).
    pub fn from_variables<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        prefix: &str,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Builder> {
        let mut builder = Builder::new();
        let mut nodes = None;
        let mut lacks_underscore = false;
        for (name, value) in variables {
            let Some(name) = name
                .as_ref()
                .to_str()
                .and_then(|name| name.strip_prefix(prefix))
            else {
                continue;
            };
            lacks_underscore |= name == "_NODES";
            let setting = VARIABLES.iter().find(|(known, _)| *known == name);
            if (setting.is_none() && name != "NODES") || value.as_ref().is_empty() {
                continue;
            }
            let refused = |why: &str| config_error(format!("{prefix}{name}: {why}"));
            let value = value
                .as_ref()
                .to_str()
                .ok_or_else(|| refused("is not UTF-8"))?;
            match setting {
                Some((_, setter)) => {
                    builder = builder
                        .with(setter, value)
                        .map_err(|error| refused(&error.to_string()))?;
                }
                None => nodes = Some(value.to_owned()),
            }
        }
        #[cfg(feature = "tls")]
        if builder.tls.has_half_an_identity() {
            return Err(config_error(format!(
                "{prefix}CERT and {prefix}KEY are set together or not at all"
            )));
        }
        if builder.settings.ttl.is_some() {
            builder.check_ttl(prefix)?;
        }
        let refused = |error: Error| config_error(format!("{prefix}NODES: {error}"));
        let nodes = nodes.ok_or_else(|| match lacks_underscore {
            true => config_error(format!(
                "{prefix}NODES is not set, and {prefix}_NODES is: the prefix is \"{prefix}_\""
            )),
            false => config_error(format!(
                "{prefix}NODES is not set: it names the nodes by their URLs"
            )),
        })?;
        builder = builder.nodes(endpoint::urls(&nodes));
        builder.endpoints().map_err(refused)?;
        Ok(builder)
    }

    /// The setting whose variable has this name in upper case, for the C interface.
    ///
    /// # Errors
    /// As [`from_env`](Builder::from_env).
    #[cfg(feature = "capi")]
    pub(crate) fn set(self, name: &str, value: &str) -> Result<Builder> {
        let known = VARIABLES
            .iter()
            .find(|(known, _)| known.to_ascii_lowercase() == name);
        let (_, setter) =
            known.ok_or_else(|| config_error(format!("no setting has the name {name:?}")))?;
        self.with(setter, value)
            .map_err(|error| config_error(format!("{name}: {error}")))
    }

    /// The builder with the setting that a value makes.
    fn with(self, setter: &Setter, value: &str) -> Result<Builder> {
        let builder = match *setter {
            Text(set) => set(self, value),
            Time(set) => {
                let time = parse_duration(value)
                    .ok_or_else(|| config_error("must be a duration, such as 250ms, 30s or 5m"))?;
                set(self, time)
            }
            Truth(set) => {
                let truth = value
                    .parse()
                    .map_err(|_| config_error("must be true or false"))?;
                set(self, truth)
            }
            Other(expected, set) => set(self, value).ok_or_else(|| config_error(expected))?,
        };
        builder.check_each()?;
        Ok(builder)
    }

    /// The time to live of a variable, against the other settings: what fails at the first lock
    /// would not name it.
    fn check_ttl(&self, prefix: &str) -> Result<()> {
        let settings = &self.settings;
        let why = match Ttl::new(
            settings.default_ttl(),
            settings.drift_factor,
            settings.max_ttl,
        ) {
            Ok(_) => return Ok(()),
            Err(TtlError::TooShort) => "must be at least 1 ms".to_owned(),
            Err(TtlError::TooLong) => {
                format!(
                    "is longer than {prefix}MAX_TTL ({})",
                    Human(settings.max_ttl)
                )
            }
            Err(TtlError::EatenByDrift) => {
                "is no longer than the allowance for clock drift".to_owned()
            }
        };
        Err(config_error(format!("{prefix}TTL: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::settings::Settings;

    #[cfg(feature = "tls")]
    #[test]
    fn half_a_client_certificate_is_refused() {
        for name in ["Q_CERT", "Q_KEY"] {
            let message = refusal(&[("Q_NODES", "rediss://a"), (name, "hunter2.pem")]);
            assert_eq!(message, "Q_CERT and Q_KEY are set together or not at all");
        }
    }

    #[cfg(all(feature = "capi", feature = "tls"))]
    #[test]
    fn half_a_client_certificate_makes_no_client() {
        for name in ["cert", "key"] {
            let error = Builder::new()
                .node("rediss://a")
                .set(name, "hunter2.pem")
                .unwrap()
                .build()
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "tls: a certificate and its key are set together or not at all"
            );
        }
    }

    #[cfg(feature = "capi")]
    #[test]
    fn a_setting_has_the_name_of_its_variable_in_lower_case() {
        let refusal =
            |name: &str, value: &str| Builder::new().set(name, value).unwrap_err().to_string();
        assert_eq!(
            Builder::new()
                .set("ttl", "7s")
                .unwrap()
                .settings
                .default_ttl(),
            Duration::from_secs(7)
        );
        assert_eq!(
            refusal("ttl", "hunter2"),
            "ttl: must be a duration, such as 250ms, 30s or 5m"
        );
        for name in ["TTL", "nodes", ""] {
            let unknown = format!("no setting has the name {name:?}");
            assert_eq!(refusal(name, "7s"), unknown);
        }
    }

    const NODES: (&str, &str) = ("Q_NODES", "redis://a");

    fn refusal(variables: &[(&str, &str)]) -> String {
        Builder::from_variables("Q_", variables.iter().copied())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_variable_makes_its_setting() {
        let variables = [
            ("Q_NODES", "redis://a, redis://b\nunix:///c"),
            ("Q_DRIFT_FACTOR", "0.02"),
            ("Q_DURABLE", "true"),
            ("Q_FENCE_RETENTION", "25h"),
            ("Q_LABEL", "billing@host7"),
            ("Q_MAX_TTL", "2m"),
            ("Q_NODE_TIMEOUT", "30ms"),
            ("Q_PLACE_LEASE", "2s"),
            ("Q_PREFIX", "jobs/"),
            ("Q_RELEASE_NOTIFICATIONS", "false"),
            ("Q_RESTART_POLICY", "strict"),
            ("Q_RETRY_DELAY", "1ms, 50ms"),
            ("Q_SPIN", "0"),
            ("Q_TTL", "7s"),
            ("Q_UNAVAILABLE_AFTER", "4s"),
            ("Q_OTHER", "ignored"),
            ("NODES", "ignored"),
        ];
        let builder = Builder::from_variables("Q_", variables).unwrap();
        let settings = builder.settings;
        let urls: Vec<&str> = builder.nodes.iter().map(String::as_str).collect();
        assert_eq!(urls, ["redis://a", "redis://b", "unix:///c"]);
        assert_eq!(
            (
                settings.drift_factor,
                settings.durable,
                settings.release_notifications
            ),
            (0.02, true, false)
        );
        assert_eq!(
            (settings.prefix.as_str(), settings.restart_policy),
            ("jobs/", RestartPolicy::Strict)
        );
        assert_eq!(
            settings.label.as_ref().unwrap().as_str(),
            Some("billing@host7")
        );
        let millis = [
            (settings.fence_retention, 25 * 3_600_000),
            (settings.max_ttl, 120_000),
            (settings.node_timeout, 30),
            (settings.retry_min, 1),
            (settings.retry_max, 50),
            (settings.spin, 0),
            (settings.default_ttl(), 7000),
            (settings.unavailable_after, 4000),
        ];
        for (time, millis) in millis {
            assert_eq!(time, Duration::from_millis(millis));
        }
    }

    #[test]
    fn an_empty_variable_is_none() {
        let builder =
            Builder::from_variables("Q_", [("Q_NODES", "redis://a"), ("Q_TTL", "")]).unwrap();
        assert_eq!(
            builder.settings.default_ttl(),
            Settings::default().default_ttl()
        );
    }

    #[test]
    fn a_refusal_names_the_variable_and_never_the_value() {
        for (name, setter) in VARIABLES {
            let expected = match setter {
                Text(_) => continue,
                Other(expected, _) => expected,
                Time(_) => "must be a duration, such as 250ms, 30s or 5m",
                Truth(_) => "must be true or false",
            };
            let message = refusal(&[
                ("Q_NODES", "redis://a"),
                (&format!("Q_{name}"), "hunter2 or so"),
            ]);
            assert_eq!(message, format!("Q_{name}: {expected}"));
        }
        let table: [(&[(&str, &str)], &str); 11] = [
            (&[("Q_TTL", "1s")], "Q_NODES is not set"),
            (&[("Q_NODES", " , ")], "Q_NODES: no node"),
            (
                &[("Q_NODES", "redis://:hunter2@h,redis://:hunter2@")],
                "Q_NODES: node 1: no host",
            ),
            (
                &[("Q_NODES", "redis://:hunter2@h redis://h")],
                "Q_NODES: node 1 is node 0 again",
            ),
            (
                &[("Q_NODE_TIMEOUT", "0")],
                "Q_NODE_TIMEOUT: node_timeout must be",
            ),
            (
                &[("Q_RETRY_DELAY", "5s,1s")],
                "Q_RETRY_DELAY: retry_delay must be",
            ),
            (
                &[("Q_TTL", "5"), NODES],
                "Q_TTL: must be a duration, such as 250ms, 30s or 5m",
            ),
            (
                &[("Q_TTL", "90s"), NODES],
                "Q_TTL: is longer than Q_MAX_TTL (60 s)",
            ),
            (
                &[("Q_TTL", "5s"), ("Q_MAX_TTL", "4s"), NODES],
                "Q_TTL: is longer than Q_MAX_TTL (4 s)",
            ),
            (&[("Q_TTL", "5us"), NODES], "Q_TTL: must be at least 1 ms"),
            (
                &[("Q_TTL", "2ms"), NODES],
                "Q_TTL: is no longer than the allowance for clock drift",
            ),
        ];
        for (variables, words) in table {
            let message = refusal(variables);
            assert!(
                message.starts_with(words) && !message.contains("hunter2"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_prefix_without_its_underscore_is_named() {
        let variables = [("Q_NODES", "redis://a"), ("Q_TTL", "5s")];
        let error = Builder::from_variables("Q", variables).unwrap_err();
        assert_eq!(
            error.to_string(),
            "QNODES is not set, and Q_NODES is: the prefix is \"Q_\""
        );
        assert!(Builder::from_variables("Q_", variables).is_ok());
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn a_variable_about_tls_is_named_where_there_is_none() {
        for name in ["Q_CACERT", "Q_CERT", "Q_KEY"] {
            let message = refusal(&[NODES, (name, "hunter2")]);
            assert_eq!(
                message,
                format!("{name}: needs TLS, which this program was built without (feature tls)")
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_refused_and_other_names_are_not_looked_at() {
        use std::os::unix::ffi::OsStrExt;
        let bytes = OsStr::from_bytes(b"\xff");
        let of = |name: &'static str| {
            Builder::from_variables("Q_", [(OsStr::new(name), bytes)]).unwrap_err()
        };
        assert_eq!(of("Q_TTL").to_string(), "Q_TTL: is not UTF-8");
        assert!(of("OTHER").to_string().starts_with("Q_NODES is not set"));
    }
}
