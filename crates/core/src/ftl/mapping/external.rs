//! External mapping scheme: supplied by the program that runs the device.

use std::fmt;

use super::{
    Bound, Change, Context, Ended, KeptBlock, LookUp, Mapping, Needs, Place, Program, Recovering, SchemeOptions,
    SchemeReport, Step, Target, WholeBlocks, check_places,
};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Cause, Externals, Fault, Guard, Outside, Wanted};
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

/// Forwards all calls to an external scheme, until it fails.
///
/// A scheme that has failed does nothing any more: its operations wait forever, and the caller ends the run.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalMapping>,
}

impl External {
    /// Builds the scheme.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        check_places(device)?;
        let wanted = Wanted { path: "mapping.scheme", config, device, seed };
        Ok(External { guard: Guard::new(externals, wanted)? })
    }

    /// Returns the fault of the scheme.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}

/// Target of all programs of a scheme that has failed.
const NOWHERE: Target = Target { plane: Some(PlaneId(0)), place: Place::Unknown };

impl<C: Context + ?Sized> Mapping<C> for External {
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
        self.guard.ask(|scheme| scheme.look_up(cx.as_dyn(), lpn, what)).unwrap_or(true)
    }

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        self.guard.ask(|scheme| scheme.changed(cx.as_dyn(), lpn, change));
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        self.guard.ask(|scheme| scheme.place(cx.as_dyn(), id));
    }

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        self.guard.look(|scheme| scheme.target(ftl, of)).unwrap_or(NOWHERE)
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.guard.ask(|scheme| scheme.bind(cx.as_dyn(), id)).flatten()
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        self.guard.ask(|scheme| scheme.ended(cx.as_dyn(), end)).unwrap_or(true)
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        self.guard.ask(|scheme| scheme.step(cx.as_dyn(), step));
    }

    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool) {
        self.guard.ask(|scheme| scheme.make_room(cx.as_dyn(), plane, freed));
    }

    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool {
        self.guard.look(|scheme| scheme.can_go_on(ftl, plane, hand)).unwrap_or(true)
    }

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        let recovered = self.guard.ask(|scheme| scheme.recover(found));
        recovered.unwrap_or_else(|| Err(self.guard.fault().map(ToString::to_string).unwrap_or_default()))
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        self.guard.ask(|scheme| scheme.load(ftl, input, written)).unwrap_or(Ok(()))
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.guard.look(|scheme| scheme.recount(ftl)).unwrap_or(Ok(()))
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        self.guard.look(|scheme| scheme.blocks(ftl, found));
    }

    fn report(&self, ftl: &Ftl) -> SchemeReport {
        self.guard.look(|scheme| scheme.report(ftl)).unwrap_or_default()
    }
}
