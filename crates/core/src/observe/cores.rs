//! Reports to a probe: work of the cores.

use crate::host::cores::{Started, Work};
use crate::host::interface::HostInterface;
use crate::nand::probe::{CoreWork, Probe, Task};

/// Reports the work that a core starts to the probe. `together` is the number of planes that the FTL sees as one.
#[cold]
pub fn report_work(probe: &mut Probe, interface: &HostInterface, started: Started, together: u32) {
    let Started { core, work, start, end, waited } = started;
    let (task, units) = match work {
        Work::Receive(_) => (Task::Receive, 0),
        Work::Admit(_, units) => (Task::Write, units),
        Work::Search(_, _, units) => (Task::Search, units),
        Work::LookUp(_, _, units) => (Task::LookUp, units),
        Work::Trim(_, units) => (Task::Trim, units),
        Work::WriteOut(units) => (Task::WriteOut, units),
        Work::Clean(_) => (Task::Choose, 0),
        Work::Answer(_) => (Task::Answer, 0),
    };
    let plane = if let Work::Clean(plane) = work { plane.0 * together } else { u32::MAX };
    let tag = interface.tag_of(work.request());
    probe.record_work(CoreWork { core, task, start, end, waited, units, tag, plane });
}
