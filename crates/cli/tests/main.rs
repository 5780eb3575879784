//! Tests with the real program, a module for each topic.

mod common;
#[cfg(feature = "live")]
#[path = "../../serve/tests/common/truth.rs"]
mod truth;

mod array;
mod convert;
mod detail;
mod device;
mod digests;
mod draw;
mod ending;
mod generated;
mod image;
mod jobs;
#[cfg(feature = "live")]
mod kills;
mod lifetime;
mod limits;
mod objects;
mod outputs;
mod python;
mod ready;
mod report;
mod run;
mod serve;
mod several;
mod state;
mod top;
mod trace;
mod vm;
