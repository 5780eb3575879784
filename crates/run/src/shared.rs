//! State before the runs of several seeds, which is prepared once if it does not depend on the seed.

use std::sync::{Arc, Mutex, PoisonError};

use floatgate_array::AnySsd;
use floatgate_core::device_file::Scale;
use floatgate_core::preparation::Precondition as State;
use floatgate_core::summary::Precondition;

use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::frontend::Quiet;
use crate::memory::{self, Use};
use crate::preparation::array_options;
use crate::simulated::prepare_any;
use crate::spec::{RunSpec, StateSpec};
use crate::state::in_same_state;

/// State before the runs of several seeds. The first run prepares it, and the others start from copies.
#[derive(Default)]
pub struct SharedState(Mutex<Option<Arc<(AnySsd, Precondition)>>>);

impl SharedState {
    /// Creates a state for runs that differ only in their seeds. `None` if each run has to prepare its own state, or if
    /// there is nothing to prepare.
    pub fn new(chosen: &LoadedDevice, requested: &StateSpec) -> Option<SharedState> {
        let is_shared = requested.precondition().is_some_and(|text| is_equal_for_all_seeds(chosen, text));
        is_shared.then(SharedState::default)
    }

    /// Brings the SSD of a run, which is new, into the state: by `prepare` in the first run, by a copy in the others.
    pub(crate) fn bring(
        &self,
        ssd: &mut AnySsd,
        chosen: &LoadedDevice,
        spec: &RunSpec,
        prepare: impl FnOnce(&mut AnySsd) -> Result<Precondition, Failure>,
    ) -> Result<Precondition, Failure> {
        let options = array_options(chosen, spec.seed, spec.attribution);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = kept.clone() {
            drop(kept);
            *ssd = in_same_state(&prepared.0, chosen, options).map_err(Failure::mistake)?;
            return Ok(prepared.1.clone());
        }
        let state = prepare(ssd)?;
        // Without enough memory for one more device, each run prepares its own.
        if memory::check(chosen, &options.of_member(spec.seed), Use::Filled).is_ok() {
            *kept = Some(Arc::new((ssd.clone(), state.clone())));
        }
        Ok(state)
    }
}

/// Returns `true` if preconditioning does work, and leads to equal states with all seeds.
///
/// Neither `fill`, `aged` nor `invalid` draws random numbers, but the device may. The state of a new device contains
/// the random number streams of its policies and faults, so if it is equal for two seeds, the device draws none. That
/// does not depend on the number of blocks, so a device with few of them is asked.
pub fn is_equal_for_all_seeds(chosen: &LoadedDevice, requested: &str) -> bool {
    let is_drawn = !matches!(requested.parse(), Ok(State::Fill | State::Aged(_) | State::Invalid(_)));
    let members = chosen.array.as_ref().map_or(std::slice::from_ref(&chosen.config), |array| &array.members);
    // An external policy may draw numbers that are not part of its saved state.
    let has_externals = members.iter().any(|member| !member.externals().is_empty());
    !is_drawn && !has_externals && is_equal_when_new(chosen).unwrap_or(false)
}

/// Returns `true` if new devices of two seeds have equal states. `None` if that is unknown, because a device cannot be
/// built or saved.
fn is_equal_when_new(chosen: &LoadedDevice) -> Option<bool> {
    const SEEDS: [u64; 2] = [1, 2];
    let few = (1..16).rev().find_map(|power| chosen.config.scaled(Scale::one_of(1 << power)).ok());
    let few = few.filter(|_| chosen.array.is_none()).map(|few| LoadedDevice { config: few.device, ..chosen.clone() });
    let chosen = few.as_ref().unwrap_or(chosen);
    let options = |seed| array_options(chosen, seed, false);
    let new = |seed| prepare_any(chosen, chosen.array.as_deref(), options(seed), "none", &Quiet).ok();
    let saved = |ssd: &AnySsd, state: &Precondition| {
        let mut bytes = Vec::new();
        ssd.save(state, &mut bytes).ok()?;
        Some(bytes)
    };
    let (first, state) = new(SEEDS[0])?;
    let first = saved(&first, &state)?;
    let (second, state) = new(SEEDS[1])?;
    // The header of a saved state has the seed of the device.
    let second = in_same_state(&second, chosen, options(SEEDS[0])).ok()?;
    Some(first == saved(&second, &state)?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use floatgate_core::simulation::Progress;
    use floatgate_workload::file::Stop;

    use super::*;
    use crate::device::DeviceSpec;
    use crate::frontend::Frontend;
    use crate::output::Wait;
    use crate::seeds::SeedRuns;
    use crate::session::Session;
    use crate::traces::Traces;

    /// Frontend that counts preparations.
    #[derive(Default)]
    struct Counting(Cell<u32>);

    impl Frontend for Counting {
        fn begin(&self, what: &'static str) {
            self.0.set(self.0.get() + u32::from(what == "preconditioning"));
        }

        fn share(&self, _: f64) {}

        fn progress(&self, _: &Progress, _: Option<f64>) {}

        fn end(&self) {}

        fn warn(&self, _: &str) {}

        fn wants_end(&self) -> bool {
            false
        }

        fn stop(&self) -> Stop {
            Stop::default()
        }

        fn wait(&self) -> Wait {
            Wait::default()
        }
    }

    const ARRAY: &str = "[array]\nlevel = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"16KiB\"\n";
    const JOB: &str = "rw=randrw bs=4k iodepth=8 number_ios=4000";

    fn result(session: Session, frontend: &dyn Frontend) -> String {
        let mut summary = session.run_into_directory(frontend).unwrap().summary;
        summary.run = None;
        summary.to_json()
    }

    /// Runs with three seeds. Returns the number of preparations, after comparing the results with those of runs that
    /// share nothing.
    fn preparations(device: DeviceSpec, state: &str) -> u32 {
        let state = StateSpec::Precondition(state.to_owned());
        let seeds = Some("1,2,9".parse().unwrap());
        let spec = RunSpec { state, seeds, ..RunSpec::new(device, vec![JOB.to_owned()]) };
        let (traces, chosen) = (Traces::default(), spec.device.load().unwrap());
        let (runs, counting) = (SeedRuns::open(&spec, &traces, &chosen).unwrap(), Counting::default());
        for spec in runs.specs() {
            let open = || Session::open(spec, &traces, chosen.clone(), &Quiet).unwrap();
            let (shared, alone) = (open().with_shared(runs.shared()), open());
            assert_eq!(result(shared, &counting), result(alone, &Quiet), "{:?}, seed {}", spec.device, spec.seed);
        }
        counting.0.get()
    }

    fn tiny(overrides: &[&str]) -> DeviceSpec {
        let small = ["geometry.blocks=16", "capacity.spare=0.5"];
        DeviceSpec::named("tiny", &small.iter().chain(overrides).map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn seeds_share_a_state_that_does_not_depend_on_them() {
        let devices: [&[&str]; 5] = [
            &[],
            &["allocation=dynamic"],
            &["buffer.capacity=256KiB"],
            &["durability.trim_journal=true"],
            &["gc.wear=dual-pool"],
        ];
        for options in devices {
            assert_eq!(preparations(tiny(options), "fill"), 1, "{options:?}");
        }
        // The members of an array are prepared one after the other.
        assert_eq!(preparations(DeviceSpec::text(ARRAY, "raid5.toml", &[]), "fill"), 4);
        assert_eq!(preparations(tiny(&[]), "aged=0.1"), 1);
        assert_eq!(preparations(tiny(&[]), "invalid=0.3"), 1);
    }

    #[test]
    fn each_seed_prepares_a_state_that_depends_on_it() {
        let devices: [&[&str]; 5] = [
            &["gc.victim=random"],
            &["gc.victim=d-choices"],
            &["gc.wear=agrawal"],
            &["faults.factory_bad=1"],
            &["faults={}", "errors.age=3 months"],
        ];
        for options in devices {
            assert_eq!(preparations(tiny(options), "fill"), 3, "{options:?}");
        }
        for state in ["steady", "none", "rw=randwrite bs=4k number_ios=100"] {
            assert_eq!(preparations(tiny(&[]), state), 3, "{state}");
        }
    }
}
