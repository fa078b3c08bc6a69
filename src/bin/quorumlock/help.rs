//! What `--help` shows: one text for each command. Completion scripts are made of them, and a test compares the manual
//! page with them.

use crate::arguments::{Arguments, unexpected};
use crate::exit::{Exit, Failure};
use crate::report;

/// A command: its name, what it does in one line, and its help.
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) usage: &'static str,
    /// Its own options; none of a command that does not ask the nodes, and takes no options about them either.
    pub(crate) options: &'static str,
    /// What stands below the options.
    pub(crate) notes: &'static str,
}

/// All commands, in the order of the manual.
pub(crate) const TOPICS: [Topic; 10] = [
    Topic {
        name: "run",
        summary: "run a command under a lock; it is dead before the lease is",
        usage: "quorumlock run [OPTION]... NAME... -- COMMAND [ARGUMENT]...",
        options: "  --wait D             wait for at most D; without it, for as long as the lock is held
  -n, --no-wait        do not wait while another client holds the lock
  --ttl D              time to live, extended while COMMAND runs (30s)
  --no-extend          do not extend; COMMAND is ended before its time to live is over
  --grace D            how long before the end of a lost lease COMMAND gets SIGTERM (5s, or a sixth of the ttl)
  --min-hold D         keep the lock for D, also if COMMAND ends before; a shorter ttl is raised to D
  --fair               programs that all say --fair get the lock in the order in which they came to wait
  --fenced             give COMMAND, as QUORUMLOCK_FENCE, a number that grows with every acquisition
  -E, --held-exit-code CODE
                       exit code when the lock is held by another client, or the time of --wait is up (75)
  --foreground         leave COMMAND in the process group of this program
  --shell              run the words behind -- by sh -c
  --keep-nodes         leave QUORUMLOCK_NODES in the environment of COMMAND
  --json-events FD     write events to this open descriptor, as JSON, one in each line
  -q, --quiet          write nothing but errors
  -v, --verbose        write every event to standard error
",
        notes: "
When the lock is lost, COMMAND gets SIGTERM, and SIGKILL half a second before the lease ends. Exit code: that of
COMMAND, 128+n for signal n; 70 the lock was lost, 75 held, 69 too few nodes answer, or a key without expiry holds the
lock; 64 usage, 78 a setting cannot be used, 71 the system refused something, 126 and 127 COMMAND cannot be run or was
not found.
",
    },
    Topic {
        name: "nodes",
        summary: "one line for each node; exit 0 if all vote, 1 if a majority does, 2 otherwise",
        usage: "quorumlock nodes [OPTION]...",
        options: "  --timeout D          how long to wait for all nodes (1s)
  --names TEXT         what names of locks begin with, where the user has a right to these alone
  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "show",
        summary: "what each node has of one lock",
        usage: "quorumlock show [OPTION]... NAME",
        options: "  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "ls",
        summary: "all locks that the nodes have, by SCAN",
        usage: "quorumlock ls [OPTION]... [PATTERN]",
        options: "  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "scan",
        summary: "keys that no lock should have left; exit 1 if there are any",
        usage: "quorumlock scan [OPTION]...",
        options: "  --ignore KIND        leave out no-expiry, too-long, foreign or fence-at-rest
  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "break",
        summary: "take a lock from its holder, which is not notified",
        usage: "quorumlock break [OPTION]... NAME --yes",
        options: "  --yes                really delete what was read, if it is still there
  --force              delete also what is no lock: without expiry, of another type, too long to be compared
  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "doctor",
        summary: "examine each node, and say what endangers locks; exit 0 fine, 1 warnings, 2 cannot lock",
        usage: "quorumlock doctor [OPTION]...",
        options: "  --names TEXT         what names of locks begin with, where the user has a right to these alone
  --watch D            look at the clocks again after D, for their rate
  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "bench",
        summary: "pairs of lock and unlock a second, and how long each takes",
        usage: "quorumlock bench [OPTION]...",
        options: "  --duration D         how long to run (5s)
  --threads N          how many threads, each with a lock of its own (1)
  --json               write JSON
",
        notes: "",
    },
    Topic {
        name: "complete",
        summary: "a completion script for bash, zsh or fish",
        usage: "quorumlock complete SHELL",
        options: "",
        notes: "",
    },
    Topic {
        name: "manual",
        summary: "the manual page, as man reads it",
        usage: "quorumlock manual",
        options: "",
        notes: "",
    },
];

/// The options of every command that asks nodes.
pub(crate) const NODE_OPTIONS: &str =
    "  --nodes URLS         the nodes, separated by commas; without it, QUORUMLOCK_NODES
  --config FILE        a file of QUORUMLOCK_ variables, each in a line NAME=value
  --tls                reach every node by TLS, as a URL with rediss:// says of one
  --cacert FILE        roots that the certificates of nodes are checked against, in PEM
  --cert FILE          certificate of this program, for nodes that require one, in PEM
  --key FILE           private key of that certificate, in PEM
  --sni NAME           the name that certificates of nodes must be for (the host in the URL)
  --label TEXT         what this program calls itself in the keys of its locks
  --prefix TEXT        is in front of the names of locks in their keys
  --node-timeout D     how long a node has to answer (100ms)
  --max-ttl D          the longest time to live that is accepted (60s)
  --unavailable-after D
                       how long to try while too few nodes answer (3s)
  --restart-policy P   which restarted nodes do not vote for a while: observed, strict or off (observed)
  --fence-retention D  how long nodes keep the number of a fenced lock (24h)
  --place-lease D      how long the place of a program that waits with --fair counts if the program dies (1s)
  --drift-factor F     by what part the rates of clocks may differ (0.01)
  --durable            declare that all nodes keep every write that they confirm (appendfsync always)
";

const INTRODUCTION: &str = "\
quorumlock: run programs under a distributed lock, and look at the nodes that hold it

Usage: quorumlock COMMAND [OPTION]...
";

const CONCLUSION: &str = "\
A duration D is a number and us, ms, s, m, h or d. quorumlock COMMAND --help shows the options of a command, and
quorumlock --version the version. The nodes are those of QUORUMLOCK_NODES, --config or --nodes.
";

/// Shows the help of a command, or of the program.
pub(crate) fn show(name: &str) -> Result<Exit, Failure> {
    let text = match TOPICS.iter().find(|topic| topic.name == name) {
        Some(topic) => text(topic),
        None if ["", "-h", "--help", "help"].contains(&name) => overview(),
        None => return Err(unknown(name)),
    };
    report::page(&text);
    Ok(Exit::OK)
}

/// Writes the manual page.
pub(crate) fn manual(mut arguments: Arguments) -> Result<Exit, Failure> {
    if let Some(word) = arguments.next()? {
        return Err(unexpected("manual", &word));
    }
    report::page(include_str!("quorumlock.1"));
    Ok(Exit::OK)
}

/// The failure of a command line without a command that is known.
pub(crate) fn unknown(name: &str) -> Failure {
    Failure::usage(match name {
        "" => "needs a COMMAND; quorumlock --help lists them".to_owned(),
        name => format!("{name:?} is no command; quorumlock --help lists them"),
    })
}

fn overview() -> String {
    let commands: String = TOPICS.iter().map(|topic| format!("  {:<10} {}\n", topic.name, topic.summary)).collect();
    format!("{INTRODUCTION}\nCommands:\n{commands}\n{CONCLUSION}")
}

fn text(topic: &Topic) -> String {
    let Topic { name, summary, usage, options, notes } = topic;
    let options = match *options {
        "" => String::new(),
        own => format!("\nOptions:\n{own}\nNodes and settings:\n{NODE_OPTIONS}"),
    };
    format!("quorumlock {name}: {summary}\n\nUsage: {usage}\n{options}{notes}")
}
