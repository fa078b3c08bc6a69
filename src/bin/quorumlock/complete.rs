//! `complete`: scripts for bash, zsh and fish, made of the help. They offer commands, options, and the files and values
//! that options take.

use crate::arguments::{Arguments, Word, unexpected};
use crate::exit::{Exit, Failure};
use crate::help::{self, NODE_OPTIONS, Topic};
use crate::report;
use std::collections::BTreeSet;

pub(crate) fn complete(mut arguments: Arguments) -> Result<Exit, Failure> {
    let script = match (arguments.next()?, arguments.next()?) {
        (Some(Word::Operand(shell)), None) => match shell.as_str() {
            "bash" => bash(),
            "zsh" => format!("#compdef quorumlock\nautoload -U +X bashcompinit && bashcompinit\n{}", bash()),
            "fish" => fish(),
            _ => return Err(Failure::usage("complete knows bash, zsh and fish")),
        },
        (None, _) => return Err(Failure::usage("complete needs a SHELL: bash, zsh or fish")),
        (Some(word), None) | (_, Some(word)) => return Err(unexpected("complete", &word)),
    };
    report::page(&script);
    Ok(Exit::OK)
}

/// What the options take whose values are few.
const CHOICES: [(&str, &str); 2] =
    [("--ignore", "no-expiry too-long foreign fence-at-rest"), ("--restart-policy", "observed strict off")];
const SHELLS: &str = "bash zsh fish";

/// What stands behind an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Nothing,
    File,
    /// One of these words.
    OneOf(&'static str),
    /// What only the user knows.
    Other,
}

/// An option of a command: `--wait`, or `-n` and `--no-wait` apart.
struct Choice {
    name: &'static str,
    value: Value,
    text: &'static str,
}

fn options(topic: &Topic) -> Vec<Choice> {
    let nodes = if topic.options.is_empty() { "" } else { NODE_OPTIONS };
    let lines = topic.options.lines().chain(nodes.lines());
    let mut options = Vec::new();
    for line in lines.filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with('-'))) {
        let (names, text) = line.split_once("  ").unwrap_or((line, ""));
        let words = || names.split([' ', ',']).filter(|word| !word.is_empty());
        let operand = words().next_back().filter(|word| !word.starts_with('-'));
        for name in words().filter(|word| word.starts_with('-')) {
            let few = CHOICES.iter().find(|(option, _)| *option == name);
            let value = match (operand, few) {
                (None, _) => Value::Nothing,
                (Some("FILE"), _) => Value::File,
                (Some(_), Some((_, words))) => Value::OneOf(words),
                (Some(_), None) => Value::Other,
            };
            options.push(Choice { name, value, text: text.trim() });
        }
    }
    options.push(Choice { name: "--help", value: Value::Nothing, text: "show the options" });
    options
}

fn bash() -> String {
    let names = help::TOPICS.iter().map(|topic| topic.name).collect::<Vec<_>>().join(" ");
    let case = |topic: &Topic| {
        let words = options(topic).iter().map(|option| option.name).collect::<Vec<_>>().join(" ");
        let words = if topic.name == "complete" { SHELLS } else { &words };
        format!("        {}) words=\"{words}\" ;;\n", topic.name)
    };
    let cases: String = help::TOPICS.iter().map(case).collect();
    let all: Vec<Choice> = help::TOPICS.iter().flat_map(options).collect();
    let with = |value: Value| {
        let names: BTreeSet<&str> =
            all.iter().filter(|option| option.value == value).map(|option| option.name).collect();
        names.into_iter().collect::<Vec<_>>().join("|")
    };
    let (files, others) = (with(Value::File), with(Value::Other));
    let choice = |(option, words): &(&str, &str)| {
        format!("        {option}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;\n")
    };
    let choices: String = CHOICES.iter().map(choice).collect();
    format!(
        "_quorumlock() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        if [[ ${{COMP_WORDS[index]}} == -- ]]; then
            COMPREPLY=($(compgen -c -f -- \"$word\"))
            return
        fi
    done
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W \"{names}\" -- \"$word\"))
        return
    fi
    # --option=value is three words.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case $before in
        {files})
            local IFS=$'\\n'
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- \"$word\"))
            return ;;
{choices}        {others}) return ;;
    esac
    case ${{COMP_WORDS[1]}} in
{cases}        help) words=\"{names}\" ;;
    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))
}}
complete -F _quorumlock quorumlock
"
    )
}

fn fish() -> String {
    let mut script = String::from("complete -c quorumlock -f\n");
    for topic in &help::TOPICS {
        let (name, summary) = (topic.name, topic.summary.replace('\'', ""));
        script += &format!("complete -c quorumlock -n __fish_use_subcommand -a {name} -d '{summary}'\n");
        for Choice { name: option, value, text } in options(topic) {
            let flag = option
                .strip_prefix("--")
                .map_or_else(|| format!("-s {}", option.trim_start_matches('-')), |long| format!("-l {long}"));
            let value = match value {
                Value::Nothing => String::new(),
                Value::File => " -r -F".to_owned(),
                Value::OneOf(words) => format!(" -x -a '{words}'"),
                Value::Other => " -x".to_owned(),
            };
            let text = text.replace('\'', "");
            let is_of = format!("-n '__fish_seen_subcommand_from {name}'");
            script += &format!("complete -c quorumlock {is_of} {flag}{value} -d '{text}'\n");
        }
    }
    script + &format!("complete -c quorumlock -n '__fish_seen_subcommand_from complete' -a '{SHELLS}'\n")
}
