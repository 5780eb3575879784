//! Tests of files of results, a module for each topic.

#[path = "../../core/tests/common/mod.rs"]
mod common;

mod checksums;
mod diagrams;
