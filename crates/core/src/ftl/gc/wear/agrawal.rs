//! Wear leveling of Agrawal et al. 2008, Section 5: cold data are moved into worn blocks, and worn blocks are erased
//! less often.

use super::life::Life;
use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::{ColdOrder, RegionView};
use crate::policy::Policy;
use crate::sim::id::BlockId;
use crate::sim::rng::Rng;
use crate::state::{Reader, StateError, Writer};

/// Method to find cold data.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColdData {
    /// Takes the block that was erased longest ago and has enough remaining life.
    #[default]
    LastErase,
    /// Takes the block whose contents the host wrote longest ago. The time travels with the data.
    Temperature,
}

/// Options of the policy. Each part can be used alone.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgrawalConfig {
    /// Moves cold data into victims that are worn.
    pub migration: bool,
    /// Erases worn victims with a lower probability.
    pub rate_limiting: bool,
    /// Remaining life of a victim, as a share of the mean, below which it is filled with cold data.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub retirement_age: f64,
    /// Remaining life of a victim, as a share of the mean, below which its probability of being erased falls linearly,
    /// to 0 at the end of its life.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub age_variance: f64,
    /// Method to find cold data.
    pub cold: ColdData,
    /// Lowest remaining life of a block with cold data, as a share of the mean.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub cold_life: f64,
    /// Shortest time since the last erase of a block with cold data, in drive writes of the host.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub cold_age: f64,
    /// Lowest share of valid units in a block with cold data, so that migrations are not wasted.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cold_valid: f64,
}

impl Default for AgrawalConfig {
    fn default() -> Self {
        AgrawalConfig {
            migration: true,
            rate_limiting: true,
            retirement_age: 0.85,
            age_variance: 0.80,
            cold: ColdData::LastErase,
            cold_life: 1.0,
            cold_age: 1.0,
            cold_valid: 0.0,
        }
    }
}

/// Moves cold data into worn victims, and erases worn victims less often.
#[derive(Clone, Debug)]
pub struct Agrawal {
    options: AgrawalConfig,
    life: Life,
    /// `cold_age` in units of the host.
    cold_age: u64,
    rng: Rng,
}

impl Policy for Agrawal {
    type Config = AgrawalConfig;

    fn check(options: &AgrawalConfig, device: &DeviceConfig) -> Result<(), String> {
        Life::new(device)?;
        if !options.migration && !options.rate_limiting {
            return Err("migration and rate_limiting are both false, so wear would not be leveled; \
                        use gc.wear = \"none\", or set one of them to true"
                .to_owned());
        }
        Ok(())
    }

    fn new(options: &AgrawalConfig, device: &DeviceConfig, seed: u64) -> Result<Self, String> {
        Agrawal::check(options, device)?;
        Ok(Agrawal {
            options: options.clone(),
            life: Life::new(device)?,
            cold_age: (options.cold_age * device.logical_units() as f64) as u64,
            rng: Rng::new(seed, "wear-rate"),
        })
    }
}

impl Agrawal {
    /// Returns the block whose data are moved into a worn block.
    fn cold_block(&self, view: &RegionView) -> Option<BlockId> {
        view.cold_blocks().take_while(|&block| self.is_settled(view, block)).find(|&block| {
            let lives = self.life.ratio(view, view.erases(block)) >= self.options.cold_life;
            lives && f64::from(view.valid(block)) >= self.options.cold_valid * f64::from(view.units())
        })
    }

    /// Returns `true` if a block, and the ones before it in their order, may have cold data.
    fn is_settled(&self, view: &RegionView, block: BlockId) -> bool {
        self.options.cold == ColdData::Temperature || view.clock() - view.last_erase(block) >= self.cold_age
    }
}

impl WearPolicy for Agrawal {
    fn needs(&self) -> Needs {
        let order = match self.options.cold {
            ColdData::LastErase => ColdOrder::LastErase,
            ColdData::Temperature => ColdOrder::Temperature,
        };
        Needs { cold: self.options.migration.then_some(order), ..Needs::default() }
    }

    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool {
        let ratio = self.life.ratio(view, view.erases(victim));
        if !self.options.rate_limiting || ratio >= self.options.age_variance {
            return true;
        }
        // Migration takes precedence.
        if self.options.migration && ratio < self.options.retirement_age && self.cold_block(view).is_some() {
            return true;
        }
        self.rng.unit() * self.options.age_variance < ratio
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        // The remaining life at the choice of the victim counts.
        let ratio = self.life.ratio(view, view.erases(block) - 1);
        if self.options.migration && ratio < self.options.retirement_age { self.cold_block(view) } else { None }
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.rng.words().iter().try_for_each(|&word| out.u64(word))
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = input.u64()?;
        }
        self.rng = Rng::from_words(words).ok_or_else(|| input.damaged("the random numbers of wear leveling"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_toml;
    use crate::ftl::Ftl;
    use crate::ftl::space::Role;
    use crate::sim::id::{Lpn, PlaneId};

    const DEVICE: &str = r#"
        geometry = { channels = 1, chips = 1, dies = 1, planes = 1, blocks = 32, pages = 8, page_size = "4KiB" }
        capacity.spare = 0.5
        nand = { read = "25us", program = "200us", erase = "1500us", endurance = 100 }
        bus.protocol.sdr = "25ns"
        gc.soft_threshold = 2
    "#;

    /// Returns a device whose blocks with hot data are worn.
    fn worn() -> Ftl {
        let device = from_toml(DEVICE, "test.toml", &[]).unwrap();
        let mut ftl = Ftl::new(&device, 1, false, &Default::default()).unwrap();
        (0..128).for_each(|lpn| ftl.write_whole(Lpn(lpn)));
        (0..9000).for_each(|index| ftl.write_whole(Lpn(index % 8)));
        ftl
    }

    #[test]
    fn a_worn_victim_is_allowed_with_its_share_of_the_remaining_life() {
        let ftl = worn();
        let device = from_toml(DEVICE, "test.toml", &[]).unwrap();
        let view = ftl.blocks.view(ftl.blocks.region(PlaneId(0), Role::Data));
        let options = AgrawalConfig { migration: false, ..AgrawalConfig::default() };
        let mut policy = Agrawal::new(&options, &device, 7).unwrap();
        let victim = view.closed_blocks().max_by_key(|&block| view.erases(block)).unwrap();
        let mean: f64 = ftl.blocks.all().iter().map(|block| f64::from(block.erases)).sum::<f64>() / 32.0;
        let ratio = (100.0 - f64::from(view.erases(victim))) / (100.0 - mean);
        assert!(ratio > 0.1 && ratio < 0.7, "{ratio}");
        let draws = 20_000;
        let allowed = (0..draws).filter(|_| policy.allows(&view, victim)).count();
        let expected = ratio / 0.8;
        let share = allowed as f64 / f64::from(draws);
        // Three standard deviations of a mean of 20,000 draws.
        assert!(
            (share - expected).abs() < 3.0 * (expected * (1.0 - expected) / f64::from(draws)).sqrt(),
            "{share}, {expected}"
        );
        // A block of mean wear is always allowed.
        let unworn = view.closed_blocks().min_by_key(|&block| view.erases(block)).unwrap();
        assert!((0..1000).all(|_| policy.allows(&view, unworn)));
    }
}
