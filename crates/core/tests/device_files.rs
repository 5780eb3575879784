//! Fuzzing of device files: loading any file ends soon and takes little memory. It returns a device, or an error with
//! its cause and position. Every accepted device works.
//!
//! Every case starts from the corpus: the built-in devices, and `corpus/device/*.toml`. The first line of such a file
//! is `# accepted`, or contains part of the error. `fuzz/fuzz_targets/device_file.rs` uses the same corpus.
#![allow(unsafe_code)] // A global allocator needs unsafe code.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use floatgate_core::device_file::{Builtin, ConfigError, DeviceConfig, from_toml};
use floatgate_core::internals::options;
use floatgate_core::sim::request::{Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated so far. Freed memory is not subtracted.
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards all calls to the system allocator, which fulfills the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get().wrapping_add(layout.size()));
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Upper limit of the memory that loading may allocate in total, in bytes. This also bounds its time.
const MAX_BYTES: usize = 64 << 20;

/// Name of the loaded file in error messages.
const NAME: &str = "fuzzed.toml";

/// Loads a device. Checks that it took little memory, and that an error states its position.
fn load(text: &str, overrides: &[String]) -> Option<DeviceConfig> {
    let before = BYTES.get();
    let result = from_toml(text, NAME, overrides);
    let bytes = BYTES.get().wrapping_sub(before);
    assert!(bytes < MAX_BYTES, "loading took {bytes} bytes");
    match result {
        Ok(device) => Some(device),
        Err(error) => {
            says_where(&error);
            None
        }
    }
}

/// Checks that each problem has a position, or names the key that is missing.
fn says_where(error: &ConfigError) {
    assert!(!error.problems().is_empty(), "no problems: {error:?}");
    for problem in error.problems() {
        let said = problem.to_string();
        assert!(!problem.message.is_empty());
        let place = match &problem.place {
            Some(place) => place.position.is_none_or(|(line, column)| line > 0 && column > 0),
            None if said.ends_with("more like these") => error.problems().len() > 10,
            None => said.starts_with("--set") || (!problem.path.is_empty() && said.contains(&problem.path)),
        };
        assert!(place, "neither position nor key in: {said}");
        let origin = [NAME, "built-in device", "--set"].iter().any(|origin| said.contains(origin));
        assert!(origin || problem.place.is_none(), "neither file nor override in: {said}");
    }
}

/// Returns the name and text of each file of the corpus.
fn corpus() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/device");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

#[test]
fn each_file_of_the_corpus_is_accepted_or_refused_as_its_first_line_states() {
    for (name, text) in corpus() {
        let expected = text.lines().next().unwrap_or_default();
        match (from_toml(&text, NAME, &[]), expected.strip_prefix("# refused: ")) {
            (Ok(device), None) => {
                assert_eq!(expected, "# accepted", "{name}");
                load(&text, &[]);
                works(&device, 3).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            }
            (Err(error), Some(what)) => {
                assert!(error.to_string().contains(what), "{name}: expected an error with `{what}`:\n{error}");
                says_where(&error);
            }
            (result, _) => panic!("{name}: expected `{expected}`, found {result:?}"),
        }
    }
}

#[test]
fn malformed_files_are_refused() {
    let tiny = "base = \"tiny\"\n";
    let deep = |open: &str, close: &str| format!("{tiny}x = {}{}", open.repeat(20_000), close.repeat(20_000));
    let texts = [
        String::new(),
        "\0".to_owned(),
        format!("{tiny}\0"),
        format!("{tiny}{tiny}"),
        deep("[", "]"),
        deep("{ a = ", "}"),
        deep("[", ""),
        format!("{tiny}{} = 1", "a.".repeat(20_000) + "a"),
        format!("{tiny}geometry{}blocks = 1", ".x".repeat(200) + "."),
        format!("{tiny}nand.read = [{}]", "\"25us\", ".repeat(20_000)),
        format!("{tiny}nand.read = \"{}us\"", "9".repeat(100_000)),
        format!("{tiny}description = \"{}\"\nx = 1", "é".repeat(100_000)),
        format!("{tiny}{}", "[[a]]\n".repeat(10_000)),
    ];
    for text in texts {
        assert!(load(&text, &[]).is_none(), "{}", &text[..text.len().min(60)]);
    }
    // A byte order mark and Windows line endings are accepted.
    assert!(load("\u{feff}base = \"tiny\"\r\n[geometry]\r\nblocks = 64\r\n", &[]).is_some());
}

/// Numbers at the limits of types and ranges.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "3",
    "5",
    "16",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "340282366920938463463374607431768211456",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "0.5",
    "0.999999999",
    "1e-300",
    "0x7fffffffffffffff",
    "1_0",
    "1.",
    ".5",
    "00",
];

/// Values of all types.
const VALUES: &[&str] = &[
    "true",
    "\"\"",
    "\"é\"",
    "[]",
    "{}",
    "[[]]",
    "{ a = {} }",
    "1979-05-27",
    "\"greedy\"",
    "\"5%\"",
    "\"100%\"",
    "\"1TiB\"",
    "\"1B\"",
    "\"512B\"",
    "\"16MiB\"",
    "\"0us\"",
    "\"100s\"",
    "\"1ps\"",
    "\"1GB/s\"",
    "\"1T/s\"",
    "[\"1us\", \"2us\"]",
    "{ spare = 0.5 }",
    "{ d-choices = { d = 0 } }",
    "'''",
    "\"\\u0000\"",
    "fifo",
    "s6",
    "tlc",
];

/// A change of a text.
#[derive(Clone, Debug)]
enum Edit {
    /// Replaces a word, number or sign.
    Token(Index, String),
    /// Replaces a number and keeps its unit.
    Number(Index, String),
    /// Replaces a line if true, or inserts one.
    Line(Index, bool, String),
    /// Copies a line to another position.
    Copy(Index, Index),
    /// Replaces characters.
    Bytes(Index, usize, String),
}

fn text_of(from: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(from).prop_map(str::to_owned)
}

/// Returns an existing key, the start of one, or random text.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(options()),
        2 => (prop::sample::select(options()), 0usize..3).prop_map(|(path, parts)| {
            path.split('.').take(parts + 1).collect::<Vec<_>>().join(".")
        }),
        1 => "[a-z\".]{0,8}",
    ]
}

fn any_value() -> impl Strategy<Value = String> {
    let units = &["us", "ns", "s", "B", "KiB", "TiB", "MT/s", "GB/s", "%", ""];
    prop_oneof![
        text_of(NUMBERS),
        text_of(VALUES),
        (text_of(NUMBERS), text_of(units)).prop_map(|(number, unit)| format!("\"{number}{unit}\"")),
        (1u32..40).prop_map(|number| number.to_string()),
        (1u32..100).prop_map(|percent| format!("0.{percent:02}")),
    ]
}

fn any_line() -> impl Strategy<Value = String> {
    (any_key(), any_value()).prop_map(|(key, value)| format!("{key} = {value}"))
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        2 => (at(), prop_oneof![any_key(), any_value(), "[^a]{0,2}"]).prop_map(|(at, text)| Edit::Token(at, text)),
        4 => (at(), prop_oneof![text_of(NUMBERS), (1u32..40).prop_map(|n| n.to_string())])
            .prop_map(|(at, text)| Edit::Number(at, text)),
        4 => (at(), any::<bool>(), any_line()).prop_map(|(at, instead, line)| Edit::Line(at, instead, line)),
        1 => (at(), at()).prop_map(|(from, to)| Edit::Copy(from, to)),
        1 => (at(), 0usize..12, "[a-z0-9\\[\\]{}=\"'.,#\n\té\u{0}]{0,6}")
            .prop_map(|(at, cut, text)| Edit::Bytes(at, cut, text)),
    ]
}

/// Returns the words, numbers and signs of a text as byte ranges.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let mut tokens: Vec<(usize, usize)> = Vec::new();
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    for (start, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let end = start + c.len_utf8();
        match tokens.last_mut() {
            Some(last) if last.1 == start && in_word(c) && text[..start].ends_with(in_word) => last.1 = end,
            _ => tokens.push((start, end)),
        }
    }
    tokens
}

impl Edit {
    fn apply(&self, text: &mut String) {
        match self {
            Edit::Token(at, new) => replace(text, &tokens(text), at, new),
            Edit::Number(at, new) => {
                let digits = |&(start, end): &(usize, usize)| {
                    let length = text[start..end].bytes().take_while(u8::is_ascii_digit).count();
                    (length > 0).then_some((start, start + length))
                };
                let numbers: Vec<_> = tokens(text).iter().filter_map(digits).collect();
                replace(text, &numbers, at, new);
            }
            Edit::Line(at, instead, line) => {
                let mut lines: Vec<&str> = text.lines().collect();
                let place = at.index(lines.len() + 1);
                let end = (place + usize::from(*instead)).min(lines.len());
                lines.splice(place..end, [line.as_str()]);
                *text = lines.join("\n");
            }
            Edit::Copy(from, to) => {
                let mut lines: Vec<&str> = text.lines().collect();
                if !lines.is_empty() {
                    lines.insert(to.index(lines.len() + 1), lines[from.index(lines.len())]);
                }
                *text = lines.join("\n");
            }
            Edit::Bytes(at, cut, new) => {
                let mut chars: Vec<char> = text.chars().collect();
                let start = at.index(chars.len() + 1);
                chars.splice(start..(start + cut).min(chars.len()), new.chars());
                *text = chars.into_iter().collect();
            }
        }
    }
}

fn replace(text: &mut String, ranges: &[(usize, usize)], at: &Index, new: &str) {
    if !ranges.is_empty() {
        let (start, end) = ranges[at.index(ranges.len())];
        text.replace_range(start..end, new);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let mut texts: Vec<String> = Builtin::ALL.iter().map(|builtin| builtin.text.to_owned()).collect();
    texts.extend(corpus().into_iter().map(|(_, text)| text));
    (prop::sample::select(texts), prop::collection::vec(any_edit(), 0..3)).prop_map(|(mut text, edits)| {
        edits.iter().for_each(|edit| edit.apply(&mut text));
        text
    })
}

/// Overrides that make most devices small enough to be built.
const SMALL: &[&str] = &[
    "geometry.channels=2",
    "geometry.chips=2",
    "geometry.blocks=24",
    "geometry.pages=24",
    "capacity.spare=0.6",
    "gc.soft_threshold=2",
    "gc.hard_threshold=1",
];

/// Returns a key of a device and another value of the same type. Most of these are accepted.
fn any_fitting() -> impl Strategy<Value = (String, String)> {
    let devices = ["tiny", "tlc-nvme", "x25m", "mqsim-default"].map(load_builtin);
    let figures: Vec<_> = devices.iter().flat_map(DeviceConfig::figures).map(|f| (f.path, f.value)).collect();
    (prop::sample::select(figures), 0u32..40).prop_map(|((path, value), number)| {
        let text = value.as_str().unwrap_or_default();
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let names = options();
        let siblings: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(&path)?.strip_prefix('.')).collect();
        let new = match (unit.len() < text.len(), siblings.is_empty()) {
            (true, _) => format!("{number}{unit}"),
            (false, false) => siblings[number as usize % siblings.len()].to_owned(),
            (false, true) if value.is_number() || value.is_array() => number.to_string(),
            (false, true) => value.to_string(),
        };
        (path, new)
    })
}

fn load_builtin(name: &str) -> DeviceConfig {
    floatgate_core::device_file::load(name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn any_overrides() -> impl Strategy<Value = Vec<String>> {
    let set = |(key, value)| format!("{key}={value}");
    let one = prop_oneof![
        12 => any_fitting().prop_map(set),
        4 => (any_key(), any_value()).prop_map(set),
        1 => "\\PC{0,12}",
    ];
    let small = prop::sample::select(vec![0, SMALL.len(), SMALL.len()]);
    (small, prop::collection::vec(one, 0..3))
        .prop_map(|(small, given)| SMALL[..small].iter().map(|&text| text.to_owned()).chain(given).collect())
}

/// Number of requests that are run on an accepted device.
const REQUESTS: u64 = 300;

/// Returns `true` if a device is small enough to be run. The runs take by far the largest part of the time.
fn is_small(device: &DeviceConfig) -> bool {
    device.physical_bytes() <= 64 << 20 && device.logical_sectors() <= 1 << 16 && device.total_planes() <= 512
}

/// Runs writes, reads and trims. Checks that all requests complete, the counters add up, and the data are right.
fn works(config: &DeviceConfig, seed: u64) -> Result<(), String> {
    let options = Options { seed, verify: true, ..Options::default() };
    let mut device =
        Device::new(config.clone(), options).map_err(|error| format!("accepted, but not built: {error}"))?;
    let mut rng = Rng::new(seed, "device_files");
    let units = config.logical_units();
    let per_unit = u64::from(config.sectors_per_unit());
    let mut versions = vec![0u32; units as usize];
    let mut together = Vec::new();
    for tag in 1..=REQUESTS {
        let unit = rng.below(units);
        // Outstanding requests may complete in any order, so no two of them access the same unit.
        if together.len() == 8 || together.contains(&unit) || !device.has_room() {
            settle(&mut device)?;
            together.clear();
        }
        together.push(unit);
        let (operation, version) = match rng.below(8) {
            0 => (Operation::Trim, 0),
            1 => (Operation::Read, versions[unit as usize]),
            _ => (Operation::Write, tag as u32),
        };
        versions[unit as usize] = version;
        let now = device.now();
        let request = Request::new(now, operation, unit * per_unit, per_unit as u32);
        device.submit(now, Request { tag, ..request });
    }
    settle(&mut device)?;
    if device.config().faults.is_some() {
        // The reference model in `model/` checks the data of devices with faults.
        return device.check_invariants();
    }
    if !device.is_idle() {
        return Err(format!("not idle: {}", device.explain_stall()));
    }
    device.check_invariants()?;
    device.write_out_buffer();
    settle(&mut device)?;
    for (unit, &version) in versions.iter().enumerate() {
        let request = Request::new(Time::ZERO, Operation::Read, unit as u64 * per_unit, per_unit as u32);
        let contents = device.serve_now(&request).ok_or("refused")?;
        if contents.iter().any(|&found| found != version) {
            return Err(format!("unit {unit} holds {contents:?}, but was written as version {version}"));
        }
    }
    Ok(())
}

/// Processes all events.
fn settle(device: &mut Device) -> Result<(), String> {
    let mut events = 0;
    while let Some(at) = device.next_event() {
        device.advance(at);
        events += 1;
        if events > 2_000_000 {
            return Err(format!("the device never becomes idle: {}", device.explain_stall()));
        }
    }
    let mut completions = Vec::new();
    device.take_completions(&mut completions);
    device.take_contents();
    let is_healthy = device.config().faults.is_none();
    match completions.iter().find(|completion| is_healthy && completion.status != Status::Ok) {
        Some(completion) => Err(format!("{:?} ended with {:?}", completion.request, completion.status)),
        None => Ok(()),
    }
}

/// The properties below would show little if few cases were accepted.
#[test]
fn many_cases_are_accepted_and_small() {
    let mut runner = TestRunner::deterministic();
    let accepted = (0..400).filter(|_| {
        let (text, overrides) = (any_text(), any_overrides()).new_tree(&mut runner).unwrap().current();
        load(&text, &overrides).is_some_and(|device| is_small(&device))
    });
    let accepted = accepted.count();
    assert!(accepted > 40, "{accepted} of 400");
}

proptest! {
    #[test]
    fn mutated_files_are_refused_or_work(text in any_text(), overrides in any_overrides(), seed: u64) {
        if let Some(device) = load(&text, &overrides) {
            prop_assert_eq!(device.digest().len(), 32);
            if is_small(&device) {
                works(&device, seed).map_err(TestCaseError::fail)?;
            }
        }
    }

    #[test]
    fn any_text_is_refused_or_a_device(text in "\\PC*", overrides in any_overrides()) {
        load(&text, &overrides);
    }

    #[test]
    fn any_toml_is_refused_or_a_device(
        text in "((base|name|gc|[a-z]{1,4})(\\.[a-z\"]{1,3})? ?= ?([0-9]{1,20}|\"[a-z0-9]{0,5}\"|\\[\\]|\\{\\})\n){0,6}",
    ) {
        load(&text, &[]);
    }

    #[test]
    fn any_name_is_refused_or_a_device(name in "\\PC{0,12}") {
        if let Err(error) = floatgate_core::device_file::load(&name, &[]) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn overridden_devices_are_refused_or_work(
        lines in prop::collection::vec(prop_oneof![any_fitting(), (any_key(), any_value())], 1..4), seed: u64,
    ) {
        let overrides: Vec<String> = lines.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let small = "base = \"tiny\"\ngeometry = { planes = 1, blocks = 24, pages = 32 }\ncapacity.spare = 0.5\n";
        if let Some(device) = load(small, &overrides)
            && is_small(&device)
        {
            works(&device, seed).map_err(TestCaseError::fail)?;
        }
    }
}
