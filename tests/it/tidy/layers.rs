//! The rule of src/docs/architecture.md: a module imports only from the layers below its own, and
//! imports form no cycle.
//!
//! [`Tree`] takes the files of `src/`, finds for every path that they name the file that it leads
//! to, and keeps the result as imports from file to file. A path to something that is re-exported
//! leads to the file that the re-export names, so that `crate::Error` counts as `error.rs` and not
//! as `lib.rs`.
//!
//! Unit tests are left out: they may use the embedded node wherever they are. A `mod` line is no
//! import: a parent has its children without needing them. `lib.rs` may name everything, as it is
//! the table of contents.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Named, code, paths, test_modules, without_tests};

/// A part of the tree within which imports are free of cycles, and which knows what it may import
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Algorithm,
    Api,
    /// The program in `bin/`: a crate of its own, which knows the library by its name.
    CommandLine,
    /// `lib.rs`: names everything, as it is the table of contents.
    Contents,
    Docs,
    Embedded,
    Engine,
    Events,
    Fault,
    Ffi,
    Os,
    Protocol,
}

impl Layer {
    /// The layer of a file, by its path below `src/`; none for a file that is in no layer.
    pub(crate) fn of(file: &str) -> Option<Layer> {
        let top = file
            .split_once('/')
            .map_or(file.trim_end_matches(".rs"), |(folder, _)| folder);
        Some(match top {
            "algorithm" => Layer::Algorithm,
            "api" => Layer::Api,
            "bin" => Layer::CommandLine,
            "docs" => Layer::Docs,
            "embedded" => Layer::Embedded,
            "engine" => Layer::Engine,
            "events" => Layer::Events,
            "fault" => Layer::Fault,
            "ffi" => Layer::Ffi,
            "lib" => Layer::Contents,
            "os" => Layer::Os,
            "protocol" => Layer::Protocol,
            _ => return None,
        })
    }

    /// Where the files of this layer may import from, apart from the layer itself.
    fn below(self) -> &'static [Layer] {
        use Layer::{Algorithm, Api, Docs, Embedded, Engine, Events, Fault, Ffi, Os, Protocol};
        match self {
            Layer::CommandLine | Layer::Docs | Layer::Fault => &[],
            Layer::Algorithm => &[Fault],
            Layer::Api => &[Algorithm, Engine, Events, Fault, Os, Protocol],
            Layer::Contents => &[
                Algorithm, Api, Docs, Embedded, Engine, Events, Fault, Ffi, Os, Protocol,
            ],
            Layer::Embedded => &[Algorithm, Fault, Os, Protocol],
            Layer::Engine => &[Algorithm, Events, Fault, Os, Protocol],
            Layer::Events => &[Algorithm, Fault, Os, Protocol],
            // And what the crate root offers to every program.
            Layer::Ffi => &[Os],
            Layer::Os | Layer::Protocol => &[Algorithm, Fault],
        }
    }
}

/// The files of `src/` and the imports between them.
pub(crate) struct Tree {
    imports: BTreeMap<String, BTreeSet<String>>,
    /// Module path, joined by `::`, to file. The root is the empty path.
    modules: BTreeMap<String, String>,
    named: BTreeMap<String, Vec<Named>>,
}

impl Tree {
    /// Reads files, given as pairs of path below `src/` and text.
    pub(crate) fn read(files: &[(String, String)]) -> Tree {
        let tests = test_files(files);
        let files = || files.iter().filter(|(file, _)| !tests.contains(file));
        let modules: BTreeMap<String, String> = files()
            .map(|(file, _)| (module_of(file).join("::"), file.clone()))
            .collect();
        let named = files()
            .map(|(file, text)| {
                let module = module_of(file);
                let (code, _) = without_tests(&code(text));
                (
                    file.clone(),
                    paths(&code, &module, &children(&module, &modules)),
                )
            })
            .collect();
        let mut tree = Tree {
            imports: BTreeMap::new(),
            modules,
            named,
        };
        for (file, named) in &tree.named {
            // What the crate root offers is public, wherever it comes from.
            let is_public = |path: &[String]| {
                path.first()
                    .is_some_and(|name| !tree.modules.contains_key(name))
            };
            let inside = named
                .iter()
                .filter(|named| Layer::of(file) != Some(Layer::Ffi) || !is_public(&named.path));
            let targets = inside.filter_map(|named| tree.target(&named.path, 8));
            let targets = targets.filter(|target| target != file).collect();
            tree.imports.insert(file.clone(), targets);
        }
        tree
    }

    /// Every import from a layer that is not below, as a sentence.
    pub(crate) fn upward(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut downward = 0;
        for (file, targets) in &self.imports {
            let Some(layer) = Layer::of(file) else {
                findings.push(format!("{file} stands in no layer"));
                continue;
            };
            let layers = targets
                .iter()
                .filter_map(|target| Some((target, Layer::of(target)?)));
            for (target, other) in layers {
                downward += usize::from(layer.below().contains(&other));
                if other != layer && !layer.below().contains(&other) {
                    findings.push(format!(
                        "{file} imports from {target}: {layer:?} must not know {other:?}"
                    ));
                }
            }
        }
        assert!(downward > 300, "{downward} imports: no longer recognised");
        findings
    }

    /// One cycle of imports per file that is on one, as a sentence.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let mut findings: Vec<String> = Vec::new();
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for file in self.imports.keys() {
            if found.contains(file.as_str()) || Layer::of(file) == Some(Layer::Contents) {
                continue;
            }
            if let Some(cycle) = self.way_back(file) {
                findings.push(format!("{file} imports itself: {}", cycle.join(" → ")));
                found.extend(cycle);
            }
        }
        findings
    }

    /// The shortest way from a file along the imports back to it.
    fn way_back<'a>(&'a self, file: &'a str) -> Option<Vec<&'a str>> {
        let mut ways = vec![vec![file]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for target in self.imports.get(*way.last()?).into_iter().flatten() {
                    let further: Vec<&str> = way.iter().copied().chain([target.as_str()]).collect();
                    if target == file {
                        return Some(further);
                    }
                    if Layer::of(target) != Some(Layer::Contents) && seen.insert(target) {
                        longer.push(further);
                    }
                }
            }
            ways = longer;
        }
        None
    }

    /// The file that a path leads to: the deepest module on it, or where that module has the next
    /// name from.
    fn target(&self, path: &[String], patience: usize) -> Option<String> {
        let known = |length: &usize| self.modules.contains_key(&path[..*length].join("::"));
        let length = (0..=path.len()).rev().find(known)?;
        let file = &self.modules[&path[..length].join("::")];
        let Some(name) = path.get(length).filter(|_| patience > 0) else {
            return Some(file.clone());
        };
        let from = self.named[file]
            .iter()
            .find(|named| named.alias.as_ref() == Some(name) && named.path != path);
        match from {
            Some(named) => self.target(&named.path, patience - 1),
            None => Some(file.clone()),
        }
    }
}

/// The module that a file is: `protocol/mod.rs` is `protocol`, `protocol/resp.rs` is `protocol,
/// resp`, `lib.rs` the root, `bin/quorumlock/main.rs` is `bin, quorumlock`.
pub(crate) fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path
        .strip_suffix("/mod")
        .or_else(|| path.strip_suffix("/main"))
        .unwrap_or(path);
    if path == "lib" {
        Vec::new()
    } else {
        path.split('/').map(str::to_owned).collect()
    }
}

/// The files that other files declare as modules for tests only, and all below them.
pub(crate) fn test_files(files: &[(String, String)]) -> Vec<String> {
    let declared = files.iter().flat_map(|(file, text)| {
        let in_folder = |path: String| match file.rsplit_once('/') {
            Some((folder, _)) => module_of(&format!("{folder}/{path}")),
            None => module_of(&path),
        };
        let place = move |(name, path): (String, Option<String>)| match path {
            Some(path) => in_folder(path),
            None => [module_of(file), vec![name]].concat(),
        };
        test_modules(text).into_iter().map(place)
    });
    let declared: Vec<Vec<String>> = declared.collect();
    let below = |file: &String| {
        declared
            .iter()
            .any(|module| module_of(file).starts_with(module))
    };
    files
        .iter()
        .map(|(file, _)| file.clone())
        .filter(below)
        .collect()
}

fn children(module: &[String], modules: &BTreeMap<String, String>) -> Vec<String> {
    let all = modules
        .keys()
        .filter(|path| !path.is_empty())
        .map(|path| path.split("::").collect::<Vec<_>>());
    let below = all.filter(|path| {
        path.len() == module.len() + 1 && path.iter().zip(module).all(|(a, b)| a == b)
    });
    below
        .filter_map(|path| path.last().map(|&name| name.to_owned()))
        .collect()
}

#[cfg(test)]
fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::read(
        &files
            .iter()
            .map(|&(file, text)| (file.to_owned(), text.to_owned()))
            .collect::<Vec<_>>(),
    )
}

/// How the search goes through what is only passed on, no number of imports shows.
#[test]
fn a_planted_cycle_is_found() {
    let cycles = |files: &[(&str, &str)]| tree(files).cycles().join("; ");
    assert_eq!(
        cycles(&[
            ("protocol/mod.rs", "pub mod a; pub mod b; pub mod c;"),
            ("protocol/a.rs", "use super::b::B;"),
            ("protocol/b.rs", "fn f() { crate::protocol::c::go() }"),
            ("protocol/c.rs", "use crate::protocol::a;"),
        ]),
        "protocol/a.rs imports itself: protocol/a.rs → protocol/b.rs → protocol/c.rs → protocol/a.rs"
    );
    // Through re-exports, by whatever name.
    assert_eq!(
        cycles(&[
            (
                "lib.rs",
                "mod guard; mod mutex; pub use guard::Guard; pub use mutex::Mutex as Lock;"
            ),
            ("guard.rs", "use crate::Lock;"),
            ("mutex.rs", "use crate::Guard;"),
        ]),
        "guard.rs imports itself: guard.rs → mutex.rs → guard.rs"
    );
    // A parent that needs its child, which needs its parent.
    assert!(
        !cycles(&[
            ("net/mod.rs", "mod link; use link::Link;"),
            ("net/link.rs", "use super::Limits;")
        ])
        .is_empty()
    );
    // No cycle: what the parent only passes on, what only tests need, and diamonds.
    assert_eq!(
        cycles(&[
            ("net/mod.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            (
                "net/a.rs",
                "use super::B; #[cfg(test)] mod tests { use super::super::C; use super::*; }"
            ),
            ("net/b.rs", "use crate::D;"),
            ("net/c.rs", "use super::{A, B};"),
            ("lib.rs", "pub use net::c;"),
        ]),
        ""
    );
}
