//! Style of the project, as a test: it reads the source tree, and reports each violation with file and line.
//!
//! Rules that rustfmt and clippy check are not here. CONTRIBUTING.md has the rules and their reasons.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/rust.rs"]
mod rust;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use circles::Modules;
use regex::Regex;
use rust::{Function, Path, TESTS, Token};

/// Modules of a crate, the paths below `crate` that each may use, and why. A path covers everything below it. A `*` at
/// the start of a part matches any start of a name.
type Layers = &'static [(&'static str, &'static str, &'static str)];

/// Crates whose modules have layers. A module that is missing here is an error.
const LAYERS: &[(&str, Layers)] = &[("sim", SIM), ("workload", WORKLOAD), ("core", CORE)];

const SIM: Layers = &[
    ("id", "", "it uses nothing"),
    ("list", "", "it uses nothing"),
    ("memory", "", "it uses nothing"),
    ("queue", "time", "events have times"),
    ("request", "time", "requests have times"),
    ("rng", "", "it uses nothing"),
    ("slab", "id", "entries have ids"),
    ("slab", "memory", "entries are prefetched"),
    ("source", "request", "a source returns requests"),
    ("source", "time", "a source has a start and an end"),
    ("table", "id", "entries have ids"),
    ("table", "memory", "entries are prefetched"),
    ("text", "", "it uses nothing"),
    ("time", "", "it uses nothing"),
];

const WORKLOAD: Layers = &[
    ("file", "", "it uses nothing"),
    ("quantity", "sim", "sizes are counted in sectors"),
    ("placed", "sim", "it is a source"),
    ("placed", "quantity", "errors name sizes"),
    ("trace", "sim", "traces are sources, and their lines and times are read"),
    ("trace", "quantity", "options and errors name sizes and times"),
    ("trace", "file", "a trace is read until a stop is requested"),
    ("trace", "placed", "the options of a trace say where it is put"),
    ("objects", "sim", "object traces are sources"),
    ("objects", "quantity", "options and errors name sizes"),
    ("objects", "file", "a trace is read until a stop is requested"),
    ("objects", "trace", "files are decompressed, and paces and options are those of traces"),
    ("synthetic", "sim", "jobs are sources, and draw random numbers"),
    ("synthetic", "quantity", "descriptions name sizes"),
    ("synthetic", "file", "a trace in a job is read until a stop is requested"),
    ("synthetic", "trace", "a job may replay a trace, and a model is fitted to the profile of a trace"),
];

/// Requests pass from `run` down to the flash, events return, and only `device` knows all layers. `sim` is the crate of
/// that name.
const CORE: Layers = &[
    ("state", "sim", "streams of random numbers are a part of it"),
    ("external", "config", "the device file names policies, and they are made for a device"),
    ("external", "state::StateError", "policies of other programs are not saved"),
    ("config", "sim", "the file is read up to a limit, errors quote it, and some of its values are times"),
    ("config", "scheduler::*Config", "the file names policies: families give the types of their options, nothing else"),
    ("config", "ftl::allocation::*Config ftl::mapping::*Config ftl::gc::victim::*Config", "as above"),
    ("config", "ftl::gc::trigger::*Config ftl::gc::wear::*Config ftl::temperature::*Config", "as above"),
    ("config", "cache::eviction::*Config host::arbitration::*Config", "as above"),
    ("config", "state::Difference", "two devices differ in what shapes a saved state"),
    ("policy", "config", "a policy is made for a device"),
    ("policy", "external", "policies may be another program's"),
    ("work", "sim", "transactions have ids, and wait in queues"),
    ("metrics", "sim", "what is measured is time, and results are by operation and stream"),
    ("metrics", "config", "results hold the device file"),
    ("metrics", "nand::array::ChannelTime nand::array::DieTime", "utilization is made of the array's times"),
    ("metrics", "nand::array::Kind nand::parallel", "commands are counted by kind"),
    ("metrics", "nand::gauge", "results have lengths of queues"),
    ("metrics", "nand::timing::Timing", "what bounds a run follows from how long everything takes"),
    ("scheduler", "sim", "operations wait in order of time"),
    ("scheduler", "config", "policies are made for a device"),
    ("scheduler", "external", "policies may be another program's"),
    ("scheduler", "policy policy_family", "schedulers are policies"),
    ("scheduler", "work", "they rank classes of operations, and transactions wait in their queues"),
    ("nand", "sim", "operations take time"),
    ("nand", "work", "operations are of kinds and classes"),
    ("nand", "config", "geometry and times of the flash"),
    ("nand", "scheduler", "a channel and a die ask which operation goes first"),
    ("nand", "state", "what it remembers is saved"),
    ("ftl", "sim", "ids and random numbers"),
    ("ftl", "config", "geometry, and options of the policies"),
    ("ftl", "external", "policies may be another program's"),
    ("ftl", "policy policy_family", "allocation and victims are policies"),
    ("ftl", "has_whole_map", "a macro of its own"),
    ("ftl", "mapping", "the macro uses the paths that other crates see"),
    ("ftl", "metrics::counters metrics::table", "what was programmed, by cause, and counts are saved"),
    ("ftl", "metrics::collections", "how long victims are collected"),
    ("ftl", "metrics::summary::FaultState", "what has failed is a part of the results"),
    ("ftl", "nand::media", "what the flash holds, which a recovery has to go by"),
    ("ftl", "work", "steps of garbage collection have a scheduling class"),
    ("ftl", "state", "map, blocks and policies are saved"),
    ("dispatch", "sim", "ids and times"),
    ("dispatch", "config", "which operations work together, overlap, and wait for others"),
    ("dispatch", "work", "transactions wait in its queues"),
    ("dispatch", "scheduler", "which operation goes first"),
    ("dispatch", "nand", "which execution units are idle, and what they work on"),
    ("dispatch", "ftl", "where operations would go, and the order of planes"),
    ("dispatch", "host", "a scheduler sees the requests of operations"),
    ("dispatch", "cache", "reads suspend nothing while writes wait for room"),
    ("dispatch", "metrics::counters", "skipped pages have causes"),
    ("dispatch", "state", "the turns of planes are saved"),
    ("host", "policy policy_family", "arbitration is a policy"),
    ("host", "sim", "what a host sends, and when"),
    ("host", "config", "the queue, the link, and the cores"),
    ("host", "ftl", "writes are delayed while few blocks are free"),
    ("cache", "sim", "ids and times, and it holds parts of requests"),
    ("cache", "config", "sizes, and options of the policies"),
    ("cache", "external", "policies may be another program's"),
    ("cache", "policy policy_family", "eviction is a policy"),
    ("cache", "metrics", "hits are counted"),
    ("cache", "work", "reads bring what it keeps, and writes carry what it writes out"),
    ("cache", "ftl", "what a read has brought may have moved"),
    ("cache", "dispatch::Filling", "it completes program units that are being filled"),
    ("cache", "host::requests::Part", "the units that a request touches"),
    ("cache", "host::throttle::FillLevel", "a throttle admits writes by it"),
    ("durability", "sim", "ids, requests and random numbers"),
    ("durability", "config", "sizes of the journal and of the checkpoint"),
    ("durability", "metrics::counters", "programs have causes"),
    ("durability", "work", "writes that are in flight"),
    ("durability", "nand::media", "what the flash holds"),
    ("durability", "nand::array::Array", "how long a recovery takes"),
    ("durability", "ftl", "where units are, and which blocks wait"),
    ("durability", "cache", "what the buffer holds"),
    ("durability", "host::requests::Part", "the units that a request touches"),
    ("durability", "state", "the journal and the checkpoint are saved"),
    ("observe", "sim", "ids, times and requests"),
    ("observe", "config", "which parts of a device take time"),
    ("observe", "metrics::attribution", "what the time of requests goes into"),
    ("observe", "metrics::counters", "programs have causes"),
    ("observe", "work", "transactions in progress"),
    ("observe", "nand", "who holds what, and what the flash holds"),
    ("observe", "ftl", "where units are"),
    ("observe", "cache", "what the buffer holds"),
    ("observe", "host", "requests in progress"),
    ("observe", "durability", "what changes in flash"),
    ("ssd", "sim metrics external::Fault", "the interface between a device and what drives it"),
    ("ssd", "nand::probe::Slice nand::probe::CoreWork", "what a probe saw is handed over"),
    ("device", "sim config metrics work scheduler nand ftl", "the router: the only module that knows all layers"),
    ("device", "dispatch cache host durability observe state external ssd", "as above"),
    ("lifetime", "sim", "the requests that wear a device out"),
    ("lifetime", "config", "the endurance of a device"),
    ("lifetime", "device", "what is worn out"),
    ("lifetime", "ftl::allocation", "how much the good blocks can hold"),
    ("lifetime", "metrics::counters", "what the host has written until then"),
    ("lifetime", "metrics::summary", "the erases of blocks are a part of the result"),
    ("lifetime", "precondition", "requests are served without time"),
    ("precondition", "sim", "what a device has gone through before the run"),
    ("precondition", "config device", "one plane of a device, for its steady state at the hard threshold"),
    ("precondition", "external::Externals", "the plane has built-in policies only"),
    ("precondition", "metrics::counters", "how far it has come"),
    ("precondition", "metrics::summary", "the state that it reached is a part of the result"),
    ("precondition", "ftl", "without time, the translation layer works by itself"),
    ("precondition", "ftl::temperature::written", "what it writes is classified"),
    ("precondition", "nand::media", "what the flash holds"),
    ("run", "nand::gauge", "what is measured has lengths of queues"),
    ("run", "nand::parallel", "what is measured has counts of commands"),
    ("run", "sim metrics", "the loop that feeds a device from a source, to its end"),
    ("run", "config::DeviceConfig device ssd", "a result has the configuration"),
    ("run", "external::Fault", "a policy of another program ends a run when it fails"),
    ("run", "nand::probe::Slice nand::probe::CoreWork", "observers of a run are handed what was seen"),
    ("run", "nand::array::ChannelTime", "what was spent in the measured part goes into the result"),
    ("run", "nand::array::DieTime", "as above"),
    ("contract", "sim", "what policies decide on has ids and times"),
    ("contract", "config", "policies are made for a device"),
    ("contract", "device ssd", "a device with a policy serves requests"),
    ("contract", "durability::flash::Keep", "the power of a device is cut"),
    ("contract", "external::Externals", "policies may be another program's"),
    ("contract", "ftl", "victims are blocks"),
    ("contract", "scheduler::RANKS work::Class", "schedulers rank classes"),
    ("contract", "state", "policies are saved and loaded"),
];

/// Maximum number of lines of a function, including signature, comments and closing brace, so that it fits on a screen.
/// Clippy's `too_many_lines` counts the code of the body only.
const LONGEST_FUNCTION: usize = 70;

/// Maximum number of characters of a line. In Rust, string contents do not count, so that messages can be searched for.
/// Neither do the tables of `validation`.
const LONGEST_LINE: usize = 120;

/// Files and folders that are checked, relative to the root of the repository. A folder includes its contents.
const LOOKED_AT: &str = "crates docs examples python/floatgate python/tests scripts validation fuzz/Cargo.toml \
    fuzz/fuzz_targets .ci .github README.md ARTIFACT.md CONTRIBUTING.md RELEASING.md CHANGELOG.md CITATION.cff \
    Cargo.toml Containerfile Makefile clippy.toml pyproject.toml rustfmt.toml";

#[test]
fn layers_import_downwards_only() {
    let mut found = Vec::new();
    let files = rust_files();
    for (name, layers) in LAYERS {
        let mut used = BTreeSet::new();
        let folder = format!("crates/{name}/src/");
        for (path, text) in &files {
            if let Some(inner) = path.strip_prefix(&folder).filter(|inner| *inner != "lib.rs") {
                check_imports(layers, path, inner, text, &mut used, &mut found);
            }
        }
        for (module, targets, _) in *layers {
            for target in targets.split_whitespace().filter(|target| !used.contains(&(*module, *target))) {
                found.push(format!("{TIDY}:1: `{module}` does not use `crate::{target}`; remove it from LAYERS"));
            }
        }
    }
    report(&found);
}

/// Adds the forbidden imports of a file to `found`, and the entries of `layers` that allow its imports to `used`.
/// `inner` is its path below `src`.
fn check_imports(
    layers: Layers,
    path: &str,
    inner: &str,
    text: &str,
    used: &mut BTreeSet<(&'static str, &'static str)>,
    found: &mut Vec<String>,
) {
    let module = inner.split(['/', '.']).next().unwrap_or_default();
    let Some(module) = layers.iter().map(|(listed, ..)| *listed).find(|listed| *listed == module) else {
        found.push(format!("{path}:1: the module `{module}` is not in LAYERS ({TIDY})"));
        return;
    };
    let code = rust::tokens(rust::without(rust::parse(text), &[TESTS]));
    for Path { line, text: target, .. } in rust::paths(&code) {
        let Some(target) = target.strip_prefix("crate::") else { continue };
        let allowed = layers.iter().filter(|(listed, ..)| *listed == module);
        let allowed = allowed.flat_map(|(_, targets, _)| targets.split_whitespace());
        let covering: Vec<&str> = allowed.filter(|pattern| covers(pattern, target)).collect();
        used.extend(covering.iter().map(|pattern| (module, *pattern)));
        if target.split("::").next() != Some(module) && covering.is_empty() {
            found.push(format!("{path}:{line}: `{module}` may not use `crate::{target}` (LAYERS, in tidy.rs)"));
        }
    }
    let to_the_root = ["super", "::"].repeat(depth(inner));
    for (at, Token { text, line, .. }) in code.iter().enumerate() {
        if code[at..].iter().map(|token| token.text.as_str()).take(to_the_root.len()).eq(to_the_root.iter().copied()) {
            found.push(format!("{path}:{line}: path to the root of the crate by `super`; write `crate::`"));
        }
        if text.starts_with("floatgate_") {
            found.push(format!("{path}:{line}: name of a crate in a path; write `crate::sim`"));
        }
    }
}

/// Checks that CONTRIBUTING.md lists the modules that exist, and no others.
#[test]
fn contributing_lists_all_existing_modules() {
    let text = read("CONTRIBUTING.md");
    let named: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let absent = named.iter().filter(|path| path.contains('/') && !root().join(path).exists());
    let mut found: Vec<_> = absent.map(|path| format!("CONTRIBUTING.md:1: `{path}` does not exist")).collect();
    for name in folders("crates").into_iter().map(|name| format!("crates/{name}")) {
        let is_named =
            |path: &str| [format!("{path}/"), format!("{path}.rs")].iter().any(|at| named.contains(&at.as_str()));
        let layers = LAYERS.iter().filter(|(layered, _)| name == format!("crates/{layered}"));
        let modules: Vec<_> = layers.flat_map(|(_, rows)| *rows).map(|row| format!("{name}/src/{}", row.0)).collect();
        if !is_named(&name) && (modules.is_empty() || !modules.iter().all(|module| is_named(module))) {
            found.push(format!("CONTRIBUTING.md:1: `{name}`, or one of {modules:?}, is not described"));
        }
    }
    report(&found);
}

/// Modules of the facade (`lib.rs` of the core) by their readers, and the number of names that these modules export.
/// The fields of the summary are the published result format, and the names of `internals` are for tests alone: both
/// have no limit. A change of a number needs a reason that decision 0041 accepts.
const FACADE: &[(&str, usize)] = &[
    ("device_file simulation preparation results timeline endurance flash saved_state", 108),
    ("policies mapping laws", 71),
    ("summary internals", usize::MAX),
];

/// Checks that the core exports the names of its facade and nothing else, each of them once, and that the table in
/// docs/architecture.md has their numbers.
#[test]
fn the_facade_is_small() {
    let path = format!("{CORE_SOURCE}lib.rs");
    let code = rust::tokens(rust::parse(&read(&path)));
    let starts = code.windows(4).filter(|four| four[0].text == "pub" && four[1].text == "mod" && four[3].text == "{");
    let starts: Vec<(usize, &str)> = starts.map(|four| (four[2].line, four[2].text.as_str())).collect();
    let mut names: BTreeMap<&str, usize> = starts.iter().map(|(_, module)| (*module, 0)).collect();
    let (mut found, mut exported) = (Vec::new(), BTreeSet::new());
    for Path { line, text, .. } in rust::paths(&code).into_iter().filter(|path| path.is_re_export) {
        match starts.iter().rev().find(|(start, _)| *start <= line) {
            Some((_, module)) if !text.ends_with('*') => *names.entry(module).or_default() += 1,
            // The macro is for the core alone.
            None if ["floatgate_sim", "policy::policy_family"].contains(&text.as_str()) => {}
            _ => found.push(format!("{path}:{line}: `{text}` is not a name in a module of the facade")),
        }
        if !exported.insert(text.clone()) {
            found.push(format!("{path}:{line}: `{text}` has another path already"));
        }
    }
    let architecture = read("docs/architecture.md");
    for (module, count) in &names {
        let is_listed = FACADE.iter().any(|(modules, _)| modules.split(' ').any(|listed| listed == *module));
        if !is_listed || (*module != "internals" && !architecture.contains(&format!("| `{module}` | {count} |"))) {
            found.push(format!("{path}:1: `{module}` has {count} names: FACADE, docs/architecture.md"));
        }
    }
    for (modules, limit) in FACADE.iter().filter(|(_, limit)| *limit != usize::MAX) {
        let count: usize = modules.split(' ').map(|module| names.get(module).copied().unwrap_or_default()).sum();
        if count != *limit {
            found.push(format!("{path}:1: {count} names in `{modules}`, expected {limit} (FACADE in tidy.rs)"));
        }
    }
    report(&found);
}

/// Crates of the workspace that each crate may depend on, and further ones that its tests may use.
const CRATES: &[(&str, &str, &str)] = &[
    ("sim", "", ""),
    ("workload", "sim", ""),
    ("core", "sim", "validation workload"),
    ("validation", "core workload", "import"),
    ("array", "core", "workload"),
    ("report", "core workload", ""),
    ("serve", "array core workload", ""),
    ("guest", "", ""),
    ("import", "", "core workload"),
    ("run", "array core import report workload", ""),
    ("cli", "array core guest report run serve workload", ""),
    ("py", "array core report run workload", ""),
    ("wheel", "floatgate core py", ""),
];

/// Checks the dependencies of each crate. A crate with more dependencies is rebuilt more often, so each one is listed.
#[test]
fn crates_have_the_listed_dependencies() {
    let mut found = Vec::new();
    for name in folders("crates") {
        let Some((_, dependencies, of_tests)) = CRATES.iter().find(|(listed, ..)| *listed == name) else {
            found.push(format!("{TIDY}:1: `crates/{name}` is not in CRATES"));
            continue;
        };
        let path = format!("crates/{name}/Cargo.toml");
        let manifest: toml::Table = read(&path).parse().expect(&path);
        for (section, listed) in [("dependencies", dependencies), ("dev-dependencies", of_tests)] {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            let ours = table.into_iter().flat_map(toml::Table::keys).filter(|key| key.starts_with("floatgate"));
            let ours: BTreeSet<&str> = ours.map(|key| key.strip_prefix("floatgate-").unwrap_or(key)).collect();
            if ours != listed.split_whitespace().collect() {
                found.push(format!("{path}:1: {section} are {ours:?}, expected {listed:?} (CRATES in tidy.rs)"));
            }
        }
    }
    report(&found);
}

/// Checks that decision records are numbered without gaps, and that the documentation site lists each of them.
#[test]
fn decision_records_are_complete() {
    let site = read("mkdocs.yml");
    let mut found = Vec::new();
    for (name, number) in entries("docs/decisions").iter().zip(1..) {
        if !name.starts_with(&format!("{number:04}-")) {
            found.push(format!("docs/decisions/{name}:1: wrong number, expected {number:04}"));
        }
        if !site.contains(&format!("- decisions/{name}\n")) {
            found.push(format!("mkdocs.yml:1: `decisions/{name}` is missing"));
        }
    }
    report(&found);
}

#[test]
fn functions_fit_on_a_screen() {
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        let code = rust::without(rust::parse(&text), &[TESTS, "macro_rules ! "]);
        let long = rust::functions(code).into_iter().filter(|function| function.lines.len() > LONGEST_FUNCTION);
        found.extend(long.map(|Function { name, lines, .. }| {
            format!("{path}:{}: `{name}` has {} lines, more than {LONGEST_FUNCTION}", lines.start, lines.len())
        }));
    }
    report(&found);
}

/// A call that could return to its caller is a task instead (`work/tasks.rs`).
#[test]
fn methods_of_the_device_do_not_call_each_other_in_a_cycle() {
    let mut calls: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for (path, text) in &rust_files() {
        let Some(part) =
            ["device", "dispatch"].into_iter().find(|part| path.starts_with(&format!("{CORE_SOURCE}{part}/")))
        else {
            continue;
        };
        let (impls, others) = rust::impls(rust::without(rust::parse(text), &[TESTS]));
        let of_module = (part == "dispatch").then_some((part.to_owned(), others));
        for (of, block) in impls.into_iter().chain(of_module) {
            for Function { name, lines, body } in rust::functions(block) {
                let Some(name) = name_of_method(part, &of, &name) else { continue };
                let body = rust::tokens(body);
                let called = rust::calls(&body).filter_map(|(before, name)| name_of_callee(part, &of, before, name));
                let entry = calls.entry(name).or_insert((format!("{path}:{}", lines.start), BTreeSet::new()));
                entry.1.extend(called);
            }
        }
    }
    assert!(calls.len() > 200, "too few methods of the device found");
    assert!(calls["dispatch::start_one"].1.contains("Binder::bind"), "the functions of dispatch are not found");
    let known = |called: &BTreeSet<String>| called.iter().filter(|name| calls.contains_key(*name)).count();
    let edges: usize = calls.values().map(|(_, called)| known(called)).sum();
    assert!(edges > 600, "too few calls found: {edges}");
    let edges = calls.iter().map(|(name, (_, called))| (name.as_str(), called.iter().map(String::as_str).collect()));
    let members = rust::circles(&edges.collect()).into_iter().flatten();
    report(&members.map(|name| format!("{}: `{name}` is in a cycle", calls[name].0)).collect::<Vec<_>>());
}

/// Number of methods of the device, and of files with them. `Context` and `Ssd` do not count: they are what a mapping
/// scheme and a run see.
const METHODS_OF_DEVICE: (usize, usize) = (198, 13);

/// The device routes, and its components decide. Each method can see all components, and so can a function in its
/// folder that takes `&mut Device`.
#[test]
fn the_device_has_few_methods() {
    let takes_device = Regex::new(r"\bfn \w+ [^{;]*& mut Device\b").expect("a regular expression");
    let (mut methods, mut found) = (0, Vec::new());
    let folder = format!("{CORE_SOURCE}device/");
    for (path, text) in rust_files().iter().filter(|(path, _)| path.starts_with(&folder)) {
        let (impls, mut others) = rust::impls(rust::without(rust::parse(text), &[TESTS]));
        let mut count = 0;
        for (of, block) in impls {
            match of.as_str() {
                "Device" | "Binder for Device" => count += rust::functions(block).len(),
                "Context for Device" | "Ssd for Device" => {}
                _ => others.extend(block),
            }
        }
        let others = rust::tokens(others).into_iter().map(|token| token.text + " ").collect::<String>();
        count += takes_device.find_iter(&others).count();
        if count > 0 {
            methods += count;
            found.push(format!("{path}: {count} methods"));
        }
    }
    assert!(methods > 100, "too few methods of the device found");
    let expected = METHODS_OF_DEVICE;
    if (methods, found.len()) != expected {
        found.push(format!("{TIDY}: {methods} methods in {} files, expected {expected:?}", found.len()));
        report(&found);
    }
}

/// Returns the name of a function of `device` or `dispatch` in the graph of calls. `of` is what its block is for.
fn name_of_method(part: &str, of: &str, name: &str) -> Option<String> {
    match (part, of) {
        ("device", "Device" | "Ssd for Device") => Some(name.to_owned()),
        // A mapping scheme may call all of its context.
        ("device", "Context for Device") => Some("mapping".to_owned()),
        ("device", "Binder for Device") => Some(format!("Binder::{name}")),
        ("device", _) => None,
        _ => Some(format!("{of}::{name}")),
    }
}

/// Returns the name in the graph of calls of a function that is called after two tokens, with the arguments of
/// [`name_of_method`]. A closure in the device may name the device.
fn name_of_callee(part: &str, of: &str, before: [&str; 2], name: &str) -> Option<String> {
    match (part, before) {
        ("device", ["self" | "device", "."]) => Some(name.to_owned()),
        ("device", ["dispatch", "::"]) => Some(format!("dispatch::{name}")),
        ("device", ["call", "::"]) => Some("mapping".to_owned()),
        ("device", _) | (_, [_, "fn"]) => None,
        (_, ["b", "."]) => Some(format!("Binder::{name}")),
        (_, ["self", "."]) => Some(format!("{of}::{name}")),
        (_, ["dispatch", "."]) => Some(format!("Dispatch::{name}")),
        (_, [_, "." | "::"]) => None,
        _ => Some(format!("dispatch::{name}")),
    }
}

/// Folder of the source of the core.
const CORE_SOURCE: &str = "crates/core/src/";

/// The device file. It includes the options of policies, which are declared in the files of the policies. The names of
/// the options do not count as uses of these files.
const DEVICE_FILE: &str = "crates/core/src/config/";

/// Pairs of files in a folder that use each other, and why they are one idea.
const CIRCLES: &[(&str, &str)] = &[
    // The buffer, and the flushes that wait for it.
    ("crates/core/src/cache/", "flush.rs mod.rs"),
    // The log of records, and the account of their addresses.
    ("crates/core/src/durability/", "account.rs log.rs"),
    // The translation layer holds a scheme, which works on the layer and sees the device through a context.
    ("crates/core/src/ftl/", "mapping/mod.rs mod.rs"),
    // A scheme holds the jobs of its programs, whose steps are methods of the scheme.
    ("crates/core/src/ftl/mapping/block/", "mod.rs programs.rs"),
    // A trace format, and the options that its parser gets, among them the format.
    ("crates/workload/src/trace/", "format.rs options.rs"),
];

#[test]
fn files_do_not_use_each_other_in_circles() {
    let files = rust_files();
    let mut found = Vec::new();
    let mut unused = CIRCLES.to_vec();
    assert!(CIRCLES.iter().all(|(_, files)| files.split(' ').count() == 2), "CIRCLES lists pairs");
    for name in folders("crates") {
        let folder = format!("crates/{name}/src/");
        let inner =
            files.iter().filter_map(|(path, text)| Some((path.as_str(), path.strip_prefix(&folder)?, text.as_str())));
        let is_free = |by: &str, name: &str| by.starts_with(DEVICE_FILE) && name.ends_with("Config");
        for (files, uses) in Modules::new(inner).circles(is_free) {
            let is_listed = |(folder, listed): &(&str, &str)| {
                files.iter().copied().eq(listed.split(' ').map(|file| format!("{folder}{file}")))
            };
            let before = unused.len();
            unused.retain(|listed| !is_listed(listed));
            if unused.len() == before {
                found.push(format!("in a circle, which is not in CIRCLES: {}", Vec::from_iter(files).join(", ")));
                found.extend(uses);
            }
        }
    }
    found
        .extend(unused.iter().map(|(folder, files)| format!("{folder}: no circle of {files}; remove it from CIRCLES")));
    report(&found);
}

/// Checks that each file of tests is a module of its crate's program, or a program of its own: the manifests turn off
/// that Cargo finds them.
#[test]
fn files_with_tests_belong_to_a_program() {
    let mut found = Vec::new();
    for (path, _) in rust_files() {
        let Some((package, file)) = path.strip_suffix(".rs").and_then(|path| path.split_once("/tests/")) else {
            continue;
        };
        let read = |path: &str| std::fs::read_to_string(root().join(package).join(path));
        let (Ok(program), Ok(manifest)) = (read("tests/main.rs"), read("Cargo.toml")) else { continue };
        let name = file.strip_suffix("/main").unwrap_or(file);
        let is_topic = !name.contains('/') && name != "main";
        if is_topic && !program.contains(&format!("mod {name};")) && !manifest.contains(&format!("name = \"{name}\"")) {
            found.push(format!("{path}:1: tests that never run; add `mod {name};` to {package}/tests/main.rs"));
        }
    }
    report(&found);
}

/// Names of mapping schemes, as a regular expression.
const SCHEMES: &str = "dftl|DFTL|Dftl|[Bb]lock mapping|BAST|scheme = \"|\
    (MappingConfig|MappingScheme)::(Page|Block|Bast|Fast|Last)";

/// Checks that only the folder of a mapping scheme names it, so that nothing else depends on the scheme of a device.
#[test]
fn schemes_are_named_in_their_folders_only() {
    let mut files = rust_files();
    // Importers write device files, which name schemes.
    let own = ["crates/core/src/ftl/mapping/", "crates/import/src/"];
    files.retain(|(path, _)| path.contains("/src/") && !own.iter().any(|folder| path.starts_with(folder)));
    report(&matches(&files, SCHEMES, "the name of a scheme belongs in ftl/mapping/"));
}

#[test]
fn lines_are_clean() {
    let mut files = files();
    let mut found = Vec::new();
    // Classes of one character keep the words out of this file.
    found.extend(matches(&files, r"\b(TO[D]O|FIX[M]E|XX[X])\b", "a leftover"));
    let hosts = r"crates[.]io|pypi[.]org|python[h]osted|npmjs[.]|index[-]url";
    found.extend(matches(&files, hosts, "the user configures the package registry"));
    found.extend(matches(&files, r"[ \t]$", "white space at the end"));
    for (path, text) in files.iter().filter(|(_, text)| !text.is_empty() && !text.ends_with('\n')) {
        found.push(format!("{path}:{}: no newline at the end", text.lines().count()));
    }
    files.retain(|(path, _)| kind_of(path) != "Makefile");
    found.extend(matches(&files, r"\t", "a tab"));
    files.retain(|(path, _)| !["md", "cff"].contains(&kind_of(path)));
    let quoted = Regex::new(r#"(?s)"([^"\\]|\\.)*""#).expect("a regular expression");
    for (path, text) in &mut files {
        if kind_of(path) == "rs" {
            *text = rust::without_literals(text);
        } else if path.starts_with("validation/") {
            let breaks = |quoted: &regex::Captures| "\n".repeat(quoted[0].matches('\n').count());
            *text = quoted.replace_all(text, breaks).into_owned();
        }
    }
    found.extend(matches(&files, &format!("^.{{{LONGEST_LINE}}}."), &format!("more than {LONGEST_LINE} characters")));
    report(&found);
}

/// Returns a message for each line that a regular expression matches.
fn matches(files: &[(String, String)], pattern: &str, fault: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect(pattern);
    let lines =
        files.iter().flat_map(|(path, text)| text.lines().zip(1..).map(move |(line, number)| (path, line, number)));
    let found = lines.filter_map(|(path, line, number)| Some((path, pattern.find(line)?.as_str(), number)));
    found.map(|(path, found, number)| format!("{path}:{number}: {fault}: `{found}`")).collect()
}

#[test]
fn prose_is_plain_english() {
    report(&prose::violations(&files()));
}

#[test]
fn every_library_has_its_reason() {
    let record = read("docs/decisions/0001-libraries.md");
    let manifest: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml");
    let libraries: Vec<&String> = manifest["workspace"]["dependencies"].as_table().unwrap().keys().collect();
    let mut found = Vec::new();
    for name in libraries.iter().filter(|name| !name.starts_with("floatgate")) {
        if !record.contains(&format!("| `{name}` |")) {
            found.push(format!("Cargo.toml:1: `{name}` is not in docs/decisions/0001-libraries.md"));
        }
    }
    for (number, line) in record.lines().enumerate().filter(|(_, line)| line.starts_with("| `")) {
        let name = line.split('`').nth(1).unwrap_or_default();
        if !libraries.iter().any(|library| *library == name) {
            found.push(format!("docs/decisions/0001-libraries.md:{}: `{name}` is no longer used", number + 1));
        }
    }
    report(&found);
}

// Helpers of the tests above.

/// This file, for messages.
const TIDY: &str = "crates/core/tests/tidy.rs";

fn report(found: &[String]) {
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// Returns the names in a folder, in order.
fn entries(path: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(path)).expect(path).map(|entry| entry.expect(path).file_name());
    let names: BTreeSet<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.into_iter().collect()
}

fn folders(path: &str) -> Vec<String> {
    entries(path).into_iter().filter(|name| root().join(path).join(name).is_dir()).collect()
}

/// Returns path and text of all text files, sorted by path.
fn files() -> Vec<(String, String)> {
    let root = root();
    let mut open: Vec<PathBuf> = LOOKED_AT.split_whitespace().map(|path| root.join(path)).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
            open.extend(entries.map(|entry| entry.unwrap().path()));
        } else if let (true, Ok(text)) = (is_text(&name), fs::read_to_string(&path)) {
            files.push((name, text));
        }
    }
    files.sort();
    assert!(files.len() > 20, "the source tree was not found at {}", root.display());
    files
}

fn rust_files() -> Vec<(String, String)> {
    files().into_iter().filter(|(path, _)| kind_of(path) == "rs").collect()
}

fn is_text(path: &str) -> bool {
    ["rs", "md", "toml", "py", "pyi", "sh", "yml", "cff", "run", "Makefile", "Containerfile"].contains(&kind_of(path))
}

/// Returns the extension of a file name, or the name if it has none.
fn kind_of(path: &str) -> &str {
    path.rsplit(['/', '.']).next().unwrap_or(path)
}

/// Returns the number of `super` parts that lead from a file to the root of the crate, by its path below `src`.
fn depth(inner: &str) -> usize {
    inner.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").count()
}

/// Returns `true` if a target of [`LAYERS`] covers a path.
fn covers(pattern: &str, path: &str) -> bool {
    let mut parts = path.split("::");
    pattern.split("::").all(|wanted| {
        let part = parts.next().unwrap_or_default();
        wanted.strip_prefix('*').map_or(part == wanted, |end| part.ends_with(end))
    })
}

#[test]
fn the_helpers_parse_rust() {
    let code = "\"crate::x\"; // crate::y\nuse crate::{a::{B, c::D as F}, e}; 'x' '\\'' r#\"\n\"# crate::f::g::<u8>()";
    let found = rust::paths(&rust::tokens(rust::parse(code)));
    let found: Vec<_> = found.iter().map(|path| (path.line, path.text.as_str(), path.alias.as_deref())).collect();
    let expected = [(2, "crate::a::B", None), (2, "crate::a::c::D", Some("F")), (2, "crate::e", None)];
    assert_eq!((&found[..3], found[3]), (&expected[..], (3, "crate::f::g", None)));
    assert!(covers("a::b", "a::b::c") && !covers("a::b", "a::bc") && !covers("a::b", "a"));
    assert!(covers("a::*Config", "a::XConfig::new") && !covers("a::*Config", "a::X"));

    let code = "fn a() {\n '{';\n}\n#[cfg(test)]\nmod t {\n fn b() {\n }\n}\nfn c();\nfn d(f: [u8; 4]) {\n{\n}\n}\n";
    let found = rust::functions(rust::without(rust::parse(code), &[TESTS]));
    assert!(found.into_iter().map(|found| (found.name, found.lines)).eq([("a".into(), 1..4), ("d".into(), 10..14)]));
    let code = "fn a(b: impl B) { c(|| d()) }\nimpl X {\n fn e() {}\n}\n/// F.\n#[f]\nimpl Y for X {\n}";
    let (blocks, others) = rust::impls(rust::parse(code));
    assert!(blocks.iter().map(|(of, _)| of.as_str()).eq(["X", "Y for X"]));
    assert_eq!([blocks[0].1.clone(), others].map(|code| rust::functions(code)[0].lines.start), [3, 1]);

    let body =
        "{ e(b, b.f(), x.g()); return self\n .h(); dispatch.i(); !Some(j::k()); dispatch::l(device.m()); n!(o) }";
    let body = rust::tokens(rust::parse(body));
    let called = |part| rust::calls(&body).filter_map(move |(before, name)| name_of_callee(part, "X", before, name));
    assert!(called("device").eq(["h", "dispatch::l", "m"]));
    assert!(called("dispatch").eq(["dispatch::e", "Binder::f", "X::h", "Dispatch::i", "dispatch::Some"]));
    let edges = [("a", "b"), ("b", "a"), ("c", "d"), ("e", "e")].map(|(from, to)| (from, BTreeSet::from([to])));
    assert_eq!(rust::circles(&BTreeMap::from(edges)), [["a", "b"].into(), ["e"].into()].into());

    let code = "a(\"b\\\"\nc\", d) // \"e\"\n/* f */r\"\" g /// h";
    assert_eq!(rust::without_literals(code), "a(\n, d) // \"e\"\n/* f */ g /// h");
    assert_eq!(["device.rs", "nand/mod.rs", "nand/array.rs", "a/b/mod.rs"].map(depth), [1, 1, 2, 2]);
}
