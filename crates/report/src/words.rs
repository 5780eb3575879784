//! Names of this program as words for people.

use floatgate_core::metrics::attribution::Part;

/// A name of this program as words: `write_zeroes` is two.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// What a part of a request's time is, for a list.
pub fn part(part: Part) -> String {
    let more = match part {
        Part::Firmware => ", and waiting for it",
        Part::Buffer => ", and waiting for room in it",
        Part::Order => " of the same unit",
        Part::Die | Part::Channel => ", which other requests held",
        Part::Cell => " for it",
        Part::MapFetch => ", for the entry that tells the place",
        Part::Fill => " that fill the same program",
        Part::HostQueue | Part::Link | Part::Gc | Part::Rmw | Part::Bus => "",
    };
    format!("{}{more}", part_in_short(part))
}

/// The same for a line with several of them.
pub fn part_in_short(part: Part) -> &'static str {
    match part {
        Part::HostQueue => "waiting for a place in the device's queue",
        Part::Link => "the host link",
        Part::Firmware => "the controller's software",
        Part::Buffer => "the controller's memory",
        Part::Order => "waiting for an older write",
        Part::MapFetch => "waiting for the map",
        Part::Fill => "waiting for other writes",
        Part::Die => "waiting for the die",
        Part::Channel => "waiting for the channel",
        Part::Gc => "waiting for cleaning",
        Part::Rmw => "reading what a partial write keeps",
        Part::Bus => "its own transfers",
        Part::Cell => "the flash cells' work",
    }
}

/// What an operation of the timeline is: `rmw read` is one of a read-modify-write.
pub fn operation(name: &str) -> &str {
    match name {
        "rmw read" => "read-modify-write read",
        "summary" => "summary write",
        other => other,
    }
}

/// A phase of the timeline.
pub fn phase(name: &str) -> &str {
    match name {
        "switch" => "turns",
        "cell" => "cells",
        other => other,
    }
}

/// A resource of the bottleneck. Dies are counted by what takes one command at a time: docs/model/timing.md.
pub fn resource(name: &str) -> String {
    match name {
        "dies" => "dies (LUNs)".to_owned(),
        "link_in" => "transfers from the host".to_owned(),
        "link_out" => "transfers to the host".to_owned(),
        "cores" => "controller's cores".to_owned(),
        "memory" => "controller's memory".to_owned(),
        other => words(other),
    }
}
