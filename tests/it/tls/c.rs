//! C programs over TLS: each fault by its number, and the programs of the C interface's own tests.

use super::nodes::over_tls_in_c;
use super::*;
use crate::capi::library::{compile_against, library_with_tls};
use crate::support::program;

/// What the program prints with these arguments and variables.
fn says(program: &Path, arguments: &[&str], variables: &[(&str, String)]) -> String {
    let mut command = program::program(program);
    command.args(arguments).envs(variables.iter().cloned());
    let ended = program::run(command).exits(0);
    let said = ended.hides("hunter2").hides("BEGIN").out;
    // Without the address.
    match (said.find("127.0.0.1:"), said.find(": ")) {
        (Some(begin), Some(end)) => format!("{}{}", &said[..begin], said[end + 2..].trim_end()),
        _ => said.trim_end().to_owned(),
    }
}

#[test]
fn each_fault_has_its_numbers() {
    skip_unless!(has_tls());
    let program = compile_against(
        library_with_tls(),
        "tls",
        "tests/it/capi/tls.c",
        &["-std=c99"],
    );
    let authority = Authority::new();
    let other = Authority::new();
    let path = |authority: &Authority, name: &str| authority.path(name).display().to_string();
    let roots = path(&authority, "ca.crt");
    let foreign = path(&other, "ca.crt");
    let plain = Particulars::default();
    for (particulars, roots, says_so) in [
        (
            plain,
            &foreign,
            "25 2 1 the server's certificate is not accepted: unknown issuer",
        ),
        (
            Particulars::EXPIRED,
            &roots,
            "25 3 1 the server's certificate is not accepted: expired",
        ),
        (
            Particulars::NOT_YET_VALID,
            &roots,
            "25 4 0 the server's certificate is not accepted: not valid",
        ),
        (
            Particulars::named("IP:10.0.0.1"),
            &roots,
            "25 5 1 the server's certificate is not accepted",
        ),
        (
            Particulars::VERSION_1,
            &roots,
            "25 6 1 the server's certificate is not accepted: X.509",
        ),
        (plain, &roots, "all kept"),
    ] {
        let server = authority.issue("node", particulars).server("node");
        let said = says(&program, &[&server.url(), roots], &[]);
        assert!(said.starts_with(says_so), "{said}");
    }
    let without = Server::start().unwrap();
    let said = says(
        &program,
        &[&without.url().replace("redis:", "rediss:"), &roots],
        &[],
    );
    assert_eq!(said, "26 -1 1 does not speak TLS");

    authority.issue("client", plain);
    let strict = authority.plan("node").start().unwrap();
    let said = says(&program, &[&strict.url(), &roots], &[]);
    assert_eq!(
        said,
        "27 116 1 TLS failed: the server requires a client certificate"
    );
    let certificate = path(&authority, "client.crt");
    let key = path(&authority, "client.key");
    assert_eq!(
        says(&program, &[&strict.url(), &roots, &certificate, &key], &[]),
        "all kept"
    );
    let variables = [
        ("NODES", strict.url()),
        ("CACERT", roots),
        ("CERT", certificate),
        ("KEY", key),
    ];
    let variables: Vec<_> = variables
        .map(|(name, value)| (format!("LOCKS_{name}"), value))
        .into();
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    assert_eq!(says(&program, &[], &variables), "all kept");
}

/// Interrupted all the time, without a handler of SIGPIPE, while it forks and servers hang and die;
/// and under valgrind.
#[test]
fn a_host_of_any_habits_is_at_home() {
    skip_unless!(has_tls());
    over_tls_in_c(&["capi::programs::a_host_of_any_habits"]);
}

/// Under valgrind, where a handshake takes most of a second: by a program that makes one client.
/// The examples wait for a second only, which is too short on a busy machine.
#[test]
fn a_program_leaves_not_a_byte() {
    skip_unless!(has_tls());
    over_tls_in_c(&["capi::programs::locks_to_read_and_to_write"]);
}
