//! Timeline of channels, planes and requests: writes and reads `timeline.pftrace.gz`, a trace of Perfetto.
//!
//! The trace consists of packets (`packets.rs`), which are written and read one by one, so that the file is never held
//! in memory. The first packet is an instant of the device with the schema and the origin, the second has all texts
//! (`names.rs`), and then come the tracks. The last packet is an instant with the digest of the run. Every other packet
//! is independent of the ones before, because old parts of the timeline of a live device are dropped.
//!
//! Perfetto has times in nanoseconds. Arguments of an event hold the picoseconds of its start and its end.

mod names;
pub mod packets;
mod read;
mod write;

use floatgate_core::policies::{Class, Purpose};
use floatgate_core::timeline::{Kind, Phase, Task};

pub(crate) use read::read_timeline_in;
pub use read::{Covered, ps, read_events, read_timeline};
pub use write::{SIZE_LIMIT, TimelineWriter};

/// Schema of the file.
const SCHEMA: &str = "floatgate-timeline-2";

/// Name of the last event.
const END_OF_FILE: &str = "end of the timeline";

/// Category of events of the controller's cores.
pub const FIRMWARE: &str = "firmware";

/// Category of requests.
const REQUEST: &str = "request";

/// Category of waits, and the start of their names.
const WAIT: &str = "wait";

/// Process of the host's requests. The process of a channel is its number plus one, and the process of the controller's
/// cores follows the last channel.
const HOST: u64 = 0;

/// First thread of a process. No thread is 0, because Perfetto treats thread 0 as the same thread in all processes.
const FIRST: u64 = 1;

/// Thread of a channel's bus. The threads of its planes follow.
pub const BUS: u64 = FIRST;

/// Returns the thread of a plane.
pub const fn thread_of_plane(plane: u64) -> u64 {
    plane.saturating_add(BUS + 1)
}

/// Returns the name of an operation, which contains its purpose.
fn cause(kind: Kind, class: Class, purpose: Purpose) -> &'static str {
    match (purpose, kind) {
        (Purpose::Wear, Kind::Read) => "wear read",
        (Purpose::Wear, Kind::Program) => "wear write",
        (Purpose::Wear, Kind::CopyBack) => "wear copy-back",
        (Purpose::Merge, Kind::Read) => "merge read",
        (Purpose::Merge, Kind::Program) => "merge write",
        (Purpose::Merge, Kind::Erase) => "merge erase",
        (Purpose::SwitchMerge, Kind::Erase) => "switch merge erase",
        (Purpose::PartialMerge, Kind::Read) => "partial merge read",
        (Purpose::PartialMerge, Kind::Program) => "partial merge write",
        (Purpose::PartialMerge, Kind::Erase) => "partial merge erase",
        (Purpose::FullMerge, Kind::Read) => "full merge read",
        (Purpose::FullMerge, Kind::Program) => "full merge write",
        (Purpose::FullMerge, Kind::Erase) => "full merge erase",
        (Purpose::Fold, Kind::Read) => "fold read",
        (Purpose::Fold, Kind::Program) => "fold write",
        (Purpose::Fold, Kind::Erase) => "fold erase",
        (Purpose::Rebuild, Kind::Read) => "rebuild read",
        (Purpose::Rebuild, Kind::Program) => "rebuild write",
        (Purpose::Refresh, Kind::Read) => "refresh read",
        (Purpose::Refresh, Kind::Program) => "refresh write",
        (Purpose::Refresh, Kind::Erase) => "refresh erase",
        // Erases do not depend on the class, merges do not copy back, and a switch merge copies nothing.
        _ => cause_by_class(kind, class),
    }
}

fn cause_by_class(kind: Kind, class: Class) -> &'static str {
    match (kind, class) {
        (Kind::Erase, _) => "erase",
        (_, Class::Summary) => "summary",
        (Kind::Read, Class::MapRead) => "map read",
        (Kind::Program, Class::MapProgram) => "map write",
        (Kind::Read, Class::HostRead) => "host read",
        (Kind::Read, Class::ReadAhead) => "read ahead",
        (Kind::Read, Class::RmwRead) => "rmw read",
        (Kind::Read, Class::BackgroundGc) => "background GC read",
        (Kind::Read, _) => "GC read",
        (Kind::CopyBack, Class::BackgroundGc) => "background GC copy-back",
        (Kind::CopyBack, _) => "GC copy-back",
        (Kind::Program, Class::HostProgram) => "host write",
        (Kind::Program, Class::BackgroundGc) => "background GC write",
        (Kind::Program, _) => "GC write",
    }
}

/// Returns the name of a task of a core, and on whose behalf the core executes it.
fn task_name(task: Task) -> (&'static str, &'static str) {
    match task {
        Task::Receive => ("receive", "host"),
        Task::Write => ("take a write", "host"),
        Task::Search => ("search the buffer", "host"),
        Task::LookUp => ("look up", "host"),
        Task::Trim => ("trim", "host"),
        Task::WriteOut => ("write back", "buffer"),
        Task::Choose => ("choose a block", "gc"),
        Task::Answer => ("complete", "host"),
    }
}

/// All tasks of a core.
const TASKS: [Task; 8] =
    [Task::Receive, Task::Write, Task::Search, Task::LookUp, Task::Trim, Task::WriteOut, Task::Choose, Task::Answer];

/// Returns the names of all operations, with their kinds. A name can occur more than once.
fn operations() -> impl Iterator<Item = (&'static str, Kind)> {
    // The name of a summary does not contain its kind. `Program` is first, so that it is found.
    let kinds = [Kind::Program, Kind::Read, Kind::Erase, Kind::CopyBack];
    kinds.into_iter().flat_map(|kind| {
        let of_classes = Class::ALL.map(|class| (cause_by_class(kind, class), kind));
        of_classes.into_iter().chain(Purpose::ALL.map(|purpose| (cause(kind, Class::Gc, purpose), kind)))
    })
}

/// Returns the operation with this name in a timeline: its name and kind.
pub fn operation_of(name: &str) -> Option<(&'static str, Kind)> {
    operations().find(|(of, _)| *of == name)
}

/// Returns the phase with this name in a timeline.
pub fn phase_of(name: &str) -> Option<Phase> {
    [Phase::Switch, Phase::Command, Phase::Data, Phase::Cell].into_iter().find(|phase| phase_name(*phase) == name)
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Switch => "switch",
        Phase::Command => "command",
        Phase::Data => "data",
        Phase::Cell => "cell",
        Phase::Wait => "wait",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_name() {
        for kind in Kind::ALL {
            for class in Class::ALL.into_iter().filter(|class| *class != Class::Summary || kind == Kind::Program) {
                for name in Purpose::ALL.map(|purpose| cause(kind, class, purpose)) {
                    assert_eq!(operation_of(name), Some((name, kind)), "{class:?}");
                }
            }
        }
        assert_eq!((operation_of("request"), phase_of("wait"), phase_of("cell")), (None, None, Some(Phase::Cell)));
    }
}
