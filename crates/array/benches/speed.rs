//! `make bench`: speed of an array of 8 per CPU second, compared with one of its members.
//!
//! The cases alternate, and the best run of each counts, because disturbances only make a run slower.

use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{Options, SsdArray};
use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::simulation::{self, Device, NoWatcher, RunOptions, Ssd, replay};
use floatgate_workload::synthetic;
use rustix::time::{ClockId, clock_gettime};

/// Members of the array.
const MEMBERS: u32 = 8;

/// Returns the CPU seconds that this process has used.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs a job. Returns the requests per CPU second.
fn rate(ssd: &mut impl Ssd, bytes: u64, kind: &str, requests: u64, seed: u64) -> f64 {
    let job = format!("rw={kind} bs=4k iodepth=32 norandommap=1 number_ios={requests}");
    let jobs = synthetic::parse(&job, bytes, seed).expect("a valid job");
    let mut sources: Vec<_> = jobs.into_iter().map(|job| job.source).collect();
    let start = cpu_seconds();
    replay(ssd, &mut sources, &mut NoWatcher, RunOptions::default()).expect("all requests complete");
    requests as f64 / (cpu_seconds() - start)
}

fn single(state: Precondition) -> Device {
    let config = device_file::load("bench-32g", &[]).expect("a built-in device");
    let mut device = Device::new(config, simulation::Options::default()).expect("a checked device");
    precondition(&mut device, state, 1, &mut |_| true).expect("the state can be reached");
    device
}

/// Members of an array.
#[derive(Clone, Copy)]
enum Of {
    /// Each is the whole device, so that the array simulates eight times as much flash.
    Devices,
    /// Each has an eighth of its channels, so that the array simulates the same flash.
    Slices,
}

fn array(level: u32, of: Of, state: Precondition) -> SsdArray {
    let whole = device_file::load("bench-32g", &[]).expect("a built-in device").geometry.channels;
    let channels = match of {
        Of::Devices => whole,
        Of::Slices => whole / MEMBERS,
    };
    let text = format!(
        "[array]\nlevel = {level}\ndevice = \"bench-32g\"\ncount = {MEMBERS}\n[member]\ngeometry.channels = {channels}"
    );
    let config: ArrayConfig = from_toml(&[], &text, "array-8", &[]).expect("a valid array");
    let mut array = SsdArray::new(config, Options::default()).expect("a checked array");
    for member in 0..MEMBERS as usize {
        precondition(array.member_mut(member), state, 1 + member as u64, &mut |_| true).expect("as above");
    }
    array
}

fn main() {
    let cases =
        [("reads", "randread", Precondition::Fill, 2_000_000), ("writes", "randwrite", Precondition::Steady, 400_000)];
    for (name, kind, state, requests) in cases {
        let (mut device, mut arrays) = (single(state), [Of::Devices, Of::Slices].map(|of| array(0, of, state)));
        let mut best = [0.0; 3];
        for seed in 1..=3 {
            let bytes = device.config().logical_bytes();
            best[0] = f64::max(best[0], rate(&mut device, bytes, kind, requests, seed));
            for (array, best) in arrays.iter_mut().zip(&mut best[1..]) {
                let bytes = array.config().logical_bytes();
                *best = f64::max(*best, rate(array, bytes, kind, requests, seed));
            }
        }
        println!("random 4 KiB {name:<6}, one device:    {:5.2} M/CPU s", best[0] / 1e6);
        for (what, rate) in ["devices", "slices"].into_iter().zip(&best[1..]) {
            let ratio = rate / best[0];
            println!("  array-8, level 0, of {what:<7}:        {:5.2} M   ratio {ratio:.2}   (bar 0.8)", rate / 1e6);
        }
    }
    let mut parity = array(5, Of::Devices, Precondition::Steady);
    let bytes = parity.config().logical_bytes();
    let rate = (1..=3).map(|seed| rate(&mut parity, bytes, "randwrite", 100_000, seed)).fold(0.0, f64::max);
    println!("  array-8, level 5, random writes:    {:5.2} M, of four requests to members each", rate / 1e6);
}
