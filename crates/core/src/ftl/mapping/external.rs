//! External mapping scheme: supplied by the program that runs the device.

use std::fmt;

use super::{
    Bound, Change, Context, Ended, KeptBlock, LookUp, Mapping, Needs, Program, Recovering, SchemeOptions, SchemeReport,
    Step, Target, WholeBlocks, check_places,
};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Cause, Externals, Fault, Outside, Wanted, not_saved};
use crate::ftl::Ftl;
use crate::ftl::space::InHand;
use crate::sim::id::{Lpn, PlaneId, TransactionId};
use crate::state::{Reader, StateError, Writer};

impl SchemeOptions for Config {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        Needs {
            whole_blocks: Some(WholeBlocks::of_planes(device)),
            no_own_units: Some("external mapping schemes have no blocks for the units of the device itself"),
            no_faults: Some("failures are not modeled with external mapping schemes; remove the table"),
            no_classes: Some("external mapping schemes do not separate classes; choose temperature = \"none\""),
            ..Needs::default()
        }
    }
}

/// External mapping scheme. It keeps all blocks of data.
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
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
        self.scheme.policy_mut().look_up(cx.as_dyn(), lpn, what)
    }

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        self.scheme.policy_mut().changed(cx.as_dyn(), lpn, change);
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        self.scheme.policy_mut().place(cx.as_dyn(), id);
    }

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        self.scheme.policy().target(ftl, of)
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.scheme.policy_mut().bind(cx.as_dyn(), id)
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        self.scheme.policy_mut().ended(cx.as_dyn(), end)
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        self.scheme.policy_mut().step(cx.as_dyn(), step);
    }

    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool) {
        self.scheme.policy_mut().make_room(cx.as_dyn(), plane, freed);
    }

    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool {
        self.scheme.policy().can_go_on(ftl, plane, hand)
    }

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        self.scheme.policy_mut().recover(found)
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(not_saved(&self.who))
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        self.scheme.policy_mut().load(ftl, input, written)
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.scheme.policy().recount(ftl)
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        self.scheme.policy().blocks(ftl, found);
    }

    fn report(&self, ftl: &Ftl) -> SchemeReport {
        self.scheme.policy().report(ftl)
    }
}
