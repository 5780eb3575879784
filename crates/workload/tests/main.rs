//! Tests of workloads and traces, a module for each topic.

mod common;
pub mod corpus;

mod fio;
mod job_files;
mod profiles;
mod reference;
mod trace_formats;
mod traces;
