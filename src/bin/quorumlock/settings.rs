//! Where the nodes and settings come from: environment, then `--config`, then options. The later counts.

use crate::arguments::{Arguments, Word, unexpected};
use crate::exit::{Exit, Failure};
use quorumlock::protocol::endpoint::Endpoint;
use quorumlock::{Builder, Error, NodeTarget, Redlock, RestartPolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// `node_timeout` unless it is set.
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_millis(100);
/// `max_ttl` unless it is set.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(60);

/// What the variables of the environment and the file begin with.
pub(crate) const PREFIX: &str = "QUORUMLOCK_";
/// Permission of all other users to read a file.
const OTHERS_READ: u32 = 0o004;
/// Longest file that is read. A longer one is something else.
const LONGEST_FILE: u64 = 1 << 20;

/// Options that every command takes which asks the nodes, and the variable that each is.
const OPTIONS: [(&str, &str); 10] = [
    ("--drift-factor", "DRIFT_FACTOR"),
    ("--fence-retention", "FENCE_RETENTION"),
    ("--label", "LABEL"),
    ("--max-ttl", "MAX_TTL"),
    ("--node-timeout", "NODE_TIMEOUT"),
    ("--nodes", "NODES"),
    ("--place-lease", "PLACE_LEASE"),
    ("--prefix", "PREFIX"),
    ("--restart-policy", "RESTART_POLICY"),
    ("--unavailable-after", "UNAVAILABLE_AFTER"),
];

/// Options about TLS, as redis-cli names them, and the variable that each is.
const TLS_OPTIONS: [(&str, &str); 3] = [("--cacert", "CACERT"), ("--cert", "CERT"), ("--key", "KEY")];

/// The options about nodes and settings, as they are read.
#[derive(Debug, Default)]
pub(crate) struct Options {
    config: Option<PathBuf>,
    /// Whether nodes are reached by TLS whatever their URLs say.
    has_tls: bool,
    /// The name in the certificates of nodes whose URLs contain none.
    server_name: Option<String>,
    variables: BTreeMap<String, OsString>,
}

impl Options {
    /// Reads all words of a command that asks the nodes and shows what it finds: these options, and whether to write
    /// JSON. Any other word is passed to `own`, which returns whether it is an option of the command.
    pub(crate) fn read(
        mut arguments: Arguments,
        command: &str,
        mut own: impl FnMut(&Word, &mut Arguments) -> Result<bool, Failure>,
    ) -> Result<(Options, bool), Failure> {
        let (mut options, mut is_json) = (Options::default(), false);
        while let Some(word) = arguments.next()? {
            if word.is("--json") {
                is_json = true;
            } else if !options.take(&word, &mut arguments)? && !own(&word, &mut arguments)? {
                return Err(unexpected(command, &word));
            }
        }
        Ok((options, is_json))
    }

    /// Takes an option that is one of these. False if it is another.
    pub(crate) fn take(&mut self, word: &Word, arguments: &mut Arguments) -> Result<bool, Failure> {
        let Word::Flag(flag) = word else {
            return Ok(false);
        };
        match flag.as_str() {
            "--config" => self.config = Some(arguments.text(flag)?.into()),
            "--durable" => self.set("DURABLE", "true"),
            "--sni" => {
                has_tls(flag)?;
                self.server_name = Some(server_name(flag, arguments.text(flag)?)?);
            }
            "--tls" => self.has_tls = has_tls(flag)?,
            _ => match OPTIONS.iter().chain(&TLS_OPTIONS).find(|(option, _)| option == flag) {
                Some((_, variable)) => {
                    if TLS_OPTIONS.iter().any(|(option, _)| option == flag) {
                        has_tls(flag)?;
                    }
                    let value = arguments.text(flag)?;
                    self.set(variable, &value);
                }
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    pub(crate) fn set(&mut self, variable: &str, value: &str) {
        self.variables.insert(format!("{PREFIX}{variable}"), value.into());
    }

    /// Puts everything together.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut variables: BTreeMap<_, _> = environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        if let Some(path) = &self.config {
            variables.extend(read_file(path)?);
        }
        let given = self.variables.keys().cloned().collect();
        variables.extend(self.variables);
        let mut settings = Settings { variables, given };
        if self.has_tls || self.server_name.is_some() {
            let name = self.server_name.as_deref();
            let by_tls = |url: &str| if self.has_tls { by_tls(url) } else { url.to_owned() };
            let urls: Vec<String> = settings.urls().map(|url| named(by_tls(url), name)).collect();
            let urls = urls.join(",");
            settings.variables.insert(format!("{PREFIX}NODES"), urls.into());
        }
        Ok(settings)
    }
}

/// Whether this program has TLS: true, or the failure of an option that needs it.
fn has_tls(flag: &str) -> Result<bool, Failure> {
    let why =
        || format!("{flag} needs TLS, which this program was built without: cargo install with --features cli,tls");
    if cfg!(feature = "tls") { Ok(true) } else { Err(Failure::usage(why())) }
}

/// The URL of the same node by TLS. A Unix domain socket has none, and needs none.
fn by_tls(url: &str) -> String {
    let secured = [("redis://", "rediss://"), ("valkey://", "valkeys://")];
    let rest = |&(plain, tls): &(&str, &str)| url.strip_prefix(plain).map(|rest| format!("{tls}{rest}"));
    secured.iter().find_map(rest).unwrap_or_else(|| url.to_owned())
}

/// The URL of a node with a name that its certificate must be for, unless it contains one or is not by TLS.
fn named(url: String, name: Option<&str>) -> String {
    let is_tls = url.starts_with("rediss://") || url.starts_with("valkeys://");
    match name {
        Some(name) if is_tls && !url.contains("server_name=") => {
            let separator = if url.contains('?') { '&' } else { '?' };
            format!("{url}{separator}server_name={name}")
        }
        _ => url,
    }
}

/// A name that can be part of a URL.
fn server_name(flag: &str, name: String) -> Result<String, Failure> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    match name.bytes().all(is_part) {
        true => Ok(name),
        false => Err(Failure::usage(format!("{flag} takes a host name or an IP address"))),
    }
}

/// The settings of one deployment.
pub(crate) struct Settings {
    variables: BTreeMap<String, OsString>,
    /// Those that were options.
    given: BTreeSet<String>,
}

impl Settings {
    pub(crate) fn builder(&self) -> Result<Builder, Failure> {
        Builder::from_variables(PREFIX, &self.variables).map_err(|error| self.failure(error))
    }

    pub(crate) fn client(&self) -> Result<Redlock, Failure> {
        self.builder()?.build().map_err(|error| self.failure(error))
    }

    /// The nodes, in the order in which they are named.
    pub(crate) fn targets(&self) -> Result<Vec<NodeTarget>, Failure> {
        self.builder()?.targets().map_err(|error| self.failure(error))
    }

    /// The failure, with the name of the setting as it was given: as an option, or as a variable.
    fn failure(&self, error: Error) -> Failure {
        let mut failure = Failure::from(error);
        for (option, variable) in OPTIONS.iter().chain(&TLS_OPTIONS) {
            let name = format!("{PREFIX}{variable}");
            // A file is named by its path alone.
            let file = self.text(variable).map(|path| format!("tls: {path}: "));
            if let Some(rest) = file.and_then(|file| failure.message.strip_prefix(&file)) {
                failure.message = format!("{name}: {}: {rest}", self.text(variable).unwrap_or_default());
            }
            if self.given.contains(&name) {
                failure.message = failure.message.replace(&name, option);
            }
        }
        failure
    }

    /// Their URLs. Not to be shown.
    fn urls(&self) -> impl Iterator<Item = &str> {
        quorumlock::node_urls(self.text("NODES").unwrap_or_default())
    }

    pub(crate) fn prefix(&self) -> &str {
        self.text("PREFIX").unwrap_or_default()
    }

    /// A duration among the settings, or the default of the library.
    pub(crate) fn duration(&self, variable: &str, otherwise: Duration) -> Duration {
        self.text(variable).and_then(quorumlock::duration).unwrap_or(otherwise)
    }

    /// This time to live of a trial's lock, or the longest that is allowed if that is shorter.
    pub(crate) fn trial_ttl(&self, ttl: Duration) -> Duration {
        ttl.min(self.duration("MAX_TTL", MAX_TTL))
    }

    /// The restart policy, which must be a valid one.
    pub(crate) fn restart_policy(&self) -> RestartPolicy {
        match self.text("RESTART_POLICY") {
            Some("off") => RestartPolicy::Off,
            Some("strict") => RestartPolicy::Strict,
            _ => RestartPolicy::Observed,
        }
    }

    /// A setting as it is written; none if it is empty.
    pub(crate) fn text(&self, variable: &str) -> Option<&str> {
        let value = self.variables.get(&format!("{PREFIX}{variable}"))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }
}

/// Reads `NAME=value` lines; blank lines and those that begin with `#` are comments. Quotation marks around a value are
/// taken off, as systemd and compose files write them.
fn read_file(path: &PathBuf) -> Result<BTreeMap<String, OsString>, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::CONFIG, format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    let mut text = String::new();
    file.take(LONGEST_FILE).read_to_string(&mut text).map_err(failed)?;
    let variables = parse(&text)
        .map_err(|line| Failure::new(Exit::CONFIG, format!("{}: line {line} is no NAME=value", path.display())))?;
    if mode & OTHERS_READ != 0 && has_password(&variables) {
        let message = format!("{} holds a password and all users can read it: chmod o-r", path.display());
        return Err(Failure::new(Exit::CONFIG, message));
    }
    Ok(variables)
}

/// The variables of a file, or the number of the line that is none.
fn parse(text: &str) -> Result<BTreeMap<String, OsString>, usize> {
    let mut variables = BTreeMap::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric());
        if !is_name {
            return Err(index + 1);
        }
        variables.insert(name.to_owned(), OsString::from(unquoted(value.trim())));
    }
    Ok(variables)
}

fn unquoted(value: &str) -> &str {
    let inside = |mark| value.strip_prefix(mark)?.strip_suffix(mark);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Whether a URL among the nodes has a password. What cannot be read as a URL may have one.
fn has_password(variables: &BTreeMap<String, OsString>) -> bool {
    let Some(nodes) = variables.get(&format!("{PREFIX}NODES")) else {
        return false;
    };
    let is_secret = |url: &str| Endpoint::parse(url).map_or(true, |node| node.handshake().password.is_some());
    quorumlock::node_urls(&nodes.to_string_lossy()).any(is_secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_names_values_comments_and_quotation_marks() {
        let text = "# nodes\n\nQUORUMLOCK_NODES = \"redis://a redis://b\"\nQUORUMLOCK_PREFIX='jobs/'\nX=\n";
        let variables = parse(text).unwrap();
        let value = |name: &str| variables[name].to_str().unwrap();
        assert_eq!(value("QUORUMLOCK_NODES"), "redis://a redis://b");
        assert_eq!((value("QUORUMLOCK_PREFIX"), value("X")), ("jobs/", ""));
        assert_eq!((parse("a=b\nnonsense"), parse("a b=c")), (Err(2), Err(1)));
    }

    #[test]
    fn a_password_is_found_and_what_cannot_be_read_may_be_one() {
        let secret = |nodes: &str| has_password(&BTreeMap::from([("QUORUMLOCK_NODES".to_owned(), nodes.into())]));
        assert!(secret("redis://a,redis://:hunter2@b") && secret("redis://user:hunter2"));
        assert!(!secret("redis://a,unix:///b"));
        assert!(!has_password(&BTreeMap::new()));
    }

    #[test]
    fn tls_is_for_nodes_that_have_a_network_in_between() {
        let table = [
            ("redis://:p@a:1/2", "rediss://:p@a:1/2"),
            ("valkey://a", "valkeys://a"),
            ("rediss://a", "rediss://a"),
            ("unix:///a", "unix:///a"),
            ("redis", "redis"),
        ];
        for (url, expected) in table {
            assert_eq!(by_tls(url), expected);
        }
        let table = [
            ("rediss://a:1/2", "rediss://a:1/2?server_name=b"),
            ("valkeys://a?durable=true", "valkeys://a?durable=true&server_name=b"),
            ("rediss://a?server_name=c", "rediss://a?server_name=c"),
            ("redis://a", "redis://a"),
            ("unix:///a", "unix:///a"),
        ];
        for (url, expected) in table {
            assert_eq!(named(url.to_owned(), Some("b")), expected);
            assert_eq!(named(url.to_owned(), None), url);
        }
    }
}
