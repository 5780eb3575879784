//! Imports between the files of a crate, and the circles among them.
//!
//! A file uses another one if it names something that is declared there, by `crate::`, `super::`, `self::` or the name
//! of a module. A name that a module only re-exports by `pub use` leads to the file that declares it. Methods need no
//! import, so an `impl` block in another file uses the type, and not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use super::{expand, in_name, line_of, without_blocks, without_macro_definitions, without_test_modules};

/// The modules of a crate, by path: `device::accept` is `src/device/accept.rs`, and the root of the crate has no name.
pub struct Modules {
    files: BTreeMap<String, File>,
}

struct File {
    path: String,
    code: String,
    /// Names that `use` introduces, and the absolute paths that they refer to.
    names: BTreeMap<String, String>,
    /// Absolute paths of globs.
    globs: Vec<String>,
}

/// A use of a file in another, for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub line: usize,
    pub name: String,
}

impl Modules {
    /// Reads the files of a crate: their paths, their paths below `src`, and their code without comments and literals.
    pub fn new(files: impl Iterator<Item = (String, String, String)>) -> Modules {
        let mut modules = Modules { files: BTreeMap::new() };
        for (path, inner, code) in files {
            let name = module_name(&inner);
            // A family of policies declares the modules of its policies, which use the family.
            let code = without_blocks(&without_macro_definitions(&without_test_modules(&code)), "policy_family! ");
            modules.files.insert(name, File { path, code, names: BTreeMap::new(), globs: Vec::new() });
        }
        let names: Vec<String> = modules.files.keys().cloned().collect();
        for module in names {
            let (mut names, mut globs) = (BTreeMap::new(), Vec::new());
            for (_, path, alias) in uses(&modules.files[&module].code) {
                let absolute = modules.absolute(&module, &path);
                match (absolute, path.rsplit("::").next().unwrap_or_default()) {
                    (Some(absolute), "*") => globs.push(absolute.trim_end_matches("::*").to_owned()),
                    (Some(absolute), last) => drop(names.insert(alias.unwrap_or_else(|| last.to_owned()), absolute)),
                    (None, _) => {}
                }
            }
            let file = modules.files.get_mut(&module).expect("it was just read");
            (file.names, file.globs) = (names, globs);
        }
        modules
    }

    /// Returns a path from the crate's root, without `crate::`. `None` for a path into another crate.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        let mut base: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
        let mut parts = path.split("::").peekable();
        match parts.peek().copied()? {
            "crate" => {
                base.clear();
                parts.next();
            }
            "self" => drop(parts.next()),
            "super" => {
                while parts.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
            first => {
                let child = join(&base.join("::"), first);
                if !self.files.contains_key(&child) {
                    let known = self.files.get(module)?.names.get(first)?;
                    let rest: Vec<&str> = parts.skip(1).collect();
                    return Some(rest.iter().fold(known.clone(), |path, part| join(&path, part)));
                }
            }
        }
        base.extend(parts.filter(|part| *part != "self"));
        Some(base.join("::"))
    }

    /// Returns the module that declares what an absolute path names, and `true` if the path is the module itself.
    fn declaring(&self, path: &str, depth: u32) -> Option<(&str, bool)> {
        let mut end = path.len();
        while !self.files.contains_key(&path[..end]) {
            end = path[..end].rfind("::").unwrap_or(0);
        }
        let (module, file) = self.files.get_key_value(&path[..end])?;
        let rest = path[end..].trim_start_matches("::");
        if rest.is_empty() {
            return Some((module, true));
        }
        let (first, behind) = rest.split_once("::").map_or((rest, ""), |(first, behind)| (first, behind));
        if depth == 0 || declares(&file.code, first) {
            return Some((module, false));
        }
        if let Some(target) = file.names.get(first) {
            let target = if behind.is_empty() { target.clone() } else { join(target, behind) };
            return self.declaring(&target, depth - 1);
        }
        for glob in &file.globs {
            if let Some((found, false)) = self.declaring(&join(glob, rest), depth - 1)
                && declares(&self.files[found].code, first)
            {
                return Some((found, false));
            }
        }
        Some((module, false))
    }

    /// Returns the uses of a module, by the module that is used.
    fn uses_of(&self, module: &str) -> BTreeMap<&str, Use> {
        let file = &self.files[module];
        let mut found: BTreeMap<&str, Use> = BTreeMap::new();
        for (line, path, is_re_export) in self.paths(module) {
            let Some(absolute) = self.absolute(module, &path) else { continue };
            let Some((used, is_module)) = self.declaring(&absolute, 8) else { continue };
            let last = path.rsplit("::").next().unwrap_or_default();
            // The name of a module alone is not a use, unlike a name in it. Neither is a name that is only re-exported.
            if used != module && !is_module && !(is_re_export && count(&file.code, last) < 2) {
                found.entry(used).or_insert(Use { line, name: path });
            }
        }
        found
    }

    /// Returns the paths in a file that may lead to another one, and `true` for those that `pub use` re-exports.
    fn paths(&self, module: &str) -> Vec<(usize, String, bool)> {
        let file = &self.files[module];
        let mut paths: Vec<(usize, String, bool)> = Vec::new();
        let mut add = |at: usize, is_re_export: bool| {
            let line = line_of(&file.code, at);
            expand(&file.code[at..], "", &mut |path| paths.push((line, path.to_owned(), is_re_export)));
        };
        let children = self.files.keys().filter_map(|name| {
            let child = name.strip_prefix(module)?.trim_start_matches("::");
            (!child.is_empty() && !child.contains("::") && join(module, child) == **name).then_some(child)
        });
        let heads = ["crate", "super", "self"].into_iter().chain(children).chain(file.names.keys().map(String::as_str));
        for head in heads.collect::<BTreeSet<_>>() {
            let start = format!("{head}::");
            for (at, _) in file.code.match_indices(&start) {
                let before = &file.code[..at];
                if before.ends_with(in_name) || before.ends_with("::") || before.ends_with('$') {
                    continue;
                }
                let statement = before.rfind([';', '}']).map_or(before, |end| &before[end + 1..]).trim_start();
                let is_use = statement.ends_with("use ");
                add(at, is_use && statement.starts_with("pub"));
            }
        }
        paths
    }

    /// Returns the groups of files that use each other in a circle, with the uses among them. Uses of the second file
    /// by the first one do not count if `is_free` returns `true` for their paths.
    pub fn circles(&self, is_free: impl Fn(&str, &str) -> bool) -> Vec<Circle> {
        let mut uses: BTreeMap<&str, BTreeMap<&str, Use>> =
            self.files.keys().map(|module| (module.as_str(), self.uses_of(module))).collect();
        let path = |module: &str| self.files[module].path.as_str();
        uses.iter_mut().for_each(|(module, uses)| uses.retain(|used, _| !is_free(path(module), path(used))));
        let reached = |from: &str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
            while let Some(module) = open.pop() {
                for used in uses[module.as_str()].keys().filter(|used| seen.insert((**used).to_owned())) {
                    open.push((*used).to_owned());
                }
            }
            seen
        };
        let reach: BTreeMap<&str, BTreeSet<String>> = uses.keys().map(|module| (*module, reached(module))).collect();
        let mut circles: BTreeMap<BTreeSet<&str>, Circle> = BTreeMap::new();
        for (module, reached) in &reach {
            let members: BTreeSet<&str> = reach
                .keys()
                .copied()
                .filter(|other| reached.contains(*other) && reach[other].contains(*module))
                .collect();
            if members.len() > 1 {
                circles.entry(members.clone()).or_insert_with(|| self.circle(&members, &uses));
            }
        }
        circles.into_values().collect()
    }

    fn circle(&self, members: &BTreeSet<&str>, uses: &BTreeMap<&str, BTreeMap<&str, Use>>) -> Circle {
        let file = |module: &str| self.files[module].path.clone();
        let of = |module: &&str| {
            let inside = uses[*module].iter().filter(|(used, _)| members.contains(*used));
            let place = file(module);
            inside
                .map(|(used, by)| format!("{place}:{}: uses {} by `{}`", by.line, file(used), by.name))
                .collect::<Vec<_>>()
        };
        Circle {
            files: members.iter().map(|module| file(module)).collect(),
            uses: members.iter().flat_map(of).collect(),
        }
    }
}

/// Files that use each other in a circle.
#[derive(Debug)]
pub struct Circle {
    /// Paths of the files, in order.
    pub files: BTreeSet<String>,
    /// The uses among them: file, line, and what is used.
    pub uses: Vec<String>,
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

/// Returns the path of the module that a file below `src` is.
fn module_name(inner: &str) -> String {
    let path = inner.trim_end_matches(".rs");
    let path = if path == "lib" || path == "main" { "" } else { path.trim_end_matches("/mod") };
    path.replace('/', "::")
}

/// Returns `true` if code declares an item of this name.
fn declares(code: &str, name: &str) -> bool {
    let words = ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules!"];
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].trim_end();
        let is_whole = !code[at + name.len()..].starts_with(in_name) && !code[..at].ends_with(in_name);
        is_whole && before.len() < at && words.iter().any(|word| before.ends_with(word))
    })
}

/// Returns how often a name is in code, without those of a module of that name.
fn count(code: &str, name: &str) -> usize {
    let whole = |at: usize| {
        !code[at + name.len()..].starts_with(in_name)
            && !code[at + name.len()..].starts_with("::")
            && !code[..at].ends_with(in_name)
            && !code[..at].ends_with("mod ")
    };
    code.match_indices(name).filter(|(at, _)| whole(*at)).count()
}

/// Returns the paths of all `use` declarations of a file, with their lines and aliases.
fn uses(code: &str) -> Vec<(usize, String, Option<String>)> {
    let mut found = Vec::new();
    for (at, head) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches(' ');
        if !(before.is_empty() || before.ends_with(['\n', ')', '{', '}', ';']) || before.ends_with("pub")) {
            continue;
        }
        let statement = &code[at + head.len()..];
        let statement = &statement[..statement.find(';').unwrap_or(statement.len())];
        let line = line_of(code, at);
        expand(statement, "", &mut |path| {
            let last = path.rsplit("::").next().unwrap_or_default();
            let renamed = statement.split_once(&format!("{last} as ")).map(|(_, name)| name.trim_start());
            let alias = renamed.map(|name| name.chars().take_while(|c| in_name(*c)).collect());
            let path = path.trim_end_matches("::self");
            found.push((line, path.to_owned(), alias));
        });
    }
    found
}

#[test]
fn import_circles_are_found() {
    let file = |inner: &str, code: &str| (inner.to_owned(), inner.to_owned(), code.to_owned());
    let of = |files: &[(&str, &str)]| {
        let circles = Modules::new(files.iter().map(|(inner, code)| file(inner, code))).circles(|_, _| false);
        circles.into_iter().map(|circle| circle.files.into_iter().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let leaf = ("c.rs", "pub struct C;\n");
    // Uses by `crate`, by `super`, and by the name of a module.
    assert_eq!(
        of(&[("a.rs", "use crate::b::B;\nstruct A;"), ("b.rs", "use super::a::A;\nstruct B;"), leaf]),
        ["a.rs b.rs"]
    );
    assert_eq!(
        of(&[("a.rs", "use crate::b;\nstruct A; fn f() { b::g() }"), ("b.rs", "fn g(a: crate::a::A) {}")]),
        ["a.rs b.rs"]
    );
    assert!(of(&[("a.rs", "use crate::b::B;\nstruct A;"), ("b.rs", "use crate::c::C;\nstruct B;"), leaf]).is_empty());
    // A re-exported name leads to the file that declares it, and the re-export is not a use.
    let inner = ("a/b.rs", "use super::c::C;\npub struct B;");
    assert!(
        of(&[("a/mod.rs", "mod b;\nmod c;\npub use b::B;\npub use c::C;"), inner, ("a/c.rs", "pub struct C;")])
            .is_empty()
    );
    let handed = ("d.rs", "use crate::a::C;\nuse crate::a::B;");
    assert!(of(&[("a/mod.rs", "pub use b::B;\npub use c::C;"), inner, ("a/c.rs", "pub struct C;"), handed]).is_empty());
    // A module uses a name that it re-exports, and the file that declares the name uses the module.
    let child = ("a/b.rs", "use super::A;\npub struct B;");
    assert_eq!(of(&[("a/mod.rs", "mod b;\npub use b::B;\npub struct A(B);"), child]), ["a/b.rs a/mod.rs"]);
    assert!(of(&[("a/mod.rs", "mod b;\npub use b::B;\npub struct A;"), child]).is_empty());
}
