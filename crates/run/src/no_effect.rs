//! Options that were changed for a run, but that no decision of the run consulted.
//!
//! Each rule of [`RULES`] names options, and the event without which they have no effect. An option has no rule if the
//! counters of a result cannot show that it had no effect. Thresholds, for example, also decide that nothing happens.

use floatgate_core::device_file::{DeviceConfig, Figure};
use floatgate_core::sim::time::Time;
use floatgate_core::summary::Summary;

use crate::device::LoadedDevice;
use crate::workload::Workload;

/// Options that need an event.
struct Rule {
    /// Paths of keys or of tables.
    options: &'static [&'static str],
    /// Returns `true` if the event happened.
    happened: fn(&Summary) -> bool,
    /// Explanation if it did not.
    otherwise: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        options: &[
            "gc.victim",
            "gc.destination",
            "gc.frontiers",
            "controller.firmware.gc",
            "nand.advanced.copy_back",
            "nand.advanced.copy_back_parity",
        ],
        happened: |summary| collects(summary) || has_worked_before(summary),
        otherwise: "no garbage was collected; start from --precondition steady",
    },
    Rule {
        options: &["gc.wear", "faults.erase_rate", "nand.advanced.multi_plane_erase"],
        happened: |summary| summary.flash.blocks_erased > 0 || has_worked_before(summary),
        otherwise: "no block was erased; start from --precondition steady",
    },
    Rule {
        options: &["nand.erase", "bus.command_cycles.erase", "nand.advanced.suspend.erase"],
        happened: |summary| summary.flash.blocks_erased > 0,
        otherwise: "no block was erased; start from --precondition steady",
    },
    Rule {
        options: &[
            "nand.read",
            "bus.read_cycle",
            "bus.command_cycles.read",
            "nand.advanced.multi_plane_read",
            "nand.advanced.cache_read",
            "faults.read_rate",
        ],
        happened: |summary| summary.flash.pages.read > 0,
        otherwise: "no page was read; reads of unwritten data need none: start from --precondition fill",
    },
    Rule {
        options: &["nand.advanced.suspend", "scheduler"],
        happened: |summary| summary.flash.reads_by_cause.host > 0,
        otherwise: "no page was read for the host; reads of unwritten data need none: start from --precondition fill",
    },
    Rule {
        options: &[
            "nand.program",
            "bus.write_cycle",
            "bus.command_cycles.program",
            "nand.advanced.cache_program",
            "controller.write_slots",
            "controller.fill_timeout",
        ],
        happened: |summary| summary.flash.pages.programmed > 0,
        otherwise: "no page was programmed; the workload needs writes that reach flash",
    },
    Rule {
        options: &["buffer"],
        happened: |summary| summary.buffer.is_some(),
        otherwise: "the device has no buffer; set buffer.capacity",
    },
];

/// Returns `true` if the run reclaimed blocks.
fn collects(summary: &Summary) -> bool {
    let gc = &summary.gc;
    gc.victims + gc.migrations + gc.merges.switch + gc.merges.partial + gc.merges.full > 0
}

/// Returns `true` if preconditioning reclaimed blocks, so that the state before the run depends on how it did that.
fn has_worked_before(summary: &Summary) -> bool {
    summary.precondition.reached.write_amplification.is_some_and(|amplification| amplification > 1.0)
}

/// Returns a line for each changed option that had no effect. Returns none if the events before the measured part are
/// unknown.
pub fn lines(chosen: &LoadedDevice, workload: &Workload, summary: &Summary) -> Vec<String> {
    let has_ramp = workload.sources.iter().any(|source| source.measure_from() > Time::ZERO);
    let Some(plain) = chosen.plain.as_ref().filter(|_| summary.requests.all.count > 0 && !has_ramp) else {
        return Vec::new();
    };
    let changed = changed(plain, &chosen.config);
    let of_rule = |rule: &'static Rule| {
        let idle = !(rule.happened)(summary);
        let options = rule.options.iter().filter(move |_| idle);
        let options = options.filter(|option| changed.iter().any(|path| is_in(option, path)));
        options.map(|option| format!("no effect: {option}: {}", rule.otherwise)).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(of_rule).collect()
}

/// Returns the paths of the values that differ.
fn changed(plain: &DeviceConfig, config: &DeviceConfig) -> Vec<String> {
    let (before, after) = (plain.figures(), config.figures());
    let differs = |figure: &Figure, others: &[Figure]| {
        !others.iter().any(|other| other.path == figure.path && other.value == figure.value)
    };
    let new = after.iter().filter(|figure| differs(figure, &before));
    let old = before.iter().filter(|figure| differs(figure, &after));
    new.chain(old).map(|figure| figure.path.clone()).collect()
}

/// Returns `true` if a path is an option, or in its table.
fn is_in(option: &str, path: &str) -> bool {
    path.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
