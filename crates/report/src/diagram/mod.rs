//! Timing diagrams: a span of a timeline, drawn as data sheets draw it. Channels with their command, address and data
//! cycles, ready and busy of the chips, and what the cells of each plane do, over one axis of time.
//!
//! Nothing is told by colour alone: boxes have labels, and where there is no room for one a pattern.

mod gather;
mod layout;
mod svg;

use std::io::Read;

use anyhow::Result;
use floatgate_core::nand::array::Kind;
use floatgate_core::nand::probe::Phase;
use floatgate_core::sim::time::Time;

/// Phases that a diagram has at most: with more, boxes are too narrow to be told apart.
pub const MOST_PHASES: usize = 300;

/// Planes that a diagram has at most.
pub const MOST_PLANES: usize = 48;

/// Requests that a diagram shows at most, and rows that they may take.
const MOST_REQUESTS: usize = 64;
const MOST_REQUEST_ROWS: usize = 8;

/// What to draw.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What overlaps with this span of simulated time; from [`Time::ZERO`] the axis begins with the first of it, and
    /// to [`Time::NEVER`] it ends with the last.
    pub span: (Time, Time),
    /// What is written above it; without, the device and the span.
    pub title: Option<String>,
}

/// Draws a timeline, which has the bytes of `name`, as SVG.
pub fn draw(timeline: impl Read, name: &str, asked: &Asked) -> Result<String> {
    let gathered = gather::gather(timeline, name, asked.span)?;
    Ok(svg::svg(&layout::lay_out(&gathered, asked)))
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Switch,
    Command,
    DataIn,
    DataOut,
    Read,
    Program,
    Erase,
}

impl Sort {
    /// A phase of an operation; of the cells of a copy-back, `second` is the program.
    fn of(kind: Kind, phase: Phase, second: bool) -> Sort {
        match (phase, kind) {
            (Phase::Switch, _) => Sort::Switch,
            (Phase::Data, Kind::Read) => Sort::DataOut,
            (Phase::Data, _) => Sort::DataIn,
            (Phase::Cell, Kind::Read) => Sort::Read,
            (Phase::Cell, Kind::Program) => Sort::Program,
            (Phase::Cell, Kind::CopyBack) if second => Sort::Program,
            (Phase::Cell, Kind::CopyBack) => Sort::Read,
            (Phase::Cell, Kind::Erase) => Sort::Erase,
            (Phase::Command | Phase::Wait, _) => Sort::Command,
        }
    }

    /// As data sheets have it.
    const fn label(self) -> &'static str {
        match self {
            Sort::Switch => "SW",
            Sort::Command => "CMD",
            Sort::DataIn => "DIN",
            Sort::DataOut => "DOUT",
            Sort::Read => "tR",
            Sort::Program => "tPROG",
            Sort::Erase => "tBERS",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Sort::Switch => "turning to another chip or channel",
            Sort::Command => "command and address cycles",
            Sort::DataIn => "data in",
            Sort::DataOut => "data out",
            Sort::Read => "cells to register",
            Sort::Program => "register to cells",
            Sort::Erase => "block erase",
        }
    }

    /// Its name in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Sort::Switch => "switch",
            Sort::Command => "command",
            Sort::DataIn => "data-in",
            Sort::DataOut => "data-out",
            Sort::Read => "read",
            Sort::Program => "program",
            Sort::Erase => "erase",
        }
    }
}
