//! Page mapping: the whole map is in the controller's memory, and a unit may be anywhere. No block is kept.

use super::{
    Bound, Change, Context, Ended, KeptBlock, LookUp, Mapping, Place, Program, Recovering, SchemeOptions, SchemeReport,
    Step, Target,
};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::space::{InHand, Role};
use crate::policy::Policy;
use crate::sim::id::{Lpn, PlaneId, TransactionId};
use crate::state::{Reader, StateError, Writer};

/// Page mapping has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageConfig {}

impl SchemeOptions for PageConfig {}

/// The whole map is in memory, so a look-up takes no time.
#[derive(Clone, Debug)]
pub struct Page;

impl Policy for Page {
    type Config = PageConfig;
    fn new(_: &PageConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Page)
    }
}

impl<C: Context + ?Sized> Mapping<C> for Page {
    fn look_up(&mut self, _: &mut C, _: Lpn, _: LookUp) -> bool {
        true
    }

    fn changed(&mut self, _: &mut C, _: Lpn, _: Change) {}

    fn place(&mut self, _: &mut C, _: TransactionId) {}

    #[inline(always)]
    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        let plane = match of {
            Program::Write(lpn) => ftl.allocation.home(ftl.shape().units_per_stripe.divide(lpn.0)),
            Program::Copies(_) => None,
        };
        Target { plane, place: Place::Frontier }
    }

    fn bind(&mut self, _: &mut C, _: TransactionId) -> Option<Bound> {
        None
    }

    fn ended(&mut self, _: &mut C, _: Ended) -> bool {
        true
    }

    fn step(&mut self, _: &mut C, _: Step) {}

    fn make_room(&mut self, _: &mut C, _: PlaneId, _: bool) {}

    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool {
        ftl.blocks.is_sure(ftl.blocks.region(plane, Role::Data), hand)
    }

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        found.close()
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    fn load(&mut self, _: &mut Ftl, _: &mut Reader, _: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }

    fn recount(&self, _: &Ftl) -> Result<(), String> {
        Ok(())
    }

    fn blocks(&self, _: &Ftl, _: &mut dyn FnMut(KeptBlock)) {}

    fn report(&self, _: &Ftl) -> SchemeReport {
        SchemeReport::default()
    }
}
