//! Commands that pages print and campaigns run: the tests that they name exist, and so do the
//! variables that they set.

use super::rules::names_of_tests;
use super::{files, from_top, none, read};
#[cfg(all(feature = "cli", feature = "tls-native-roots"))]
use crate::support::process::succeeds;

/// Options of cargo that take a value.
const WITH_VALUE: [&str; 4] = ["--features", "--profile", "--test", "-p"];

/// A command as a page prints it.
#[derive(Debug, PartialEq, Eq)]
struct Command<'p> {
    variables: Vec<&'p str>,
    /// The folder of the tests: below `tests`, or `src`.
    folder: String,
    filters: Vec<&'p str>,
}

#[test]
fn every_command_names_tests_and_variables_that_exist() {
    let pages = ["README.md", ".github/CONTRIBUTING.md", "tests/campaign"].map(read);
    let manual = files("src/docs", "md").into_iter().map(|(_, text)| text);
    let texts: Vec<String> = pages.into_iter().chain(manual).collect();
    let commands: Vec<Command<'_>> = texts.iter().flat_map(|text| commands(text)).collect();
    assert!(
        commands
            .iter()
            .filter(|command| !command.filters.is_empty())
            .count()
            > 12,
        "no longer recognised"
    );
    let variables = commands.iter().flat_map(|command| &command.variables);
    assert!(variables.count() > 10, "no longer recognised");
    let tests = from_top(&["src", "tests"], "rs");
    none(
        commands
            .iter()
            .flat_map(|command| findings(command, &tests)),
    );
}

/// The tests that `tests/run` runs first or last, and the tests that `tests/servers` runs.
#[cfg(all(feature = "cli", feature = "tls-native-roots"))]
#[test]
fn every_test_that_has_its_own_turn_exists() {
    let [run, servers, alone] = ["tests/run", "tests/servers", "tests/it/alone"].map(read);
    let scripts = run.lines().chain(servers.lines());
    let lists: Vec<&str> = scripts
        .filter_map(|line| line.split_once("=\"")?.1.strip_suffix('"'))
        .filter(|list| list.contains("::"))
        .collect();
    assert!(lists.len() > 5, "no longer recognised: {lists:?}");
    let named = lists
        .iter()
        .flat_map(|list| list.split(' '))
        .chain(alone.lines().filter(|line| !line.starts_with('#')));
    let program = std::env::current_exe().unwrap();
    let listed = succeeds(std::process::Command::new(program).arg("--list"));
    let is_absent =
        |name: &&str| name.is_empty() || !listed.lines().any(|test| test.contains(name));
    let absent = named.filter(is_absent);
    none(absent.map(|name| format!("there is no test of this name: {name}")));
}

#[test]
fn each_package_of_tests_is_run() {
    let [script, manifest] = ["tests/run", "Cargo.toml"].map(read);
    let members = manifest
        .lines()
        .find(|line| line.starts_with("members = "))
        .unwrap();
    let members: Vec<&str> = members
        .split('"')
        .filter(|member| member.starts_with("tests/"))
        .collect();
    assert!(members.len() > 3, "no longer recognised: {members:?}");
    let words: Vec<&str> = script.split([' ', ')', '\n']).collect();
    let absent = members.iter().filter(|member| !words.contains(member));
    none(absent.map(|member| format!("not run: {member}")));
}

/// The commands of a page that run tests.
fn commands(page: &str) -> Vec<Command<'_>> {
    page.split(['\n', '`']).filter_map(command).collect()
}

fn command(text: &str) -> Option<Command<'_>> {
    let (before, behind) = text.split_once("cargo test ")?;
    let variables = before
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, _)| name)
        .collect();
    let words: Vec<&str> = behind.split_whitespace().collect();
    let value = |option: &str| {
        words
            .iter()
            .position(|word| *word == option)
            .and_then(|at| words.get(at + 1).copied())
    };
    let folder = match (value("-p"), value("--test")) {
        (Some(package), Some(test)) => format!("tests/{package}/{test}"),
        (Some(name), None) | (None, Some(name)) => format!("tests/{name}"),
        (None, None) => "src".to_owned(),
    };
    let mut filters = Vec::new();
    let mut is_value = false;
    for &word in &words {
        if !is_value && !word.starts_with('-') {
            filters.push(word);
        }
        is_value = WITH_VALUE.contains(&word) || word == "--skip";
    }
    Some(Command {
        variables,
        folder,
        filters,
    })
}

/// What a command names and the files do not have.
fn findings(command: &Command<'_>, files: &[(String, String)]) -> Vec<String> {
    let own: Vec<String> = files
        .iter()
        .filter_map(|(file, text)| Some(tests(file.strip_prefix(&*command.folder)?, text)))
        .flatten()
        .collect();
    let is_absent = |filter: &&&str| !own.iter().any(|name| name.contains(**filter));
    let absent = command
        .filters
        .iter()
        .filter(is_absent)
        .map(|name| format!("no test has {name} in its name"));
    let is_read = |name: &str| {
        files
            .iter()
            .any(|(_, text)| text.contains(&format!("\"{name}\"")))
    };
    let unread = command
        .variables
        .iter()
        .filter(|name| !is_read(name))
        .map(|name| format!("no test reads {name}"));
    let nothing = own.is_empty().then(|| "no test at all".to_owned());
    absent
        .chain(unread)
        .chain(nothing)
        .map(|what| format!("{command:?}: {what}"))
        .collect()
}

/// The names of the tests of a file, given below the folder of its tests, as cargo prints them.
fn tests(file: &str, text: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_matches('/');
    let module = path
        .trim_end_matches("main")
        .trim_end_matches("mod")
        .trim_matches('/')
        .replace('/', "::");
    names_of_tests(text)
        .map(|name| format!("{module}::{name}"))
        .collect()
}
