//! What the page about TLS prints works: its commands make the certificates that its settings name.

use super::*;
use quorumlock::Tls;

#[test]
fn the_commands_and_settings_of_the_page_work() {
    skip_unless!(has_tls());
    let page = text_of("src/docs/tls.md");
    let commands = package::blocks(&page, "sh");
    assert!(commands.len() >= 4, "no longer recognised");
    // For its directory.
    let authority = Authority::new();
    for command in commands {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &command]);
        succeeds(shell.current_dir(authority.directory()));
    }
    let settings = package::blocks(&page, "text")
        .into_iter()
        .find(|block| block.contains("tls-port"))
        .unwrap();
    let directory = format!("{}/", authority.directory().display());
    let lines = settings
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| !name.contains("port"));
    let arguments: Vec<String> = lines
        .flat_map(|(name, value)| {
            [
                format!("--{name}"),
                value.replace("/etc/redis/tls/", &directory),
            ]
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::plan().tls().arguments(&arguments).start().unwrap();
    for name in ["10.0.0.1", "redis-1.internal"] {
        let tls = Tls::new().roots_file(authority.path("ca.crt"));
        let url = format!("{}?server_name={name}", server.url());
        let redlock = client_over([url], authority.identity(tls));
        unlock(wait_for(&redlock.mutex("a")));
    }
}
