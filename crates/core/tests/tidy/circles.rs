//! Imports between the files of a crate, and the circles among them.
//!
//! A file uses another one if it names something that is declared there, by `crate::`, `super::`, `self::` or the name
//! of a module. A name that a module only re-exports by `pub use` leads to the file that declares it. Methods need no
//! import, so an `impl` block in another file uses the type, and not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::{self, Path, TESTS, Token, text};

/// The modules of a crate, by path: `device::accept` is `src/device/accept.rs`, and the root of the crate has no name.
pub struct Modules {
    files: BTreeMap<String, File>,
}

struct File {
    path: String,
    code: Vec<Token>,
    paths: Vec<Path>,
    /// Names that `use` introduces, and the absolute paths that they refer to.
    names: BTreeMap<String, String>,
    /// Absolute paths of globs.
    globs: Vec<String>,
}

impl Modules {
    /// Reads the files of a crate: their paths, their paths below `src`, and their text.
    pub fn new<'a>(files: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Modules {
        let mut modules = Modules { files: BTreeMap::new() };
        for (path, inner, text) in files {
            // A family of policies declares the modules of its policies, which use the family.
            let code = rust::without(rust::parse(text), &[TESTS, "macro_rules ! ", "policy_family ! "]);
            let code = rust::tokens(code);
            let file = File {
                path: path.to_owned(),
                paths: rust::paths(&code),
                code,
                names: BTreeMap::new(),
                globs: Vec::new(),
            };
            modules.files.insert(module_name(inner), file);
        }
        for module in modules.files.keys().cloned().collect::<Vec<_>>() {
            let (mut names, mut globs) = (BTreeMap::new(), Vec::new());
            for Path { text, alias, .. } in modules.files[&module].paths.iter().filter(|path| path.is_in_use) {
                let text = text.trim_end_matches("::self");
                match (modules.absolute(&module, text), text.rsplit("::").next().unwrap_or_default()) {
                    (Some(absolute), "*") => globs.push(absolute.trim_end_matches("::*").to_owned()),
                    (Some(absolute), last) => drop(names.insert(alias.as_deref().unwrap_or(last).to_owned(), absolute)),
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

    /// Returns the first use of each other module by a module, as its line and path.
    fn uses_of(&self, module: &str) -> BTreeMap<&str, (usize, &str)> {
        let File { code, paths, .. } = &self.files[module];
        let mut found = BTreeMap::new();
        // A file that declares nothing, such as a facade, has the names that it re-exports for others.
        let is_facade = !code.iter().any(|token| DECLARATIONS.contains(&token.text.as_str()));
        for Path { line, text, is_re_export, .. } in paths {
            let Some((used, is_module)) = self.absolute(module, text).and_then(|path| self.declaring(&path, 8)) else {
                continue;
            };
            let last = text.rsplit("::").next().unwrap_or_default();
            // The name of a module alone is not a use, unlike a name in it. Neither is a name that is only re-exported.
            if used != module && !is_module && !(*is_re_export && (is_facade || count(code, last) < 2)) {
                found.entry(used).or_insert((*line, text.as_str()));
            }
        }
        found
    }

    /// Returns the groups of files that use each other in a circle, each with the uses among them as messages. A use
    /// does not count if `is_free` returns `true` for the path of the file and the name that it uses.
    pub fn circles<'a>(&'a self, is_free: impl Fn(&str, &str) -> bool) -> Vec<(BTreeSet<&'a str>, Vec<String>)> {
        let path = |module: &str| self.files[module].path.as_str();
        let uses = |module: &String| {
            let by = path(module);
            let uses = self.uses_of(module).into_iter().map(|(used, at)| (path(used), at));
            (by, uses.filter(|(_, (_, name))| !is_free(by, name)).collect::<BTreeMap<_, _>>())
        };
        let uses: BTreeMap<&str, _> = self.files.keys().map(uses).collect();
        let edges = uses.iter().map(|(file, uses)| (*file, uses.keys().copied().collect())).collect();
        let with_uses = |circle: BTreeSet<&'a str>| {
            let inside = |file: &&str| circle.contains(*file);
            let mut messages = Vec::new();
            for file in &circle {
                for (used, (line, name)) in uses[file].iter().filter(|(used, _)| inside(used)) {
                    messages.push(format!("{file}:{line}: uses {used} by `{name}`"));
                }
            }
            (circle, messages)
        };
        rust::circles(&edges).into_iter().map(with_uses).collect()
    }
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

/// Keywords before the name of an item.
const DECLARATIONS: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "union"];

/// Returns `true` if code declares an item of this name.
fn declares(code: &[Token], name: &str) -> bool {
    code.windows(2).any(|pair| pair[1].text == name && DECLARATIONS.contains(&pair[0].text.as_str()))
}

/// Returns how often a name is in code, without declarations of a module of the name.
fn count(code: &[Token], name: &str) -> usize {
    let is_module = |at: usize| text(code, at + 1) == "::" || text(code, at.wrapping_sub(1)) == "mod";
    (0..code.len()).filter(|at| text(code, *at) == name && !is_module(*at)).count()
}

#[test]
fn import_circles_are_found() {
    let of = |files: &[(&str, &str)]| {
        let modules = Modules::new(files.iter().map(|(inner, code)| (*inner, *inner, *code)));
        let files = |(files, _)| Vec::from_iter::<BTreeSet<&str>>(files).join(" ");
        modules.circles(|_, _| false).into_iter().map(files).collect::<Vec<_>>()
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
    let back = ("a/b.rs", "use crate::d::D;\npub struct B;");
    let user = ("d.rs", "use crate::a::B;\npub struct D;");
    assert_eq!(of(&[("a/mod.rs", "mod b;\npub use b::B;"), back, user]), ["a/b.rs d.rs"]);
    // A module uses a name that it re-exports, and the file that declares the name uses the module.
    let child = ("a/b.rs", "use super::A;\npub struct B;");
    assert_eq!(of(&[("a/mod.rs", "mod b;\npub use b::B;\npub struct A(B);"), child]), ["a/b.rs a/mod.rs"]);
    assert!(of(&[("a/mod.rs", "mod b;\npub use b::B;\npub struct A;"), child]).is_empty());
    // A facade exports two items of one name.
    let facade = "mod d;\nmod a;\npub mod e { pub use crate::a::B; }\npub mod f { pub use crate::d::B; }";
    let used = ("a.rs", "use crate::sim::S;\npub struct B;");
    assert!(of(&[("lib.rs", facade), used, ("d.rs", "pub struct B;")]).is_empty());
}
