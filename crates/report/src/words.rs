//! Names of this program as words for people.

use floatgate_core::metrics::attribution::Part;

/// A name of this program as words: `write_zeroes` is two.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// What a part of a request's time is.
pub fn part(part: Part) -> &'static str {
    match part {
        Part::HostQueue => "waiting for a place in the device's queue",
        Part::Link => "the host link",
        Part::Firmware => "the controller's software, and waiting for it",
        Part::Buffer => "the controller's memory, and waiting for room in it",
        Part::Order => "waiting for an older write of the same unit",
        Part::MapFetch => "waiting for the entry of the map that tells the place",
        Part::Fill => "waiting for other writes that fill the same program",
        Part::Die => "waiting for the die, which other requests held",
        Part::Channel => "waiting for the channel, which other requests held",
        Part::Cleaning => "waiting for cleaning",
        Part::Rmw => "reading what a partial write keeps",
        Part::Bus => "its own transfers",
        Part::Cell => "the flash cells' work for it",
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
        "link_in" => "link, from the host".to_owned(),
        "link_out" => "link, to the host".to_owned(),
        other => words(other),
    }
}
