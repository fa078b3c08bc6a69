//! `manual`: the manual page. Its options are those that clap knows.

use clap::{Arg, Command};

/// Begins a line of the page in whose place the options of a command are put.
const OPTIONS: &str = ".OPTIONS ";

/// The page, with all options of this program.
pub(crate) fn page(mut program: Command) -> String {
    program.build();
    let options = |name: &str| -> String {
        // All commands have the same options about nodes and settings.
        let (is_shared, name) = if name == "settings" {
            (true, "nodes")
        } else {
            (false, name)
        };
        let arguments = program
            .find_subcommand(name)
            .into_iter()
            .flat_map(Command::get_arguments);
        let listed =
            arguments.filter(|argument| argument.get_help_heading().is_some() == is_shared);
        listed
            .filter(|argument| !argument.is_positional() && argument.get_id() != "help")
            .map(entry)
            .collect()
    };
    let lines = include_str!("quorumlock.1").lines();
    lines
        .map(|line| {
            line.strip_prefix(OPTIONS)
                .map_or_else(|| format!("{line}\n"), options)
        })
        .collect()
}

fn entry(option: &Arg) -> String {
    let short = option
        .get_short()
        .map(|letter| format!("-{letter}, "))
        .unwrap_or_default();
    let mut name = format!("{short}--{}", option.get_long().unwrap_or_default());
    let mut help = option
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    if option.get_action().takes_values() {
        option
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .for_each(|value| name += &format!(" {value}"));
        let defaults = option
            .get_default_values()
            .iter()
            .filter(|_| !option.is_hide_default_value_set());
        defaults.for_each(|value| help += &format!(" ({})", value.display()));
    }
    format!(".TP\n\\fB{name}\\fR\n{help}\n").replace('-', "\\-")
}
