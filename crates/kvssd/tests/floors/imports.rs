//! Which files of a crate import which, as their paths say: `use` and expressions alike, but not what tests import.

use super::{read, source_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by its path from the crate on, which is that of its file.
pub type Module = Vec<String>;

/// What each imports.
pub type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The modules of a crate. One and those within it are no strangers: what these import of each other does not count.
pub fn of_files(src: &Path) -> Imports {
    let files = source_files(src).into_iter().filter(|file| !file.ends_with("tests.rs"));
    let codes: BTreeMap<Module, String> = files.map(|file| (module_of(src, &file), code_of(&read(&file)))).collect();
    let resolve = |module: &Module, path: &Vec<String>| {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let from = if path[0] == "crate" { 0 } else { module.len().saturating_sub(ups) };
        let mut found = module[..from].to_vec();
        for name in &path[ups.max(1)..] {
            found.push(name.clone());
            if !codes.contains_key(&found) {
                found.pop();
                break;
            }
        }
        found
    };
    let imports_of = |(module, code): (&Module, &String)| {
        let imported = paths_in(code).iter().map(|path| resolve(module, path)).collect::<BTreeSet<_>>();
        let is_strange = |other: &Module| !module.starts_with(other) && !other.starts_with(module);
        (module.clone(), imported.into_iter().filter(is_strange).collect())
    };
    codes.iter().map(imports_of).collect()
}

/// The same of the modules that the crate itself has, each with those within it.
pub fn of_modules(src: &Path) -> Imports {
    let first = |module: &Module| module[..1].to_vec();
    let mut imports = Imports::new();
    for (module, imported) in of_files(src).into_iter().filter(|(module, _)| !module.is_empty()) {
        let others = imported.iter().map(first).filter(|other| *other != first(&module));
        imports.entry(first(&module)).or_default().extend(others);
    }
    imports
}

/// Who imports nobody that is left is taken away, until nobody is left or a circle.
pub fn circle(mut imports: Imports) -> Option<Imports> {
    while !imports.is_empty() {
        let known: BTreeSet<Module> = imports.keys().cloned().collect();
        let before = imports.len();
        imports.retain(|_, imported| imported.iter().any(|module| known.contains(module)));
        if imports.len() == before {
            return Some(imports);
        }
    }
    None
}

fn module_of(src: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(src).expect("it lies there").with_extension("");
    let mut module: Module = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    module.pop_if(|name| name == "mod" || name == "lib" || name == "main");
    module
}

/// A file without comments and tests.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
    code.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with `crate`, `super` or `self`.
fn paths_in(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for begin in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(begin) {
            if !code[..at].ends_with(|letter: char| is_of_name(letter) || letter == ':' || letter == '$') {
                read_tree(&code[at..], &[], &mut paths);
            }
        }
    }
    paths
}

/// Reads a path, or a list of them in braces behind `before`; gives the text behind it.
fn read_tree<'t>(text: &'t str, before: &[String], paths: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    let Some(mut list) = text.strip_prefix('{') else {
        let (name, rest) = text.split_at(text.find(|letter| !is_of_name(letter)).unwrap_or(text.len()));
        let path = [before, &[name.to_owned()]].concat();
        return match rest.strip_prefix("::") {
            Some(rest) => read_tree(rest, &path, paths),
            None => {
                paths.push(path);
                rest
            }
        };
    };
    loop {
        list = read_tree(list, before, paths);
        // Behind another name for it, if it has one.
        let Some(end) = list.find([',', '}']) else { return list };
        let (sign, rest) = list[end..].split_at(1);
        list = rest;
        if sign == "}" {
            return list;
        }
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[test]
fn paths_are_read_as_they_are_written() {
    let code =
        "use crate::a::{self, b::{C, D as E}, f};\nfn g() { super::super::h::I::new(crate::j) } my_crate::k::l()";
    let paths: Vec<String> = paths_in(code).iter().map(|path| path.join("::")).collect();
    let expected =
        ["crate::a::self", "crate::a::b::C", "crate::a::b::D", "crate::a::f", "crate::j", "super::super::h::I::new"];
    assert_eq!(paths, expected);
}

#[test]
fn a_circle_is_found() {
    let imports = |pairs: &[(&str, &str)]| -> Imports {
        pairs.iter().map(|(from, to)| (vec![(*from).to_owned()], BTreeSet::from([vec![(*to).to_owned()]]))).collect()
    };
    assert_eq!(circle(imports(&[("a", "b"), ("b", "c")])), None);
    assert_eq!(circle(imports(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "e")])).map(|left| left.len()), Some(3));
}
