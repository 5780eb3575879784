//! Robustness against damaged traces: samples of every format have bits flipped, numbers replaced, and pieces removed
//! or duplicated. Reading them ends at their end, or with an error that names a line or record. It causes no panic and
//! takes bounded memory.
#![allow(unsafe_code)] // A global allocator needs unsafe code.

mod corpus;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use corpus::samples;
use floatgate_sim::source::Source;
use floatgate_workload::trace::{Devices, FORMATS, Fit, Format, Replay, Trace, TraceOptions, convert};
use proptest::prelude::*;
use proptest::sample::Index;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards all calls to the system allocator, which fulfills the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as guaranteed by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Maximum number of bytes for reading a small trace: its blocks in two passes, and tables of devices. One pass over a
/// trace takes about 0.3 MiB.
const MAX_HELD: usize = 4 << 20;

/// A way to damage a sample.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    /// Removes the piece between two positions.
    Remove(Index, Index),
    /// Inserts the piece between two positions again at a third one.
    Repeat(Index, Index, Index),
    /// Replaces everything after a position by another sample.
    Splice(Index, Index, Index),
    /// Replaces the digits at a position by another number.
    Number(Index, u64),
    /// Replaces eight bytes at a position by another number.
    Word(Index, u64),
}

fn damage() -> impl Strategy<Value = Damage> {
    let extreme = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1 << 63), Just(1 << 32), 0..1_000_u64];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Remove(from, to)),
        (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(|(from, to, at)| Damage::Repeat(from, to, at)),
        (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(|(at, other, from)| Damage::Splice(at, other, from)),
        (any::<Index>(), extreme.clone()).prop_map(|(at, number)| Damage::Number(at, number)),
        (any::<Index>(), extreme).prop_map(|(at, word)| Damage::Word(at, word)),
    ]
}

fn piece(bytes: &[u8], from: Index, to: Index) -> std::ops::Range<usize> {
    let (a, b) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
    a.min(b)..a.max(b)
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage, others: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Flip(at, byte) => *at.get_mut(bytes) ^= byte,
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Remove(from, to) => drop(bytes.drain(piece(bytes, *from, *to))),
        Damage::Repeat(from, to, at) => {
            let copy = bytes[piece(bytes, *from, *to)].to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..at, copy);
        }
        Damage::Splice(at, other, from) => {
            let other = other.get(others);
            bytes.truncate(at.index(bytes.len()));
            bytes.extend_from_slice(&other[from.index(other.len())..]);
        }
        Damage::Number(at, number) => {
            let at = at.index(bytes.len());
            let start = bytes[..at].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |place| place + 1);
            let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            bytes.splice(start..start + length, number.to_string().into_bytes());
        }
        Damage::Word(at, word) => {
            let start = at.index(bytes.len());
            let end = bytes.len().min(start + 8);
            bytes[start..end].copy_from_slice(&word.to_le_bytes()[..end - start]);
        }
    }
}

/// Returns `true` if an error names its position, or concerns the whole file.
fn names_its_place(error: &str) -> bool {
    let whole = ["holds no request", "no known trace format fits", "damaged or cut off", "no request of device"];
    error.contains(": line ") || error.contains(": record ") || whole.iter().any(|words| error.contains(words))
}

/// Reads and converts a trace. Returns the errors.
fn read(bytes: &[u8], options: &TraceOptions) -> Vec<String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let mut errors = Vec::new();
    match Trace::open(file.path(), options, 1 << 40) {
        Err(error) => errors.push(error.0),
        Ok(mut trace) => {
            loop {
                match trace.next_request() {
                    Ok(Some(request)) => assert!(request.lba + u64::from(request.sectors) <= 1 << 40),
                    Ok(None) => break,
                    Err(error) => {
                        errors.push(error.0);
                        break;
                    }
                }
            }
            assert!(trace.requests() <= bytes.len() as u64, "more requests than bytes");
            let _ = (trace.warnings(), trace.description(), trace.progress(), trace.digest());
        }
    }
    let to = Format::written("fio").unwrap();
    let converted = convert(file.path(), options, to, &mut std::io::sink(), &mut |_| {});
    errors.extend(converted.err().map(|error| error.to_string()));
    errors
}

fn options(sample: &TraceOptions, other: Option<Index>, numbers: (bool, u32, u64, bool)) -> TraceOptions {
    let (merge, sort_window, skip_bad_lines, asap) = numbers;
    let mut options = TraceOptions { sort_window, skip_bad_lines, fit: Fit::Wrap, ..sample.clone() };
    if let (Some(other), None) = (other, &options.columns) {
        options.format = Some(*other.get(FORMATS)).filter(|format| format.name != "delimited");
    }
    options.devices = if merge { Devices::Merge } else { Devices::SideBySide };
    options.replay = if asap { Replay::Asap } else { Replay::Timed };
    options
}

proptest! {
    // A single test, so that no other test allocates at the same time.
    #[test]
    fn damaged_traces_are_read_or_refused_in_bounded_memory(
        sample in any::<Index>(),
        damages in proptest::collection::vec(damage(), 0..6),
        other in proptest::option::weighted(0.2, any::<Index>()),
        numbers in (any::<bool>(), 0..50_u32, prop_oneof![Just(0), 0..100_u64], any::<bool>()),
    ) {
        let samples = samples();
        let others: Vec<Vec<u8>> = samples.iter().map(|sample| sample.bytes.clone()).collect();
        let sample = sample.get(&samples);
        let mut bytes = sample.bytes.clone();
        for damage in &damages {
            apply(&mut bytes, damage, &others);
        }
        let options = options(&sample.options, other, numbers);
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let errors = read(&bytes, &options);
        let held = PEAK.load(Ordering::Relaxed) - before;
        prop_assert!(held <= MAX_HELD, "{}: {held} bytes were held", sample.name);
        for error in errors {
            prop_assert!(names_its_place(&error), "{}: {error}", sample.name);
        }
    }
}
