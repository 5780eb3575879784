//! Display names of parts, operations, phases and resources.

use floatgate_core::results::Part;

/// Returns an identifier as words: `write_zeroes` becomes "write zeroes".
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns the name of the work that frees blocks. `merges` is true if the mapping scheme merges blocks.
pub const fn reclaim(merges: bool) -> &'static str {
    if merges { "merges" } else { "garbage collection" }
}

/// Returns the description of a part of a latency, for a list. `merges` is true if the mapping scheme merges blocks.
pub fn part(part: Part, merges: bool) -> String {
    let more = match part {
        Part::Firmware => ", and waiting for it",
        Part::Buffer => ", and waiting for space in it",
        Part::Throttle => ", because few blocks are free",
        Part::Order => " of the same unit",
        Part::Die | Part::Channel => ", held by other requests",
        Part::Cell => " for it",
        Part::Ecc => ", and read retries",
        Part::MapFetch => ", for the entry with the physical address",
        Part::Fill => " to fill the same program",
        Part::HostQueue | Part::Link | Part::Gc | Part::Rmw | Part::Bus | Part::Rebuild => "",
    };
    format!("{}{more}", part_in_short(part, merges))
}

/// Returns a short description of a part, for a line with several parts.
pub fn part_in_short(part: Part, merges: bool) -> &'static str {
    match part {
        Part::Gc if merges => "waiting for merges",
        Part::HostQueue => "waiting for a slot in the device's queue",
        Part::Link => "the host link",
        Part::Firmware => "the controller's firmware",
        Part::Throttle => "the throttle of writes",
        Part::Buffer => "the controller's memory",
        Part::Order => "waiting for an older write",
        Part::MapFetch => "waiting for the map",
        Part::Fill => "waiting for other writes",
        Part::Die => "waiting for the die",
        Part::Channel => "waiting for the channel",
        Part::Gc => "waiting for garbage collection",
        Part::Rmw => "reading the rest of a partial write",
        Part::Bus => "the request's own transfers",
        Part::Cell => "the flash cells' work",
        Part::Ecc => "error correction",
        Part::Rebuild => "rebuilding an uncorrectable page",
    }
}

/// Returns the description of an operation in a timeline. `rmw read` is the read of a read-modify-write.
pub fn operation(name: &str) -> &str {
    match name {
        "rmw read" => "read-modify-write read",
        "summary" => "summary write",
        other => other,
    }
}

/// Returns the description of a phase in a timeline.
pub fn phase(name: &str) -> &str {
    match name {
        "switch" => "switching",
        "cell" => "cells",
        other => other,
    }
}

/// Returns the description of a resource of the bottleneck analysis. Dies are counted as LUNs (docs/model/timing.md).
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
