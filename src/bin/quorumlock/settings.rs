//! Where the nodes and settings come from: environment, then `--config`, then options. The later
//! counts.

use crate::exit::{self, Failure};
use crate::restart::{SHELL_STEP, this_program};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use quorumlock::algorithm::time::parse_duration;
use quorumlock::protocol::endpoint::{self, Endpoint};
use quorumlock::protocol::host;
use quorumlock::{Builder, Credentials, Error, Redlock, Settings};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// What the variables of the environment and the file begin with.
const PREFIX: &str = "QUORUMLOCK_";
/// Permission of all other users to read a file.
const OTHERS_READ: u32 = 0o004;
/// Longest file that is read. A longer one is something else.
const LONGEST_FILE: u64 = 1 << 20;

/// The options of every command that asks nodes: name, value, help. Each but `--config` and `--tls`
/// is the variable of the same name.
const OPTIONS: [(&str, &str, &str); 19] = [
    (
        "nodes",
        "URLS",
        "the nodes, separated by commas; without it, QUORUMLOCK_NODES",
    ),
    (
        "config",
        "FILE",
        "a file of QUORUMLOCK_ variables, each in a line NAME=value",
    ),
    (
        "tls",
        "",
        "reach every node by TLS, as a URL with rediss:// says of one",
    ),
    (
        "cacert",
        "FILE",
        "roots that the certificates of nodes are checked against, in PEM",
    ),
    (
        "cert",
        "FILE",
        "certificate of this program, for nodes that require one, in PEM",
    ),
    ("key", "FILE", "private key of that certificate, in PEM"),
    (
        "sni",
        "NAME",
        "the name that certificates of nodes must be for (the host in the URL)",
    ),
    (
        "label",
        "TEXT",
        "what this program calls itself, for show, ls and other programs",
    ),
    (
        "password-file",
        "FILE",
        "the password of nodes whose URLs contain none, with the user of redis://user@host",
    ),
    (
        "password-command",
        "COMMAND",
        "prints that password; the shell runs it before each connection",
    ),
    (
        "prefix",
        "TEXT",
        "is in front of the names of locks in their keys",
    ),
    ("node-timeout", "D", "how long a node has to answer (100ms)"),
    (
        "max-ttl",
        "D",
        "the longest time to live that is accepted (60s)",
    ),
    (
        "unavailable-after",
        "D",
        "how long to try while too few nodes answer (3s)",
    ),
    (
        "restart-policy",
        "P",
        "which restarted nodes do not vote for a while: observed, strict or off (observed)",
    ),
    (
        "fence-retention",
        "D",
        "how long nodes keep the number of a fenced lock (24h)",
    ),
    (
        "place-lease",
        "D",
        "how long a program that is first in the queue of a lock may let the others wait (1s)",
    ),
    (
        "drift-factor",
        "F",
        "by what part the rates of clocks may differ (0.01)",
    ),
    (
        "durable",
        "",
        "declare that all nodes keep every write that they confirm (appendfsync always)",
    ),
];
/// The options among them that are no variable.
const NO_VARIABLES: [&str; 4] = ["config", "password-command", "sni", "tls"];
/// The variables that are no option.
const NO_OPTIONS: [&str; 4] = ["release-notifications", "retry-delay", "spin", "ttl"];
/// The options about TLS, as redis-cli names them.
const TLS_OPTIONS: [&str; 5] = ["tls", "cacert", "cert", "key", "sni"];

/// The variable of the option with this name.
fn variable(option: &str) -> String {
    PREFIX.to_owned() + &option.to_ascii_uppercase().replace('-', "_")
}

/// A duration, for clap.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("must be a duration, such as 250ms, 30s or 5m")
}

/// The options of every command that shows what it finds.
#[derive(Debug, Args)]
pub(crate) struct CommonOptions {
    /// write JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) settings: Options,
}

/// Those of [`OPTIONS`] that were given, with their values. An empty value is none.
#[derive(Debug)]
pub(crate) struct Options(BTreeMap<&'static str, String>);

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        let argument = |(name, value, help): (&'static str, &'static str, &'static str)| {
            let argument = Arg::new(name).long(name).value_name(value).help(help);
            match (name, value) {
                (_, "") => argument.action(ArgAction::SetTrue),
                (_, "FILE") => argument.value_hint(ValueHint::FilePath),
                ("restart-policy", _) => {
                    let values = ["observed", "strict", "off"].map(PossibleValue::new);
                    let values = values
                        .into_iter()
                        .chain([PossibleValue::new("").hide(true)]);
                    argument
                        .value_parser(PossibleValuesParser::new(values))
                        .hide_possible_values(true)
                }
                _ => argument
                    .value_hint(ValueHint::Other)
                    .allow_hyphen_values(true),
            }
        };
        command
            .next_help_heading(
                "Nodes and settings (a duration D is a number and us, ms, s, m, h or d)",
            )
            .args(OPTIONS.map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Options::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Options, clap::Error> {
        let given = OPTIONS.iter().filter_map(|&(name, value, _)| match value {
            "" => matches.get_flag(name).then(|| (name, "true".to_owned())),
            _ => Some((name, matches.get_one::<String>(name)?.clone()))
                .filter(|(_, value)| !value.is_empty()),
        });
        Ok(Options(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Options::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Options {
    /// Puts environment, file and options together. What cannot be used is a failure, before any
    /// node is asked.
    pub(crate) fn read(&self) -> Result<Deployment, Failure> {
        if let Some(option) = TLS_OPTIONS
            .iter()
            .find(|name| self.0.contains_key(*name) && !cfg!(feature = "tls"))
        {
            let why = "needs TLS, which this program was built without: cargo install with --features cli,tls";
            return Err(Failure::usage(format!("--{option} {why}")));
        }
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut variables: BTreeMap<_, _> = environment
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        if let Some(path) = self.0.get("config") {
            variables.extend(read_file(Path::new(path))?);
        }
        let mut given = self.0.clone();
        given.retain(|name, _| !NO_VARIABLES.contains(name));
        variables.extend(
            given
                .iter()
                .map(|(name, value)| (variable(name), value.into())),
        );
        let has_tls = self.0.contains_key("tls");
        let name = self.0.get("sni").map(String::as_str);
        if has_tls || name.is_some() {
            if name.is_some_and(|name| !host::is_host(name)) {
                return Err(Failure::usage("--sni takes a host name or an IP address"));
            }
            let by_tls = |url: &str| if has_tls { by_tls(url) } else { url.to_owned() };
            let urls: Vec<String> = urls(&variables)
                .map(|url| named(by_tls(url), name))
                .collect();
            variables.insert(variable("nodes"), urls.join(",").into());
        }
        let failed = |error| failure(error, &variables, &given);
        let mut builder = Builder::from_variables(PREFIX, &variables).map_err(failed)?;
        if let Some(command) = self.0.get("password-command").cloned() {
            builder = builder.credentials(move |_| password_of(&command));
        }
        let client = builder.clone().build().map_err(failed)?;
        let endpoints = urls(&variables)
            .filter_map(|url| Endpoint::parse(url).ok())
            .collect();
        Ok(Deployment {
            builder,
            client,
            endpoints,
        })
    }
}

/// The URL of the same node by TLS. A Unix domain socket has none, and needs none.
fn by_tls(url: &str) -> String {
    let secured = [("redis://", "rediss://"), ("valkey://", "valkeys://")];
    let rest =
        |&(plain, tls): &(&str, &str)| url.strip_prefix(plain).map(|rest| format!("{tls}{rest}"));
    secured
        .iter()
        .find_map(rest)
        .unwrap_or_else(|| url.to_owned())
}

/// The URL of a node with a name that its certificate must be for, unless it contains one or is not
/// by TLS.
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

/// One deployment: its nodes, in the order in which they are named, and its settings.
pub(crate) struct Deployment {
    pub(crate) builder: Builder,
    /// Of that builder.
    pub(crate) client: Redlock,
    pub(crate) endpoints: Vec<Endpoint>,
}

impl Deployment {
    pub(crate) fn settings(&self) -> &Settings {
        self.builder.settings()
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.settings().prefix
    }

    /// This time to live of a trial's lock, or the longest that is allowed if that is shorter.
    pub(crate) fn trial_ttl(&self, ttl: Duration) -> Duration {
        ttl.min(self.settings().max_ttl)
    }
}

/// A variable as it is written; empty if there is none.
fn text<'v>(variables: &'v BTreeMap<String, OsString>, name: &str) -> &'v str {
    let value = variables.get(name).and_then(|value| value.to_str());
    value.unwrap_or_default()
}

/// The URLs of the nodes. Not to be shown.
fn urls(variables: &BTreeMap<String, OsString>) -> impl Iterator<Item = &str> {
    endpoint::urls(text(variables, &variable("nodes")))
}

/// The failure, with the name of the setting as it was given: as an option, or as a variable.
fn failure(
    error: Error,
    variables: &BTreeMap<String, OsString>,
    given: &BTreeMap<&str, String>,
) -> Failure {
    let mut failure = Failure::from(error);
    failure.message =
        failure
            .message
            .replacen("password_file: ", &format!("{PREFIX}PASSWORD_FILE: "), 1);
    for (option, ..) in OPTIONS {
        let name = variable(option);
        // A file is named by its path alone.
        let path = text(variables, &name);
        if let Some(rest) = failure.message.strip_prefix(&format!("tls: {path}: ")) {
            failure.message = format!("{name}: {path}: {rest}");
        }
        if given.contains_key(option) {
            failure.message = failure.message.replace(&name, &format!("--{option}"));
        }
    }
    failure
}

/// What a command of the shell prints, without the end of the line.
fn password_of(command: &str) -> Result<Credentials, Box<dyn std::error::Error + Send + Sync>> {
    let mut shell = this_program()?
        .args([SHELL_STEP, command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut text = String::new();
    let read = shell.stdout.take().map_or(Ok(0), |output| {
        output.take(LONGEST_FILE).read_to_string(&mut text)
    });
    // The output is closed: a command that would print more ends.
    let status = shell.wait();
    read?;
    // `run` reaps every child that has ended, and may have been first. Then the text decides.
    if let Ok(status) = status
        && !status.success()
    {
        return Err(status.to_string().into());
    }
    Ok(Credentials::of_line(&text))
}

/// Reads `NAME=value` lines; blank lines and those that begin with `#` are comments. Quotation
/// marks around a value are taken off, as systemd and compose files write them.
fn read_file(path: &Path) -> Result<BTreeMap<String, OsString>, Failure> {
    let name = path.display();
    let failed = |message| Failure::new(exit::CONFIG, message);
    let unread = |error: std::io::Error| failed(format!("cannot read {name}: {error}"));
    let file = File::open(path).map_err(unread)?;
    let mode = file.metadata().map_err(unread)?.mode();
    let mut text = String::new();
    file.take(LONGEST_FILE)
        .read_to_string(&mut text)
        .map_err(unread)?;
    let variables =
        parse(&text).map_err(|line| failed(format!("{name}: line {line} is no NAME=value")))?;
    // A misspelt one would leave a default, such as a shorter max_ttl than other programs have.
    if let Some(unknown) = variables.keys().find(|name| !is_known(name)) {
        let why = format!("{name}: no setting has the name {unknown}");
        return Err(failed(why));
    }
    if mode & OTHERS_READ != 0 && has_password(&variables) {
        let message = format!("{name} holds a password and all users can read it: chmod o-r");
        return Err(failed(message));
    }
    Ok(variables)
}

/// Whether a variable is a setting, or of another program.
fn is_known(name: &str) -> bool {
    let options = OPTIONS.map(|(option, ..)| option).into_iter();
    let mut settings = options
        .filter(|option| !NO_VARIABLES.contains(option))
        .chain(NO_OPTIONS);
    !name.starts_with(PREFIX) || settings.any(|setting| variable(setting) == name)
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
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|letter| letter == '_' || letter.is_ascii_alphanumeric());
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
    let is_secret = |url: &str| {
        Endpoint::parse(url).map_or(true, |node| node.handshake().credentials.is_some())
    };
    urls(variables).any(is_secret)
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
    fn the_variables_of_from_env_are_known_and_misspelt_ones_are_not() {
        let documented = include_str!("../../api/builder/variables.rs")
            .lines()
            .filter_map(|line| line.trim().strip_prefix("/// | `")?.split('`').next());
        let names: Vec<String> = documented.map(variable).collect();
        assert!(names.len() > 15 && names.iter().all(|name| is_known(name)));
        for option in ["config", "tls", "max-tll", ""] {
            assert!(!is_known(&variable(option)), "{option}");
        }
        assert!(is_known("MAX_TLL"), "of another program");
    }

    #[test]
    fn a_password_is_found_and_what_cannot_be_read_may_be_one() {
        let secret = |nodes: &str| {
            has_password(&BTreeMap::from([(
                "QUORUMLOCK_NODES".to_owned(),
                nodes.into(),
            )]))
        };
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
            (
                "valkeys://a?durable=true",
                "valkeys://a?durable=true&server_name=b",
            ),
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
