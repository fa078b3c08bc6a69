//! `examples/observe`: it serves what a strict reader accepts, and its dashboard and alert rules
//! name only series and labels that exist.

#[path = "../../examples/observe/endpoint.rs"]
mod endpoint;

mod alerts;

use crate::prelude::*;
use crate::support::exposition::Exposition;
use std::net::SocketAddr;

/// Labels that Prometheus adds, or the dashboard's queries make.
const ADDED: [&str; 3] = ["instance", "job", "le"];

fn read(file: &str) -> String {
    text_of(&format!("examples/observe/{file}"))
}

/// The head and the body of an answer.
fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// A text with every series: an answer of the endpoint.
fn served() -> Exposition {
    let servers = Server::several(3).unwrap();
    let counters = Counters::by_prefix('/');
    // One node of four is not there: its faults are counted.
    let client = client_with(&servers, |builder| {
        builder.node("redis://127.0.0.1:1").counters(&counters)
    });
    client.connect(SOON).unwrap();
    assert_soon!({
        let _ = take(&long_lock(&client, "orders/1")).unlock().unwrap();
        !all_nodes(&client, |node| node.faults().is_empty())
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It serves until the tests end.
    thread::spawn(move || endpoint::serve(&listener, &counters));
    assert!(get(address, "/").0.starts_with("HTTP/1.1 404 "));
    let (head, body) = get(address, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );
    Exposition::read(&body)
}

/// The expressions of a file: behind `expr`, to the end of the line.
fn expressions(file: &str) -> Vec<String> {
    let text = read(file);
    let behind = text
        .lines()
        .filter_map(|line| line.trim().trim_start_matches('"').strip_prefix("expr"));
    let clean = |text: &str| {
        text.trim_start_matches(['"', ':', ' '])
            .trim_end_matches([',', '"'])
            .replace("\\\"", "\"")
    };
    behind.map(clean).collect()
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    expression
        .split(move |letter: char| !is_letter(letter))
        .filter(|word| !word.is_empty())
}

/// The names of labels in an expression: what precedes a comparison in braces, and behind `by` in
/// parentheses.
fn labels(expression: &str) -> BTreeSet<&str> {
    let matchers = expression
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    let compared = matchers
        .flat_map(|(inside, _)| inside.split(','))
        .filter_map(|one| one.split(['=', '!']).next());
    let grouped = expression
        .split(" by (")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    compared
        .chain(grouped.flat_map(|(inside, _)| inside.split(", ")))
        .map(str::trim)
        .collect()
}

#[test]
fn every_series_and_label_of_the_dashboard_and_the_alerts_exists() {
    let served = served();
    let names = served.names();
    let known: BTreeSet<&str> = served
        .families
        .iter()
        .flat_map(|family| &family.samples)
        .flat_map(|sample| sample.labels.keys().map(String::as_str))
        .chain(ADDED)
        .collect();
    for (file, least) in [("dashboard.json", 15), ("alerts.yml", 4)] {
        let expressions = expressions(file);
        assert!(
            expressions.len() >= least,
            "{file} has {} expressions",
            expressions.len()
        );
        for expression in &expressions {
            for name in words(expression).filter(|word| word.starts_with("quorumlock_")) {
                assert!(
                    names.contains(name),
                    "{file}: {name} does not exist: {expression}"
                );
            }
            for label in labels(expression) {
                assert!(
                    known.contains(label),
                    "{file}: the label {label} does not exist: {expression}"
                );
            }
            let [open, close] = ['(', ')'].map(|sign| expression.matches(sign).count());
            assert_eq!(open, close, "{file}: {expression}");
        }
    }
    // Each family has its place in the dashboard.
    let shown = read("dashboard.json");
    for family in &served.families {
        assert!(
            shown.contains(&family.name),
            "{} is not in the dashboard",
            family.name
        );
    }
}

#[test]
fn the_dashboard_is_json() {
    let mut python = Command::new("python3")
        .args(["-m", "json.tool"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let child = python.as_mut().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(read("dashboard.json").as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}
