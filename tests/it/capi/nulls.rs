//! NULL for every pointer of every function, in a program that is made from the header.
//!
//! Where NULL is not allowed, the function returns `QUORUMLOCK_NULL_POINTER` and an error that
//! names the argument, and does nothing else: outputs are left alone, and the guard, the lease and
//! the secret that the program has are whole in the end. Where NULL is allowed, nothing happens. A
//! function that is added to the header is tried without a change here.

use super::library::{compile, in_folder, run};
use crate::support::package::{root, text_of};
use crate::support::server::Server;
use std::fmt::Write;

/// A function of the header.
struct Function {
    result: String,
    name: String,
    /// Types and names.
    parameters: Vec<(String, String)>,
}

/// Where NULL is allowed, whatever the function.
const OPTIONAL: [&str; 6] = ["cancel", "error", "owner", "release", "user", "userdata"];

#[test]
#[allow(clippy::print_stdout)]
fn null_is_answered_and_nothing_else_happens() {
    let functions = functions();
    let (text, calls) = program(&functions);
    let source = in_folder("nulls.c");
    std::fs::write(&source, text).unwrap();
    let checks = format!("-I{}", root().join("tests/it/capi").display());
    let program = compile("nulls", &source, &["-std=c99", &checks]);
    let server = Server::start().unwrap();
    let said = run(program, [server.url()]).exits(0).out;
    assert_eq!(said, "nothing has happened\n");
    println!("{} functions, {calls} calls with NULL", functions.len());
    assert!(functions.len() > 70 && calls > 90);
}

fn functions() -> Vec<Function> {
    let header = text_of("src/ffi/quorumlock.h");
    let code = without_comments(&header);
    let declarations = code
        .split(';')
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    declarations.filter_map(|text| function(&text)).collect()
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    for (index, part) in text.split("/*").enumerate() {
        code += if index == 0 {
            part
        } else {
            part.split_once("*/").map_or("", |(_, rest)| rest)
        };
    }
    code.lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("extern"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// `quorumlock_result quorumlock_x(const a *b, int c)`.
fn function(text: &str) -> Option<Function> {
    if text.starts_with("typedef") {
        return None;
    }
    let (before, parameters) = text.strip_suffix(')')?.split_once('(')?;
    let split = |text: &str| {
        let at = text.rfind([' ', '*'])? + 1;
        Some((text[..at].trim().to_owned(), text[at..].to_owned()))
    };
    let (result, name) = split(before)?;
    let parameters = parameters
        .split(',')
        .map(str::trim)
        .filter(|&one| one != "void");
    Some(Function {
        result,
        name,
        parameters: parameters.filter_map(split).collect(),
    })
}

/// What the program has to give for a parameter.
fn value(kind: &str, name: &str) -> String {
    match kind.trim_start_matches("const ") {
        "char *" => "\"x\"".into(),
        "quorumlock_str *" => "&text".into(),
        "size_t" => "1".into(),
        "double" => "0.01".into(),
        "int" | "int64_t" | "uint32_t" | "uint64_t" => "1000".into(),
        "void *" | "quorumlock_release" => "NULL".into(),
        "quorumlock_observer" => "on_event".into(),
        "quorumlock_lost" => "on_lost".into(),
        "quorumlock_write" => "on_write".into(),
        "int *" => "&number".into(),
        "quorumlock_fault *" | "quorumlock_event *" | "quorumlock_login *" => "NULL".into(),
        "quorumlock_provider" => "provide".into(),
        "quorumlock_error **" => "&error".into(),
        kind if kind.ends_with("**") => format!("&out_{name}"),
        kind => kind
            .trim_start_matches("quorumlock_")
            .trim_end_matches(" *")
            .into(),
    }
}

/// The program, and how many calls it makes.
fn program(functions: &[Function]) -> (String, usize) {
    let mut calls = 0;
    let mut text = String::new();
    for function in functions {
        let Function {
            result,
            name,
            parameters,
        } = function;
        let callbacks = [
            "quorumlock_lost",
            "quorumlock_observer",
            "quorumlock_provider",
            "quorumlock_write",
        ];
        let is_pointer = |kind: &str| kind.ends_with('*') || callbacks.contains(&kind);
        for (at, (kind, parameter)) in parameters.iter().enumerate() {
            if !is_pointer(kind) || OPTIONAL.contains(&parameter.as_str()) && !is_alone(function) {
                continue;
            }
            let arguments: Vec<String> = (parameters.iter().enumerate())
                .map(|(index, (kind, name))| {
                    if index == at {
                        "NULL".into()
                    } else {
                        value(kind, name)
                    }
                })
                .collect();
            let call = format!("{name}({})", arguments.join(", "));
            let tells = parameters
                .iter()
                .any(|(kind, _)| kind == "quorumlock_error **");
            let check = match result.as_str() {
                "void" => call,
                "quorumlock_str" => format!("CHECK({call}.length == 0 && {call}.data != NULL)"),
                "quorumlock_result" if name == "quorumlock_error_result" => {
                    format!("CHECK({call} == QUORUMLOCK_OK)")
                }
                "quorumlock_result" if tells => {
                    format!(
                        "CHECK({call} == QUORUMLOCK_NULL_POINTER); is_told(&error, \"{parameter} is NULL\")"
                    )
                }
                "quorumlock_result" => format!("CHECK({call} == QUORUMLOCK_NULL_POINTER)"),
                "int64_t" => format!("CHECK({call} == -1)"),
                _ => format!("CHECK({call} == 0)"),
            };
            calls += 1;
            writeln!(text, "    {check};").unwrap();
        }
    }
    (
        include_str!("nulls.c").replace("    CALLS;\n", &text),
        calls,
    )
}

/// Whether the error is what the function is about.
fn is_alone(function: &Function) -> bool {
    function
        .parameters
        .first()
        .is_some_and(|(kind, _)| kind.trim_start_matches("const ") == "quorumlock_error *")
        || function.parameters.len() == 1
}
