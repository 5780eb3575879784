//! Runs, from a specification to a result: used by the command line, Python and other programs.
//!
//! A [`spec::RunSpec`] specifies the run and its outputs. A [`session::Session`] opens its device and its workloads,
//! brings the device into the requested state, runs the workloads, and returns the summary. It reports to a
//! [`frontend::Frontend`] and passes details to a [`frontend::Observer`]. [`output`] writes the files of a result. This
//! crate reads no arguments and prints nothing.
//!
//! ```
//! use floatgate_run::device::DeviceSpec;
//! use floatgate_run::frontend::Quiet;
//! use floatgate_run::session::Session;
//! use floatgate_run::spec::RunSpec;
//! use floatgate_run::traces::Traces;
//!
//! let spec = RunSpec::new(DeviceSpec::named("tiny", &[]), vec!["rw=randread bs=4k number_ios=100".to_owned()]);
//! let traces = Traces::default();
//! let session = Session::open(&spec, &traces, spec.device.load()?, &Quiet)?;
//! let finished = session.run_into_directory(&Quiet)?;
//! assert_eq!(finished.summary.requests.read.count, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod as_text;
mod blocks;
mod command;
mod concurrent;
pub mod cost;
pub mod detail;
pub mod device;
pub mod failure;
pub mod files;
pub mod frontend;
pub mod import;
mod iolog;
pub mod jobs;
pub mod lifetime;
pub mod memory;
mod no_effect;
pub mod output;
mod preparation;
pub mod seeds;
pub mod session;
pub mod shared;
pub mod simulated;
mod source_wrapper;
pub mod span;
pub mod spec;
pub mod state;
pub mod text;
pub mod tool;
pub mod traces;
pub mod warnings;
pub mod workload;
