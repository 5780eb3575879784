//! External mapping scheme: supplied by the program that runs the device.

use std::fmt;

use super::{
    Bound, Context, Hooks, KeptBlock, Location, Mapping, Needs, SchemeOptions, SchemeReport, WholeBlocks, Written,
    check_places,
};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Cause, Externals, Fault, Outside, Wanted, not_saved};
use crate::ftl::Ftl;
use crate::sim::id::{Lpn, PlaneId, Ppn, TransactionId};
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

/// External mapping scheme. It has its own blocks, to which all host writes go, and takes part in the stages of a
/// device that [`Hooks::places`] names.
///
/// Unlike other policies, a scheme makes no choices that the device could check, but moves data. The checks of the
/// contract tests and runs with verification detect a scheme that loses data.
pub trait ExternalMapping: for<'a> Mapping<dyn Context + 'a> + fmt::Debug + Send + Sync {}

impl<T: for<'a> Mapping<dyn Context + 'a> + fmt::Debug + Send + Sync> ExternalMapping for T {}

impl<T: ExternalMapping + Clone + 'static> Outside<dyn ExternalMapping> for T {
    fn policy(&self) -> &(dyn ExternalMapping + 'static) {
        self
    }
    fn policy_mut(&mut self) -> &mut (dyn ExternalMapping + 'static) {
        self
    }
    fn error(&self) -> Option<&Cause> {
        None
    }
    fn copy(&self) -> Box<dyn Outside<dyn ExternalMapping>> {
        Box::new(self.clone())
    }
}

/// Forwards all calls to an external scheme.
pub struct External {
    who: String,
    scheme: Box<dyn Outside<dyn ExternalMapping>>,
}

impl External {
    /// Builds the scheme.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        check_places(device)?;
        let wanted = Wanted { path: "mapping.scheme", config, device, seed };
        let scheme = externals.build(wanted)?.map_err(|cause| cause.to_string())?;
        Ok(External { who: wanted.who(), scheme })
    }

    /// Returns `None`, because the choices of a scheme are not checked.
    pub fn fault(&self) -> Option<&Fault> {
        None
    }
}

impl Clone for External {
    fn clone(&self) -> External {
        External { who: self.who.clone(), scheme: self.scheme.copy() }
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.scheme.policy().fmt(f)
    }
}

impl<C: Context + ?Sized> Mapping<C> for External {
    fn hooks(&self) -> Hooks {
        Hooks { places: true, ..Hooks::default() }
    }

    fn home(&self, ftl: &Ftl, lpn: Lpn) -> Option<PlaneId> {
        self.scheme.policy().home(ftl, lpn)
    }

    fn target(&self, ftl: &Ftl, lpn: Lpn, number: Option<u32>) -> Option<Ppn> {
        self.scheme.policy().target(ftl, lpn, number)
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        self.scheme.policy().blocks(ftl, found);
    }

    fn report(&self, ftl: &Ftl) -> SchemeReport {
        self.scheme.policy().report(ftl)
    }

    fn write_now(&mut self, ftl: &mut Ftl, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>) {
        self.scheme.policy_mut().write_now(ftl, lpn, old, contents);
    }

    fn trimmed_now(&mut self, ftl: &mut Ftl, lpn: Lpn) {
        self.scheme.policy_mut().trimmed_now(ftl, lpn);
    }

    fn seal(&mut self, ftl: &mut Ftl, written: &mut Written) {
        self.scheme.policy_mut().seal(ftl, written);
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(not_saved(&self.who))
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.scheme.policy().recount(ftl)
    }

    fn call(&mut self, cx: &mut C, call: Call) {
        self.scheme.policy_mut().call(cx.as_dyn(), call);
    }

    fn stop(&mut self, cx: &mut C) {
        self.scheme.policy_mut().stop(cx.as_dyn());
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        self.scheme.policy_mut().place(cx.as_dyn(), id);
    }

    fn bind_write(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.scheme.policy_mut().bind_write(cx.as_dyn(), id)
    }

    fn bind_copies(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.scheme.policy_mut().bind_copies(cx.as_dyn(), id)
    }

    fn copy_read(&mut self, cx: &mut C, number: u32) {
        self.scheme.policy_mut().copy_read(cx.as_dyn(), number);
    }

    fn write_ended(&mut self, cx: &mut C, lpn: Lpn, start: Ppn) {
        self.scheme.policy_mut().write_ended(cx.as_dyn(), lpn, start);
    }

    fn copies_ended(&mut self, cx: &mut C, number: u32, start: Ppn) {
        self.scheme.policy_mut().copies_ended(cx.as_dyn(), number, start);
    }

    fn trimmed(&mut self, cx: &mut C, lpn: Lpn) {
        self.scheme.policy_mut().trimmed(cx.as_dyn(), lpn);
    }

    fn erased(&mut self, cx: &mut C, plane: PlaneId) {
        self.scheme.policy_mut().erased(cx.as_dyn(), plane);
    }
}
