//! External mapping scheme: supplied by the program that runs the device.

use std::ops::Range;

use super::{
    Bound, Context, Hooks, Location, Mapping, MappingInTime, Needs, SchemeOptions, WholeBlocks, Written, check_places,
};
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalMapping, Wanted, not_saved};
use crate::ftl::Ftl;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{StateError, Writer};
use crate::work::Call;

impl SchemeOptions for Config {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        Needs {
            whole_blocks: Some(WholeBlocks::of_planes(device)),
            no_power_loss: Some("power loss is not modeled with external mapping schemes"),
            no_faults: Some("failures are not modeled with external mapping schemes; remove the table"),
            no_classes: Some("external mapping schemes do not separate classes; choose temperature = \"none\""),
            ..Needs::default()
        }
    }
}

/// Forwards all calls to an external scheme.
#[derive(Debug)]
pub struct External {
    who: String,
    scheme: Box<dyn ExternalMapping>,
}

impl External {
    /// Builds the scheme.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        check_places(device)?;
        let wanted = Wanted { path: "mapping.scheme", config, seed };
        let scheme = device.makers.provider(wanted)?.mapping(wanted, device).map_err(|cause| cause.to_string())?;
        Ok(External { who: format!("{} `{}`", wanted.path, config.name), scheme })
    }
}

impl Clone for External {
    fn clone(&self) -> External {
        External { who: self.who.clone(), scheme: self.scheme.fork() }
    }
}

impl Mapping for External {
    fn hooks(&self) -> Hooks {
        Hooks { places: true, ..Hooks::default() }
    }

    fn home(&self, ftl: &Ftl, lpn: Lpn) -> Option<PlaneId> {
        self.scheme.home(ftl, lpn)
    }

    fn target(&self, ftl: &Ftl, lpn: Lpn, number: Option<u32>) -> Option<Ppn> {
        self.scheme.target(ftl, lpn, number)
    }

    fn source_of(&self, ftl: &Ftl, ppn: Ppn) -> Option<Ppn> {
        self.scheme.source_of(ftl, ppn)
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(BlockId, u32)) {
        self.scheme.blocks(ftl, found);
    }

    fn shares(&self, ftl: &Ftl) -> Vec<Vec<Range<u32>>> {
        self.scheme.shares(ftl)
    }

    fn unwritten(&self) -> u64 {
        self.scheme.unwritten()
    }

    fn write_now(&mut self, ftl: &mut Ftl, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>) {
        self.scheme.write_now(ftl, lpn, old, contents);
    }

    fn trimmed_now(&mut self, ftl: &mut Ftl, lpn: Lpn) {
        self.scheme.trimmed_now(ftl, lpn);
    }

    fn seal(&mut self, ftl: &mut Ftl, written: &mut Written) {
        self.scheme.seal(ftl, written);
    }

    fn in_progress(&self, ftl: &Ftl) -> Option<String> {
        self.scheme.in_progress(ftl)
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(not_saved(&self.who)))
    }

    fn may_be_at(&self, ftl: &Ftl, lpn: Lpn, ppn: Ppn) -> bool {
        self.scheme.may_be_at(ftl, lpn, ppn)
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.scheme.recount(ftl)
    }

    fn describe(&self) -> String {
        self.scheme.describe()
    }
}

impl<C: Context + 'static> MappingInTime<C> for External {
    fn call(&mut self, cx: &mut C, call: Call) {
        self.scheme.call(cx, call);
    }

    fn stop(&mut self, cx: &mut C) {
        self.scheme.stop(cx);
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        self.scheme.place(cx, id);
    }

    fn bind_write(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.scheme.bind_write(cx, id)
    }

    fn bind_copies(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.scheme.bind_copies(cx, id)
    }

    fn copy_read(&mut self, cx: &mut C, number: u32) {
        self.scheme.copy_read(cx, number);
    }

    fn write_ended(&mut self, cx: &mut C, lpn: Lpn, start: Ppn) {
        self.scheme.write_ended(cx, lpn, start);
    }

    fn copies_ended(&mut self, cx: &mut C, number: u32, start: Ppn) {
        self.scheme.copies_ended(cx, number, start);
    }

    fn trimmed(&mut self, cx: &mut C, lpn: Lpn) {
        self.scheme.trimmed(cx, lpn);
    }

    fn erased(&mut self, cx: &mut C, plane: PlaneId) {
        self.scheme.erased(cx, plane);
    }
}
