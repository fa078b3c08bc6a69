//! `quorumlock.hpp` and `quorumlock.py`: they have all of the header, and what they have works.

use super::*;

/// Functions that a wrapper leaves out on purpose, each with the reason beside it.
const LEFT_OUT: [&str; 0] = [];

/// All names in a text that begin like a function of the header.
fn names(text: &str) -> BTreeSet<&str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter: char| !is_letter(letter))
        .filter(|word| word.starts_with("quorumlock_"))
        .collect()
}

/// Every function that the header declares.
fn functions(header: &str) -> Vec<&str> {
    let is_declaration =
        |line: &&str| !line.starts_with([' ', '/', '}']) && !line.starts_with("typedef");
    let before = header
        .lines()
        .filter(is_declaration)
        .filter_map(|line| Some(line.split_once('(')?.0));
    let names = before.filter_map(|before| before.rsplit([' ', '*']).next());
    names
        .filter(|name| name.starts_with("quorumlock_"))
        .collect()
}

#[test]
fn every_function_of_the_header_is_wrapped() {
    let [header, cpp, python] = [
        "src/ffi/quorumlock.h",
        "examples/c/quorumlock.hpp",
        "examples/c/quorumlock.py",
    ]
    .map(text_of);
    let functions = functions(&header);
    assert!(functions.len() > 95, "{}", functions.len());
    // In Python, a name in quotes declares what the function takes, and one behind the library
    // calls it.
    let quoted: BTreeSet<&str> = python.split('"').collect();
    for function in &functions {
        let called = [format!("_c.{function}("), format!("_c.{function},")];
        let wrapped = [
            names(&cpp).contains(function),
            quoted.contains(function),
            called.iter().any(|call| python.contains(call)),
        ];
        assert_eq!(
            wrapped,
            [!LEFT_OUT.contains(function); 3],
            "{function}: in C++, in Python's table, called there"
        );
    }
    for name in quoted.iter().filter(|name| name.starts_with("quorumlock_")) {
        assert!(functions.contains(name), "{name} is not in the header");
    }
}

#[test]
fn the_numbers_of_python_are_those_of_the_header() {
    let [header, python] = ["src/ffi/quorumlock.h", "examples/c/quorumlock.py"].map(text_of);
    let numbers = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
        let numbered = lines.filter(|line| {
            line.split_once(" = ")
                .is_some_and(|(_, number)| number.parse::<i32>().is_ok())
        });
        numbered
            .map(|line| line.trim_start_matches("QUORUMLOCK_").to_owned())
            .collect()
    };
    let body = between(&header, "typedef enum quorumlock_result {", "}");
    let class = between(&python, "class Result", "\n\n\n");
    assert!(!numbers(body).is_empty());
    assert_eq!(numbers(body), numbers(class));
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(begin).unwrap();
    rest.split_once(end).unwrap().0
}

/// The servers that a program is run against, and what it prints.
fn works(program: &str, arguments: &[String]) {
    let mut servers = Server::several(2).unwrap();
    // The last one is declared durable.
    servers.push(durable().start().unwrap());
    let urls: Vec<String> = servers.each(Server::url);
    let said = run(program, [arguments, &urls].concat()).exits(0).out;
    assert_eq!(said, "every wrapper works\n");
}

#[test]
fn every_wrapper_in_cpp_works() {
    let include = format!("-I{}", root().join("examples/c").display());
    for standard in ["-std=c++17", "-std=c++20"] {
        let name = format!("wrappers{standard}");
        let program = compile(&name, "tests/it/capi/wrappers.cpp", &[standard, &include]);
        works(program.to_str().unwrap(), &[]);
    }
}

#[test]
fn every_wrapper_in_python_works() {
    // Python writes what it has compiled beside a module by default.
    let [code, wrapper] = ["tests/it/capi/wrappers.py", "examples/c"]
        .map(|path| root().join(path).display().to_string());
    let library = library().join("libquorumlock.so").display().to_string();
    let path =
        format!("import sys, runpy; sys.path.insert(0, {wrapper:?}); sys.argv = sys.argv[1:]; ");
    let start = path + "runpy.run_path(sys.argv[0], run_name='__main__')";
    works("python3", &["-B".into(), "-c".into(), start, code, library]);
}

#[test]
fn both_are_installed_with_the_library() {
    let manifest = text_of("Cargo.toml");
    for file in ["examples/c/quorumlock.hpp", "examples/c/quorumlock.py"] {
        assert!(manifest.contains(&format!("from = \"{file}\"")), "{file}");
    }
}

/// The command of the manual, for an interpreter that has folders of its own.
#[test]
fn the_module_is_copied_to_where_python_looks() {
    let manual = text_of("src/docs/operations.md");
    let command = manual
        .lines()
        .find(|line| line.starts_with("cp ") && line.contains("quorumlock.py"))
        .unwrap();
    let installed = "/usr/local/share/quorumlock/python/quorumlock.py";
    assert!(command.contains(installed), "{command}");
    let ours = root().join("examples/c/quorumlock.py");
    let command = command.replace(installed, &ours.display().to_string());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let folder_name = folder.to_str().unwrap();
    let venv = ["-m", "venv", "--clear", "--without-pip", folder_name];
    run("python3", venv).exits(0);
    let path = format!("{folder_name}/bin:{}", std::env::var("PATH").unwrap());
    let shell = |line: &str| {
        let mut command = program::program("sh");
        command.args(["-c", line]).env("PATH", &path);
        program::run(command.current_dir("/"))
    };
    let import = "python3 -c 'import quorumlock; print(quorumlock.Result.HELD)'";
    assert_ne!(shell(import).code, Some(0));
    shell(&command).exits(0);
    assert!(shell(import).exits(0).out.ends_with("1\n"));
}
