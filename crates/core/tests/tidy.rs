//! Style of the project, as a test: it reads the source tree, and reports each violation with file and line.
//!
//! Rules that rustfmt and clippy check are not here. CONTRIBUTING.md has the rules and their reasons.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/prose.rs"]
mod prose;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use circles::Modules;

/// Paths that a module may use, and why.
type Uses = &'static [(&'static str, &'static str)];

/// Top-level modules of a crate, and the paths that each may use.
type Layers = &'static [(&'static str, Uses)];

/// Crates whose modules have layers. A module that is missing here is an error.
///
/// A target is a path below `crate` and covers everything below it. A `*` at the start of a part matches any start of a
/// name.
const LAYERS: &[(&str, Layers)] = &[("sim", SIM), ("workload", WORKLOAD), ("core", CORE)];

const SIM: Layers = &[
    ("id", &[]),
    ("list", &[]),
    ("memory", &[]),
    ("queue", &[("time", "events have times")]),
    ("request", &[("time", "requests have times")]),
    ("rng", &[]),
    ("slab", &[("id", "entries have ids"), ("memory", "entries are prefetched")]),
    ("source", &[("request", "a source returns requests"), ("time", "a source has a start and an end")]),
    ("table", &[("id", "entries have ids"), ("memory", "entries are prefetched")]),
    ("text", &[]),
    ("time", &[]),
];

const WORKLOAD: Layers = &[
    ("file", &[]),
    ("quantity", &[("sim", "sizes are counted in sectors")]),
    ("placed", &[("sim", "it is a source"), ("quantity", "errors name sizes")]),
    (
        "trace",
        &[
            ("sim", "traces are sources, and their lines and times are read"),
            ("quantity", "options and errors name sizes and times"),
            ("file", "a trace is read until a stop is requested"),
            ("placed", "the options of a trace say where it is put"),
        ],
    ),
    (
        "synthetic",
        &[
            ("sim", "jobs are sources, and draw random numbers"),
            ("quantity", "descriptions name sizes"),
            ("file", "a trace in a job is read until a stop is requested"),
            ("trace", "a job may replay a trace, and a model is fitted to the profile of a trace"),
        ],
    ),
];

/// Requests pass from `run` down to the flash, events return, and only `device` knows all layers. `sim` is the crate of
/// that name.
const CORE: Layers = &[
    ("state", &[("sim", "streams of random numbers are a part of it")]),
    (
        "external",
        &[
            ("sim", "policies of other programs name blocks, and are told the time"),
            ("work", "schedulers of other programs see what waits"),
            ("ftl::space::RegionView", "policies of other programs see what built-in ones see"),
            ("ftl::temperature::written", "as above"),
            ("ftl::mapping", "a scheme of another program is one of the schemes"),
            ("config::DeviceConfig", "a scheme is made for a device"),
        ],
    ),
    (
        "config",
        &[
            ("sim", "the file is read up to a limit, errors quote it, and some of its values are times"),
            ("scheduler::*Config", "the file names policies: families give the types of their options, nothing else"),
            ("ftl::allocation::*Config", "as above"),
            ("ftl::mapping::*Config", "as above"),
            ("ftl::gc::victim::*Config", "as above"),
            ("ftl::gc::trigger::*Config", "as above"),
            ("ftl::gc::wear::*Config", "as above"),
            ("ftl::temperature::*Config", "as above"),
            ("ftl::temperature::written::MAX_CLASSES", "the file says how many there are"),
            ("cache::eviction::*Config", "as above"),
            ("state::Difference", "two devices differ in what shapes a saved state"),
            ("external", "the file names policies of other programs, and the device knows who makes them"),
        ],
    ),
    ("policy", &[("config", "a policy is made for a device")]),
    ("work", &[("sim", "transactions have ids, and wait in queues")]),
    (
        "metrics",
        &[
            ("sim", "what is measured is time, and results are by operation and stream"),
            ("config", "results hold the device file"),
            ("nand::array::ChannelTime", "utilization is made of the array's times"),
            ("nand::array::DieTime", "as above"),
            ("nand::array::Kind", "commands are counted by kind"),
            ("nand::parallel", "as above"),
            ("nand::gauge", "results have lengths of queues"),
            ("nand::timing::Timing", "what bounds a run follows from how long everything takes"),
        ],
    ),
    (
        "scheduler",
        &[
            ("sim", "operations wait in order of time"),
            ("config", "policies are made for a device"),
            ("external", "policies may be another program's"),
            ("policy", "schedulers are policies"),
            ("policy_family", "schedulers are policies"),
            ("work", "they rank classes of operations, and transactions wait in their queues"),
        ],
    ),
    (
        "nand",
        &[
            ("sim", "operations take time"),
            ("work", "operations are of kinds and classes"),
            ("config", "geometry and times of the flash"),
            ("scheduler", "a channel and a die ask which operation goes first"),
            ("state", "what it remembers is saved"),
        ],
    ),
    (
        "ftl",
        &[
            ("sim", "ids and random numbers"),
            ("config", "geometry, and options of the policies"),
            ("external", "policies may be another program's"),
            ("policy", "allocation and victims are policies"),
            ("policy_family", "allocation and victims are policies"),
            ("metrics::counters", "what was programmed, by cause"),
            ("nand::media", "what the flash holds, which a recovery has to go by"),
            ("work", "steps of garbage collection have a scheduling class"),
            ("state", "map, blocks and policies are saved"),
        ],
    ),
    (
        "dispatch",
        &[
            ("sim", "ids and times"),
            ("config", "which operations work together, overlap, and wait for others"),
            ("work", "transactions wait in its queues"),
            ("scheduler", "which operation goes first"),
            ("nand", "which execution units are idle, and what they work on"),
            ("ftl::allocation", "pools, and the order of planes"),
            ("state", "the turns of planes are saved"),
        ],
    ),
    ("host", &[("sim", "what a host sends, and when"), ("config", "the queue, the link, and the cores")]),
    (
        "cache",
        &[
            ("sim", "ids and times, and it holds parts of requests"),
            ("config", "sizes, and options of the policies"),
            ("external", "policies may be another program's"),
            ("policy", "eviction is a policy"),
            ("policy_family", "eviction is a policy"),
            ("metrics", "hits are counted"),
            ("work", "reads bring what it keeps, and writes carry what it writes out"),
            ("ftl", "what a read has brought may have moved"),
            ("host::requests::Part", "the units that a request touches"),
        ],
    ),
    (
        "durability",
        &[
            ("sim", "ids, requests and random numbers"),
            ("config", "sizes of the journal and of the checkpoint"),
            ("metrics::counters", "programs have causes"),
            ("work", "writes that are in flight"),
            ("nand::media", "what the flash holds"),
            ("ftl", "where units are, and which blocks wait"),
            ("cache", "what the buffer holds"),
            ("host::requests::Part", "the units that a request touches"),
            ("state", "the journal and the checkpoint are saved"),
        ],
    ),
    (
        "observe",
        &[
            ("sim", "ids, times and requests"),
            ("config", "which parts of a device take time"),
            ("metrics::attribution", "what the time of requests goes into"),
            ("work", "transactions in progress"),
            ("nand", "who holds what, and what the flash holds"),
            ("ftl", "where units are"),
            ("cache", "what the buffer holds"),
            ("host", "requests in progress"),
            ("durability", "what changes in flash"),
        ],
    ),
    (
        "device",
        &[
            ("sim", "the router: the only module that knows all layers"),
            ("config", "as above"),
            ("metrics", "as above"),
            ("work", "as above"),
            ("scheduler", "as above"),
            ("nand", "as above"),
            ("ftl", "as above"),
            ("dispatch", "as above"),
            ("cache", "as above"),
            ("host", "as above"),
            ("durability", "as above"),
            ("observe", "as above"),
            ("state", "as above"),
            ("external", "as above"),
        ],
    ),
    (
        "lifetime",
        &[
            ("sim", "the requests that wear a device out"),
            ("config", "the endurance of a device"),
            ("device", "what is worn out"),
            ("ftl::allocation", "how much the good blocks can hold"),
            ("metrics::counters", "what the host has written until then"),
            ("metrics::summary", "the erases of blocks are a part of the result"),
            ("precondition", "requests are served without time"),
        ],
    ),
    (
        "precondition",
        &[
            ("sim", "what a device has gone through before the run"),
            ("config", "one plane of a device, for its steady state at the hard threshold"),
            ("device", "as above"),
            ("metrics::counters", "how far it has come"),
            ("metrics::summary", "the state that it reached is a part of the result"),
            ("ftl", "without time, the translation layer works by itself"),
            ("ftl::temperature::written", "what it writes is classified"),
            ("nand::media", "what the flash holds"),
        ],
    ),
    (
        "ssd",
        &[
            ("sim", "the interface between a device and what drives it"),
            ("metrics", "as above"),
            ("device", "as above"),
            ("external::Fault", "as above"),
            ("nand::probe::Slice", "what a probe saw is handed over"),
            ("nand::probe::CoreWork", "as above"),
        ],
    ),
    (
        "run",
        &[
            ("nand::gauge", "what is measured has lengths of queues"),
            ("nand::parallel", "what is measured has counts of commands"),
            ("sim", "the loop that feeds a device from a source, to its end"),
            ("metrics", "as above"),
            ("config::DeviceConfig", "a result has the configuration"),
            ("device", "as above"),
            ("ssd", "as above"),
            ("external::Fault", "a policy of another program ends a run when it fails"),
            ("nand::probe::Slice", "observers of a run are handed what was seen"),
            ("nand::probe::CoreWork", "as above"),
            ("nand::array::ChannelTime", "what was spent in the measured part goes into the result"),
            ("nand::array::DieTime", "as above"),
        ],
    ),
    (
        "contract",
        &[
            ("sim", "what policies decide on has ids and times"),
            ("config", "policies are made for a device"),
            ("device", "a device with a policy serves requests"),
            ("external::Externals", "policies may be another program's"),
            ("ftl", "victims are blocks"),
            ("scheduler::RANKS", "schedulers rank classes"),
            ("state", "policies are saved and loaded"),
            ("work::Class", "schedulers rank classes"),
        ],
    ),
];

/// Functions that may be longer than [`LONGEST_FUNCTION`], by file and name, and why: tables, not control flow.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Maximum number of lines of a function, including signature and closing brace, so that it fits on a screen.
const LONGEST_FUNCTION: usize = 70;

/// Maximum number of characters of a line. In Rust, string contents do not count, so that messages can be searched for.
/// Neither do the tables of `validation`.
const LONGEST_LINE: usize = 120;

/// Files and folders that are checked, relative to the root of the repository. A folder includes its contents.
const LOOKED_AT: &[&str] = &[
    "crates",
    "docs",
    "examples",
    "python/floatgate",
    "python/tests",
    "scripts",
    "validation",
    "fuzz/Cargo.toml",
    "fuzz/fuzz_targets",
    ".ci",
    ".github",
    "README.md",
    "ARTIFACT.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "Cargo.toml",
    "Containerfile",
    "Makefile",
    "clippy.toml",
    "pyproject.toml",
    "rustfmt.toml",
];

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
        for (module, uses) in *layers {
            for (pattern, _) in uses.iter().filter(|(pattern, _)| !used.contains(&(*module, *pattern))) {
                found.push(format!(
                    "crates/core/tests/tidy.rs:1: `{module}` does not use `crate::{pattern}`; remove it from LAYERS"
                ));
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
    let Some((module, allowed)) = layers.iter().find(|(name, _)| *name == module) else {
        found.push(format!("{path}:1: the module `{module}` is not in LAYERS (crates/core/tests/tidy.rs)"));
        return;
    };
    let code = without_test_modules(&code_only(text));
    for (line, target) in crate_paths(&code) {
        let inside = target.split("::").next() == Some(module);
        let covering = || allowed.iter().map(|(pattern, _)| *pattern).filter(|pattern| covers(pattern, &target));
        used.extend(covering().map(|pattern| (*module, pattern)));
        if !inside && covering().next().is_none() {
            found.push(format!("{path}:{line}: `{module}` may not use `crate::{target}` (LAYERS, in tidy.rs)"));
        }
    }
    let to_the_root = "super::".repeat(depth(inner));
    for (number, line) in code.lines().enumerate() {
        if line.contains(&to_the_root) {
            found.push(format!("{path}:{}: path to the root of the crate by `super`; write `crate::`", number + 1));
        }
        if line.contains("floatgate_") {
            found.push(format!("{path}:{}: name of a crate in a path; write `crate::sim`", number + 1));
        }
    }
}

/// Checks that CONTRIBUTING.md lists the modules that exist, and no others.
#[test]
fn contributing_lists_all_existing_modules() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let named: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut found = Vec::new();
    for path in named.iter().filter(|path| path.contains('/')) {
        if !root().join(path).exists() {
            found.push(format!("CONTRIBUTING.md:1: `{path}` does not exist"));
        }
    }
    for name in folders("crates") {
        let layers = LAYERS.iter().find(|(layered, _)| *layered == name).map_or(&[][..], |(_, layers)| layers);
        let module_is_named = |module: &str| {
            let paths = [format!("crates/{name}/src/{module}/"), format!("crates/{name}/src/{module}.rs")];
            paths.iter().any(|path| named.contains(&path.as_str()))
        };
        let is_named = named.contains(&format!("crates/{name}/").as_str());
        if !is_named && layers.is_empty() {
            found.push(format!("CONTRIBUTING.md:1: `crates/{name}` is not described"));
        }
        for (module, _) in layers.iter().filter(|(module, _)| !is_named && !module_is_named(module)) {
            found.push(format!("CONTRIBUTING.md:1: `crates/{name}/src/{module}` is not described"));
        }
    }
    report(&found);
}

/// Crates of the workspace that each crate may depend on, and further ones that its tests may use.
const CRATES: &[(&str, &[&str], &[&str])] = &[
    ("sim", &[], &[]),
    ("workload", &["floatgate-sim"], &[]),
    ("core", &["floatgate-sim"], &["floatgate-validation", "floatgate-workload"]),
    ("validation", &["floatgate-core", "floatgate-workload"], &[]),
    ("array", &["floatgate-core"], &["floatgate-workload"]),
    ("report", &["floatgate-core", "floatgate-workload"], &[]),
    ("serve", &["floatgate-array", "floatgate-core", "floatgate-workload"], &[]),
    ("guest", &[], &[]),
    ("run", &["floatgate-array", "floatgate-core", "floatgate-report", "floatgate-workload"], &[]),
    (
        "cli",
        &[
            "floatgate-array",
            "floatgate-core",
            "floatgate-guest",
            "floatgate-report",
            "floatgate-run",
            "floatgate-serve",
            "floatgate-workload",
        ],
        &[],
    ),
    ("py", &["floatgate-array", "floatgate-core", "floatgate-report", "floatgate-run", "floatgate-workload"], &[]),
    ("wheel", &["floatgate", "floatgate-core", "floatgate-py"], &[]),
];

/// Checks the dependencies of each crate. A crate with more dependencies is rebuilt more often, so each one is listed.
#[test]
fn crates_have_the_listed_dependencies() {
    let mut found = Vec::new();
    for name in folders("crates") {
        let Some((_, dependencies, of_tests)) = CRATES.iter().find(|(listed, ..)| *listed == name) else {
            found.push(format!("crates/core/tests/tidy.rs:1: `crates/{name}` is not in CRATES"));
            continue;
        };
        let path = format!("crates/{name}/Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(root().join(&path)).unwrap().parse().unwrap();
        for (section, listed) in [("dependencies", dependencies), ("dev-dependencies", of_tests)] {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            let ours = table.into_iter().flat_map(toml::Table::keys).filter(|key| key.starts_with("floatgate"));
            let ours: BTreeSet<&str> = ours.map(String::as_str).collect();
            if ours != listed.iter().copied().collect() {
                found.push(format!("{path}:1: {section} are {ours:?}, expected {listed:?} (CRATES in tidy.rs)"));
            }
        }
    }
    report(&found);
}

/// Checks that decision records are numbered without gaps, and that the documentation site lists each of them.
#[test]
fn decision_records_are_complete() {
    let site = fs::read_to_string(root().join("mkdocs.yml")).expect("mkdocs.yml");
    let entries = fs::read_dir(root().join("docs/decisions")).expect("docs/decisions");
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut found = Vec::new();
    for (name, number) in names.iter().zip(1..) {
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
    let mut unused: Vec<_> = LONG_FUNCTIONS.iter().map(|(path, name, _)| (*path, *name)).collect();
    for (path, text) in rust_files() {
        let code = without_macro_definitions(&without_test_modules(&code_only(&text)));
        for Function { name, line, lines, .. } in functions(&code) {
            if lines > LONGEST_FUNCTION {
                let before = unused.len();
                unused.retain(|entry| *entry != (path.as_str(), name.as_str()));
                if unused.len() == before {
                    found.push(format!("{path}:{line}: `{name}` has {lines} lines, more than {LONGEST_FUNCTION}"));
                }
            }
        }
    }
    found.extend(
        unused.iter().map(|(path, name)| format!("{path}:1: `{name}` is not long; remove it from LONG_FUNCTIONS")),
    );
    report(&found);
}

/// A call that could return to its caller is a task instead (`work/tasks.rs`).
#[test]
fn methods_of_the_device_do_not_call_each_other_in_a_cycle() {
    let mut calls: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut add = |name: String, path: &str, line: usize, called: BTreeSet<String>| {
        calls.entry(name).or_insert((format!("{path}:{line}"), BTreeSet::new())).1.extend(called);
    };
    for (path, text) in &rust_files() {
        let code = without_test_modules(&code_only(text));
        if path.starts_with("crates/core/src/device/") {
            for Function { name, line, body, .. } in methods(&code, "Device") {
                add(name, path, line, called_by_device(&body));
            }
            // A mapping scheme may call all of its context.
            for Function { line, body, .. } in methods(&code, "Context for Device") {
                add("with_scheme".to_owned(), path, line, called_by_device(&body));
            }
            for Function { name, line, body, .. } in methods(&code, "Binder for Device") {
                add(format!("Binder::{name}"), path, line, called_by_device(&body));
            }
        } else if path.starts_with("crates/core/src/dispatch/") {
            for Function { name, line, body, .. } in functions(&without_blocks(&code, IMPL)) {
                add(format!("dispatch::{name}"), path, line, called_by_dispatch(&body, "dispatch"));
            }
            for of in types_with_methods(&code) {
                for Function { name, line, body, .. } in methods(&code, of) {
                    add(format!("{of}::{name}"), path, line, called_by_dispatch(&body, of));
                }
            }
        }
    }
    assert!(calls.len() > 300, "too few methods of the device found");
    assert!(calls["dispatch::start_one"].1.contains("Binder::bind"), "the functions of dispatch are not found");
    let known = |called: &BTreeSet<String>| called.iter().filter(|name| calls.contains_key(*name)).count();
    let edges: usize = calls.values().map(|(_, called)| known(called)).sum();
    assert!(edges > 950, "too few calls found: {edges}");
    let cycles = in_cycles(&calls.iter().map(|(name, (_, calls))| (name.as_str(), calls)).collect());
    report(&cycles.iter().map(|name| format!("{}: `{name}` is in a cycle", calls[*name].0)).collect::<Vec<_>>());
}

/// A device file names policies, and policies are built for a device. LAYERS allows this folder only the types of their
/// options.
const DEVICE_FILE: &str = "crates/core/src/config/";

/// Files that use each other in a circle, and why they are one idea. The files of an entry are those of one circle.
const CIRCLES: &[(&[&str], &str)] = &[
    (
        &[
            "crates/cli/src/serve.rs",
            "crates/cli/src/serve/image.rs",
            "crates/cli/src/serve/monitor.rs",
            "crates/cli/src/serve/recording.rs",
        ],
        "a command, and groups of its arguments that are checked and reported with all others",
    ),
    (
        &["crates/core/src/cache/flush.rs", "crates/core/src/cache/mod.rs"],
        "the buffer, and the flushes that wait for it",
    ),
    (
        &["crates/core/src/device/mod.rs", "crates/core/src/device/throttle.rs", "crates/core/src/device/timers.rs"],
        "the router, the table of its event sources, and the throttle, whose delays are among them",
    ),
    (
        &["crates/core/src/durability/account.rs", "crates/core/src/durability/log.rs"],
        "the log of records, and the account of where they are",
    ),
    (
        &["crates/core/src/ftl/mapping/context.rs", "crates/core/src/ftl/mapping/mod.rs", "crates/core/src/ftl/mod.rs"],
        "the translation layer holds a scheme, which works on the layer and sees the device through a context",
    ),
    (
        &["crates/core/src/ftl/mapping/block/mod.rs", "crates/core/src/ftl/mapping/block/programs.rs"],
        "a scheme holds the jobs of its programs, whose steps are methods of the scheme",
    ),
    (
        &[
            "crates/core/src/ftl/mapping/dftl/directory.rs",
            "crates/core/src/ftl/mapping/dftl/entries.rs",
            "crates/core/src/ftl/mapping/dftl/mod.rs",
            "crates/core/src/ftl/mapping/dftl/pages.rs",
            "crates/core/src/ftl/mapping/dftl/reclaim.rs",
        ],
        "a scheme holds entries, pages and their reclamation, whose steps are methods of the scheme",
    ),
    (
        &[
            "crates/core/src/nand/array.rs",
            "crates/core/src/nand/array/busy.rs",
            "crates/core/src/nand/array/overlap.rs",
            "crates/core/src/nand/array/watchers.rs",
        ],
        "the array holds busy times, overlaps and watchers, which its methods in their files change",
    ),
    (
        &[
            "crates/core/src/observe/contents.rs",
            "crates/core/src/observe/critical_path.rs",
            "crates/core/src/observe/mod.rs",
        ],
        "the observers of a device, and the view of the device that each of them gets",
    ),
    (
        &["crates/serve/src/monitor/control.rs", "crates/serve/src/monitor/mod.rs", "crates/serve/src/monitor/web.rs"],
        "tasks of the monitor, which share its state",
    ),
    (
        &["crates/workload/src/trace/format.rs", "crates/workload/src/trace/options.rs"],
        "a trace format, and the options of reading that its parser gets, one of which is the format",
    ),
];

#[test]
fn files_do_not_use_each_other_in_circles() {
    let files = rust_files();
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for name in folders("crates") {
        let folder = format!("crates/{name}/src/");
        let inner = files.iter().filter_map(|(path, text)| Some((path, path.strip_prefix(&folder)?, text)));
        let of_crate = inner.map(|(path, inner, text)| (path.clone(), inner.to_owned(), code_only(text)));
        let is_free = |by: &str, used: &str| by.starts_with(DEVICE_FILE) && !used.starts_with(DEVICE_FILE);
        for circle in Modules::new(of_crate).circles(is_free) {
            match CIRCLES.iter().position(|(listed, _)| circle.files.iter().eq(*listed)) {
                Some(position) => _ = used.insert(position),
                None => {
                    let files: Vec<&str> = circle.files.iter().map(String::as_str).collect();
                    found.push(format!("{}:1: in a circle with {}", files[0], files[1..].join(", ")));
                    found.extend(circle.uses);
                }
            }
        }
    }
    let unused = CIRCLES.iter().enumerate().filter(|(position, _)| !used.contains(position));
    found.extend(unused.map(|(_, (files, _))| format!("{}:1: no circle; remove it from CIRCLES", files[0])));
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

/// Checks that only the folder of a mapping scheme names it, so that nothing else depends on the scheme of a device.
#[test]
fn schemes_are_named_in_their_folders_only() {
    let mut names =
        ["dftl", "DFTL", "Dftl", "block mapping", "Block mapping", "BAST", "scheme = \""].map(str::to_owned).to_vec();
    let schemes = ["Page", "Block", "Bast", "Fast", "Last"];
    let variants = ["MappingConfig", "MappingScheme"].into_iter().flat_map(|of| schemes.map(|name| (of, name)));
    names.extend(variants.map(|(of, name)| format!("{of}::{name}")));
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        let is_source = path.contains("/src/") && !path.starts_with("crates/core/src/ftl/mapping/");
        for (number, line) in text.lines().enumerate().filter(|_| is_source) {
            for name in names.iter().filter(|name| line.contains(name.as_str())) {
                found.push(format!("{path}:{}: `{name}` belongs in ftl/mapping/", number + 1));
            }
        }
    }
    report(&found);
}

#[test]
fn lines_are_clean() {
    // The parts are joined here, so that this file contains none of the words.
    let markers =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["dbg", "!("], ["to", "do!("], ["unimple", "mented!("]].map(join);
    let hosts =
        [["crates", ".io"], ["pypi", ".org"], ["python", "hosted"], ["npmjs", "."], ["index", "-url"]].map(join);
    let ignored = join(["#[ig", "nore]"]);
    let mut found = Vec::new();
    for (path, text) in files() {
        let kind = kind_of(&path);
        for (number, line) in text.lines().enumerate() {
            let mut fault = |what: String| found.push(format!("{path}:{}: {what}", number + 1));
            if line.contains('\t') && kind != "Makefile" {
                fault("a tab".to_owned());
            }
            if line.ends_with([' ', '\t']) {
                fault("white space at the end".to_owned());
            }
            for marker in markers.iter().filter(|marker| has_word(line, marker)) {
                fault(format!("leftover `{marker}`"));
            }
            for host in hosts.iter().filter(|host| line.contains(*host)) {
                fault(format!("`{host}`: the user configures the package registry"));
            }
            if kind == "rs" && line.contains(&ignored) {
                fault("ignored test without a reason: give one in the attribute".to_owned());
            }
        }
        let tables = path.starts_with("validation/");
        let counted = if kind == "rs" || tables { without_literals(&text) } else { text.clone() };
        for (number, line) in counted.lines().enumerate().filter(|(_, line)| line.chars().count() > LONGEST_LINE) {
            if kind != "md" && kind != "cff" {
                let length = line.chars().count();
                found.push(format!("{path}:{}: {length} characters, more than {LONGEST_LINE}", number + 1));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            found.push(format!("{path}:{}: no newline at the end", text.lines().count()));
        }
    }
    report(&found);
}

#[test]
fn prose_is_plain_english() {
    report(&prose::violations(&files()));
}

#[test]
fn every_library_has_its_reason() {
    let record = fs::read_to_string(root().join("docs/decisions/0001-libraries.md")).expect("decision 0001");
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
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

fn report(found: &[String]) {
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}

fn join(parts: [&str; 2]) -> String {
    parts.concat()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns the names of the folders in a folder, in order.
fn folders(path: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(path)).expect(path).map(|entry| entry.expect(path));
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns path and text of all text files, sorted by path.
fn files() -> Vec<(String, String)> {
    let root = root();
    let mut open: Vec<PathBuf> = LOOKED_AT.iter().map(|path| root.join(path)).collect();
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

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` if `word` is in `line`, and not part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        !line[..at].ends_with(in_name) && (word.ends_with('(') || !after.starts_with(in_name))
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Returns the source with blanks in place of comments and literals, so that lines and columns stay the same.
fn code_only(text: &str) -> String {
    characters(text).map(|(kind, c)| if kind == Kind::Code || c == '\n' { c } else { ' ' }).collect()
}

/// Returns the source without literals. Line numbers stay the same.
fn without_literals(text: &str) -> String {
    characters(text).filter(|(kind, c)| *kind != Kind::Literal || *c == '\n').map(|(_, c)| c).collect()
}

/// Returns the characters of the source and the kind of each.
fn characters(text: &str) -> impl Iterator<Item = (Kind, char)> {
    let text: Vec<char> = text.chars().collect();
    let mut kinds = Vec::with_capacity(text.len());
    while kinds.len() < text.len() {
        let i = kinds.len();
        let (kind, end) = part(&text, i);
        kinds.resize(end.max(i + 1), kind);
    }
    kinds.into_iter().zip(text)
}

/// Returns the kind of the token that starts at `i`, and its end.
fn part(text: &[char], i: usize) -> (Kind, usize) {
    let at = |i: usize| text.get(i).copied().unwrap_or('\0');
    let find = |is: &dyn Fn(usize) -> bool| (i..text.len()).find(|j| is(*j)).unwrap_or(text.len());
    match (at(i), at(i + 1)) {
        ('/', '/') => (Kind::Comment, find(&|j| at(j) == '\n')),
        ('/', '*') => (Kind::Comment, find(&|j| j > i + 3 && at(j - 2) == '*' && at(j - 1) == '/')),
        ('"', _) | ('\'', '\\') => (Kind::Literal, end_of_quoted(text, i)),
        ('\'', _) if at(i + 2) == '\'' => (Kind::Literal, i + 3),
        ('r', '"' | '#') if i == 0 || at(i - 1) == 'b' || !in_name(at(i - 1)) => match end_of_raw(text, i) {
            Some(end) => (Kind::Literal, end),
            None => (Kind::Code, i + 1),
        },
        _ => (Kind::Code, i + 1),
    }
}

fn end_of_quoted(text: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < text.len() && text[i] != text[start] {
        i += if text[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(text.len())
}

/// Returns the end of a raw string that starts at `start`, or `None` for a raw name such as `r#type`.
fn end_of_raw(text: &[char], start: usize) -> Option<usize> {
    let hashes = text[start + 1..].iter().take_while(|c| **c == '#').count();
    let open = start + 1 + hashes;
    let hashes_at = |j: usize| text[j..].iter().take(hashes).filter(|c| **c == '#').count();
    let closes = |j: &usize| text[*j] == '"' && hashes_at(*j + 1) == hashes;
    let end = || (open + 1..text.len()).find(closes).map_or(text.len(), |j| j + 1 + hashes);
    (text.get(open) == Some(&'"')).then(end)
}

fn without_test_modules(code: &str) -> String {
    without_blocks(code, "#[cfg(test)]\nmod ")
}

fn without_macro_definitions(code: &str) -> String {
    without_blocks(code, "macro_rules! ")
}

/// Returns the code without blocks that start with `head`. Line numbers stay the same.
fn without_blocks(code: &str, head: &str) -> String {
    let mut rest = code;
    let mut kept = String::with_capacity(code.len());
    while let Some(start) = rest.find(head) {
        let body = rest[start..].find(['{', ';']).map_or(rest.len(), |offset| start + offset);
        let end = end_of_block(rest, body);
        kept.push_str(&rest[..start]);
        kept.extend(rest[start..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
    kept + rest
}

/// Returns the end of the block that opens at `start`, or `start` plus one character if none does.
fn end_of_block(code: &str, start: usize) -> usize {
    let mut open = 0;
    for (offset, c) in code[start..].char_indices() {
        open += i32::from(c == '{') - i32::from(c == '}');
        if open == 0 {
            return start + offset + c.len_utf8();
        }
    }
    code.len()
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
    body: String,
}

/// Returns the functions that have a name and a body.
fn functions(code: &str) -> Vec<Function> {
    let function = |at: usize| {
        let after = &code[at + 3..];
        let name: String = after.chars().take_while(|c| in_name(*c)).collect();
        // A `;` before the body ends a declaration, but not inside brackets: `[u8; 4]`.
        let mut brackets = 0;
        let body = after.char_indices().find(|(_, c)| {
            brackets += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
            brackets == 0 && matches!(c, '{' | ';')
        })?;
        let end = end_of_block(code, at + 3 + body.0);
        let lines = code[at..end].matches('\n').count() + 1;
        let text = || code[at + 3 + body.0..end].to_owned();
        (body.1 == '{' && !name.is_empty()).then(|| Function { name, line: line_of(code, at), lines, body: text() })
    };
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(in_name));
    starts.filter_map(|(at, _)| function(at)).collect()
}

/// Returns the methods in the `impl` blocks of a type.
fn methods(code: &str, of: &str) -> Vec<Function> {
    let head = format!("impl {of} {{");
    let blocks = code.match_indices(&head).map(|(at, _)| (at, end_of_block(code, at + head.len() - 1)));
    let methods = blocks.flat_map(|(at, end)| {
        let mut found = functions(&code[at..end]);
        found.iter_mut().for_each(|method| method.line += line_of(code, at) - 1);
        found
    });
    methods.collect()
}

/// Start of the methods of a type.
const IMPL: &str = "\nimpl ";

/// Returns the types in whose `impl` blocks a file has methods. Two types may have methods of the same name.
fn types_with_methods(code: &str) -> BTreeSet<&str> {
    code.match_indices(IMPL).filter_map(|(at, head)| code[at + head.len()..].split(" {").next()).collect()
}

/// Returns the names of the methods of `self`, or of the `device` of a closure, that a body calls, and the functions of
/// dispatch that it calls.
fn called_by_device(body: &str) -> BTreeSet<String> {
    let prefixes = [("self.", ""), ("device.", ""), ("dispatch::", "dispatch::")];
    called(&with_joined_chains(body)).filter_map(|(before, name)| name_of_callee(&prefixes, before, name)).collect()
}

/// Returns the names of the functions of dispatch and of the binder that a body in dispatch calls. `of` is the type
/// whose method it is the body of.
fn called_by_dispatch(body: &str, of: &str) -> BTreeSet<String> {
    let own = format!("{of}::");
    let prefixes = [("b.", "Binder::"), ("self.", own.as_str()), ("dispatch.", "Dispatch::")];
    let of_module =
        |before: &str, name: &str| (!before.ends_with(['.', ':', '!'])).then(|| format!("dispatch::{name}"));
    let callee = |(before, name)| name_of_callee(&prefixes, before, name).or_else(|| of_module(before, name));
    called(&with_joined_chains(body)).filter_map(callee).collect()
}

/// Returns code without white space around dots, so that a chain of calls is on one line.
fn with_joined_chains(code: &str) -> String {
    let parts: Vec<&str> = code.split('.').collect();
    let last = parts.len() - 1;
    let trimmed = parts.iter().enumerate().map(|(index, part)| {
        let part = if index > 0 { part.trim_start() } else { part };
        if index < last { part.trim_end() } else { part }
    });
    trimmed.collect::<Vec<_>>().join(".")
}

/// Returns the calls in a body: the text before the name of the function, and the name.
fn called(body: &str) -> impl Iterator<Item = (&str, &str)> {
    let calls = body.match_indices('(').map(|(at, _)| body[..at].split_at(body[..at].trim_end_matches(in_name).len()));
    calls.filter(|(_, name)| !name.is_empty())
}

/// Returns the name of a function with the meaning of its prefix, if it has one of `prefixes`.
fn name_of_callee(prefixes: &[(&str, &str)], before: &str, name: &str) -> Option<String> {
    let is_whole = |prefix: &str| before.strip_suffix(prefix).is_some_and(|rest| !rest.ends_with(in_name));
    prefixes.iter().find(|(prefix, _)| is_whole(prefix)).map(|(_, meaning)| format!("{meaning}{name}"))
}

/// Returns the nodes of a graph that are on a cycle, or between two cycles.
fn in_cycles<'a>(edges: &BTreeMap<&'a str, &'a BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut left: BTreeSet<&str> = edges.keys().copied().collect();
    loop {
        let before = left.len();
        let goes_on = |name: &&str| edges[*name].iter().any(|other| left.contains(other.as_str()));
        left = left.iter().copied().filter(goes_on).collect();
        let reached: BTreeSet<&str> = left.iter().flat_map(|name| edges[name]).map(String::as_str).collect();
        left.retain(|name| reached.contains(name));
        if left.len() == before {
            return left;
        }
    }
}

/// Returns all paths that start with `crate::`, without it, and their lines. Braces are expanded.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (at, found) in code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with(in_name)) {
        let line = line_of(code, at);
        expand(&code[at + found.len()..], "", &mut |path| paths.push((line, path.to_owned())));
    }
    paths
}

/// Parses one tree of a `use` or a plain path, calls `found` with its paths, and returns the remaining code.
fn expand<'a>(code: &'a str, prefix: &str, found: &mut dyn FnMut(&str)) -> &'a str {
    let mut path = prefix.to_owned();
    let mut rest = code.trim_start();
    loop {
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.starts_with('}') && !rest.is_empty() {
                rest = expand(rest, &path, found);
                // The rest of an item is an alias: `as name`.
                rest = rest.find([',', '}']).map_or("", |end| &rest[end..]);
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            return rest.strip_prefix('}').unwrap_or("");
        }
        let end = rest.find(|c| !in_name(c) && c != '*').unwrap_or(rest.len());
        path.push_str(&rest[..end]);
        rest = &rest[end..];
        match rest.strip_prefix("::").map(str::trim_start) {
            Some(after) if after.starts_with(|c| in_name(c) || c == '{' || c == '*') => {
                path.push_str("::");
                rest = after;
            }
            _ => {
                found(&path);
                return rest;
            }
        }
    }
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
    let text = "\"crate::x\"; // crate::y\nuse crate::{a::{B, c::D as F}, e}; 'x' '\\'' r#\"\n\"# crate::f::g::<u8>()";
    let expected = [(2, "a::B"), (2, "a::c::D"), (2, "e"), (3, "f::g")].map(|(line, path)| (line, path.to_owned()));
    assert_eq!(crate_paths(&code_only(text)), expected);
    assert!(covers("a::b", "a::b::c") && !covers("a::b", "a::bc") && !covers("a::b", "a"));
    assert!(covers("a::*Config", "a::XConfig::new") && !covers("a::*Config", "a::X"));

    let text =
        "fn a() {\n '{';\n}\n#[cfg(test)]\nmod tests {\n fn b() {\n }\n}\nfn c();\nfn d(f: [u8; 4]) {\n{\n}\n}\n";
    let code = without_test_modules(&code_only(text));
    let found: Vec<_> = functions(&code).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(found, [("a".to_owned(), 1, 3), ("d".to_owned(), 10, 4)]);

    let code =
        "fn a() {}\nimpl X {\n fn b() {\n self\n .c();\n }\n fn c() { device.d().b() }\n}\nimpl Y {\n fn e() {}\n}\n";
    let found: Vec<_> = methods(code, "X").into_iter().map(|m| (m.name, m.line, called_by_device(&m.body))).collect();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(found, [("b".to_owned(), 3, set(&["c"])), ("c".to_owned(), 7, set(&["d"]))]);
    let body = "{ e(b, b.f(), x.g()); self.h(); dispatch.i(); Some(j::k()) }";
    assert_eq!(called_by_device(body), set(&["h"]));
    let of_dispatch = ["Binder::f", "Dispatch::i", "X::h", "dispatch::Some", "dispatch::e"];
    assert_eq!(called_by_dispatch(body, "X"), set(&of_dispatch));
    assert_eq!(called_by_device("{ dispatch::l(self); }"), set(&["dispatch::l"]));
    // A word before the receiver is not a part of its name.
    let body = "{ if self.f() { return self.g(); } match self\n .h() { _ => myself.i() } for _ in 0..device.j() {} }";
    assert_eq!(called_by_device(body), set(&["f", "g", "h", "j"]));
    let body = "{ if b.f() { return dispatch.g(); } match b\n .h() { _ => return i(b) } }";
    let of_dispatch = ["Binder::f", "Binder::h", "Dispatch::g", "dispatch::i"];
    assert_eq!(called_by_dispatch(body, "dispatch"), set(&of_dispatch));
    assert_eq!(types_with_methods("fn a(b: impl B) {}\nimpl X {\n}\nimpl Y {\n}"), BTreeSet::from(["X", "Y"]));
    let (to_b, to_a, to_d, nothing) = (set(&["b"]), set(&["a", "c"]), set(&["d"]), set(&[]));
    let edges = BTreeMap::from([("a", &to_b), ("b", &to_a), ("c", &to_d), ("d", &nothing)]);
    assert_eq!(in_cycles(&edges), BTreeSet::from(["a", "b"]));

    assert_eq!(without_literals("a(\"b\\\"\nc\", d) // \"e\"\n/* f */r\"\"g"), "a(\n, d) // \"e\"\n/* f */g");
    assert_eq!(["device.rs", "nand/mod.rs", "nand/array.rs", "a/b/mod.rs"].map(depth), [1, 1, 2, 2]);
    assert!(
        has_word("// XY: b", "XY") && !has_word("AXY", "XY") && !has_word("XYZ", "XY") && has_word("xy!(1)", "xy!(")
    );
}
