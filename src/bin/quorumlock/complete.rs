//! `complete`: scripts for bash, zsh and fish, made of the help.

use crate::arguments::{Arguments, Word, unexpected};
use crate::exit::{Exit, Failure};
use crate::help::{self, NODE_OPTIONS, Topic};
use crate::report;

pub(crate) fn complete(mut arguments: Arguments) -> Result<Exit, Failure> {
    let script = match (arguments.next()?, arguments.next()?) {
        (Some(Word::Operand(shell)), None) => match shell.as_str() {
            "bash" => bash(),
            "zsh" => format!("#compdef quorumlock\nautoload -U +X bashcompinit && bashcompinit\n{}", bash()),
            "fish" => fish(),
            _ => return Err(Failure::usage("complete knows bash, zsh and fish")),
        },
        (None, _) => return Err(Failure::usage("complete needs a SHELL: bash, zsh or fish")),
        (Some(word), None) => return Err(unexpected("complete", &word)),
        (_, Some(word)) => return Err(unexpected("complete", &word)),
    };
    report::page(&script);
    Ok(Exit::OK)
}

/// Each option of a command with its description: `--wait`, or `-n` and `--no-wait` apart.
fn options(topic: &Topic) -> Vec<(&'static str, &'static str)> {
    let nodes = if topic.asks_nodes { NODE_OPTIONS } else { "" };
    let lines = topic.options.lines().chain(nodes.lines());
    let mut options = Vec::new();
    for line in lines.filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with('-'))) {
        let (names, text) = line.split_once("  ").unwrap_or((line, ""));
        let names = names.split([' ', ',']).filter(|name| name.starts_with('-'));
        options.extend(names.map(|name| (name, text.trim())));
    }
    options.push(("--help", "show the options"));
    options
}

fn bash() -> String {
    let names = help::TOPICS.iter().map(|topic| topic.name).collect::<Vec<_>>().join(" ");
    let case = |topic: &Topic| {
        let words = options(topic).iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
        format!("        {}) words=\"{words}\" ;;\n", topic.name)
    };
    let cases: String = help::TOPICS.iter().map(case).collect();
    format!(
        "_quorumlock() {{
    local words index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        if [[ ${{COMP_WORDS[index]}} == -- ]]; then
            COMPREPLY=($(compgen -c -f -- \"${{COMP_WORDS[COMP_CWORD]}}\"))
            return
        fi
    done
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W \"{names}\" -- \"${{COMP_WORDS[1]}}\"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))
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
        for (option, text) in options(topic) {
            let flag = option
                .strip_prefix("--")
                .map_or_else(|| format!("-s {}", option.trim_start_matches('-')), |long| format!("-l {long}"));
            let text = text.replace('\'', "");
            script += &format!("complete -c quorumlock -n '__fish_seen_subcommand_from {name}' {flag} -d '{text}'\n");
        }
    }
    script
}
