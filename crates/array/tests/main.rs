//! Tests of arrays, a module for each topic.

mod common;

mod contents;
mod functional;
mod options;
mod state;
mod timers;
mod timing;
