//! Kinds of boxes.

use floatgate_core::timeline::{Kind, Phase};

/// Kind of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Switch,
    Command,
    DataIn,
    DataOut,
    Read,
    Program,
    Erase,
}

impl Sort {
    /// Returns the kind of a phase of an operation. For a cell phase of a copy-back, `second` selects the program.
    pub(super) fn of(kind: Kind, phase: Phase, second: bool) -> Sort {
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

    /// Returns the label, in the notation of data sheets.
    pub(super) const fn label(self) -> &'static str {
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

    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Sort::Switch => "switching to another chip or channel",
            Sort::Command => "command and address cycles",
            Sort::DataIn => "data in",
            Sort::DataOut => "data out",
            Sort::Read => "cells to register",
            Sort::Program => "register to cells",
            Sort::Erase => "block erase",
        }
    }

    /// Returns the name of the class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
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
