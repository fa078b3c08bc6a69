//! The user of the manual, with a right to some keys alone: what `doctor`, `nodes` and `ls` find
//! with it.

use super::*;

/// How many servers are asked at once.
const THREADS: usize = 4;

/// The words of the rule in the manual for locks of all kinds of `orders/…`, behind the user's
/// name.
fn rule() -> Vec<String> {
    let page = text_of("src/docs/operations.md");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("ACL SETUSER locks "))
        .expect("a rule")
        .to_owned();
    assert!(
        line.contains(
            " ~orders/* ~quorumlock-*:orders/* ~quorumlock-node: resetchannels &quorumlock:* "
        ),
        "{line}"
    );
    line.split(' ').map(str::to_owned).collect()
}

/// Servers with that user.
struct Users(Deployment);

impl Users {
    /// Grants that user these rights too, and takes this word of the rule away.
    fn with(&self, more: &str, lacking: &str) {
        let rule = rule();
        let granted = rule
            .iter()
            .map(String::as_str)
            .filter(|word| *word != lacking);
        let user = ["ACL", "SETUSER", "locks", "reset"].into_iter();
        let words: Vec<&str> = user.chain(granted).chain(more.split_whitespace()).collect();
        command_each(&self.0.servers, &words);
    }

    fn asks(&self, words: &str) -> Ended {
        let mut tool = self.0.tool(words);
        let urls = self.0.urls().replace("redis://", "redis://locks:password@");
        tool.env("QUORUMLOCK_UNAVAILABLE_AFTER", "100ms")
            .env("QUORUMLOCK_NODES", urls);
        run(tool)
    }
}

#[test]
fn doctor_finds_the_user_of_the_manual_fine() {
    skip_unless!(has_users());
    let users = Users(Deployment::of(1));
    users.with("", "");
    users.asks("doctor --names orders/").exits(0);
    // Its keys are not known: they are asked for, and not guessed.
    users
        .asks("doctor")
        .exits(2)
        .prints("fault: names: ")
        .prints("by --names or --prefix")
        .hides("ACL SETUSER");
    // A user that may read its own patterns need not name them.
    users.with("+acl", "");
    users.asks("doctor").exits(0);
    assert_eq!(users.0.keys(), 0);
}

#[test]
fn doctor_advises_the_right_that_is_missing_and_no_more_than_the_manual() {
    skip_unless!(has_users());
    let rule = rule();
    let rights: Vec<&String> = rule
        .iter()
        .filter(|word| word.starts_with(['~', '&', '+']))
        // Only a node in cluster mode is asked for it (`hazards`).
        .filter(|word| *word != "+cluster|info")
        .collect();
    let advises = |users: &Users, lacking: &String| {
        users.with("", lacking);
        let found = users.asks("doctor --names orders/");
        let lines = found
            .out
            .split("ACL SETUSER locks ")
            .skip(1)
            .filter_map(|rest| rest.lines().next());
        let advised: Vec<String> = lines
            .flat_map(|line| line.split(' '))
            .map(str::to_owned)
            .collect();
        assert!(
            advised.iter().all(|word| rule.contains(word)),
            "{lacking}: {}",
            found.all()
        );
        assert!(
            found.code != Some(0) && advised.contains(lacking),
            "{lacking}: {}",
            found.all()
        );
    };
    // A lock that cannot be released is waited for: each thread has a server of its own.
    thread::scope(|scope| {
        for part in 0..THREADS {
            let rights = &rights;
            let advises = &advises;
            scope.spawn(move || {
                let users = Users(Deployment::of(1));
                rights
                    .iter()
                    .skip(part)
                    .step_by(THREADS)
                    .for_each(|lacking| advises(&users, lacking));
            });
        }
    });
}

#[test]
fn doctor_looks_at_the_clock_for_a_user_that_cannot_unsubscribe() {
    skip_unless!(has_users());
    let users = Users(Deployment::of(1));
    users.with("-getrange", "+unsubscribe");
    let found = users.asks("doctor --names orders/").exits(1);
    let found = found.prints("  clock ").prints("+unsubscribe");
    let found = found.prints("ACL SETUSER locks +getrange");
    assert_eq!(users.0.keys(), 0, "{}", found.all());
}

#[test]
fn doctor_says_what_it_does_not_see_without_info() {
    skip_unless!(has_users());
    let users = Users(Deployment::of(1));
    users.with("", "+info");
    let found = users
        .asks("doctor --names orders/ --durable")
        .exits(1)
        .prints("warning: no-info: the user may not run INFO: version, role, persistence");
    for invented in ["Redis", "appends nothing", "up for", "not-durable"] {
        assert!(!found.out.contains(invented), "{invented}: {}", found.all());
    }
}

#[test]
fn ls_and_scan_need_scan_and_leave_out_the_keys_of_others() {
    skip_unless!(has_users());
    let users = Users(Deployment::of(3));
    let lock = format!("SET orders/1 {} PX 50000", "1".repeat(40));
    command_each(&users.0.servers, &lock);
    command_each(&users.0.servers, &["SET", "secret", "of another program"]);
    users.with("", "");
    for words in ["ls", "scan"] {
        users
            .asks(words)
            .exits(69)
            .reports("SCAN: permission denied");
    }
    users.with("+scan", "");
    let listed = users.asks("ls").exits(0).prints("orders/1  held");
    assert!(
        listed.out.lines().count() == 2 && listed.err.is_empty(),
        "{}",
        listed.all()
    );
    users.asks("scan").exits(0).writes_nothing();
    users.asks("show orders/1").exits(0);
    users.asks("break orders/1 --yes").exits(0);
    // A lock is not called free because it must not be read.
    users.asks("show secret").exits(69).prints("unknown");
}

#[test]
fn a_probe_tries_a_lock_of_a_name_that_the_user_has_a_right_to() {
    skip_unless!(has_users());
    let users = Users(Deployment::of(3));
    users.with("", "");
    users.asks("nodes --names orders/").exits(0);
    users.asks("nodes --prefix orders/").exits(0);
    users
        .asks("nodes")
        .exits(2)
        .reports("by --names or --prefix");
    users.with("", "+set");
    users
        .asks("nodes --names orders/")
        .exits(2)
        .prints_times("may not run SET", 3);
}
