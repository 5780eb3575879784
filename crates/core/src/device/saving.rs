//! Saved states: writes and loads an idle device; see docs/reference/state.md.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Write};

use serde::{Deserialize, Serialize};

use super::{Device, Options};
use crate::cache::Buffer;
use crate::config::{DeviceConfig, from_toml};
use crate::ftl::Ftl;
use crate::metrics::summary::Precondition;
use crate::nand::errors::ReadErrors;
use crate::sim::time::Time;
use crate::state::{Kind, Reader, Section, StateError, Writer, sections};

/// Header of a saved state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version of Floatgate that wrote the state.
    pub floatgate: String,
    /// Name of the device.
    pub device: String,
    /// Digest of the device with all its options.
    pub config_digest: String,
    /// Digest of the options that shape the contents of flash.
    pub media_digest: String,
    /// Digest of the options that shape the state of the policies.
    pub policy_digest: String,
    /// Seed of the random numbers of the device.
    pub seed: u64,
    /// Preconditioning that led to the state.
    pub precondition: Precondition,
    /// True if the state has the contents of every sector, for verification.
    pub contents: bool,
    /// Device file with all defaults written out.
    pub config: String,
}

impl Head {
    /// Reads the header of a saved state.
    pub fn read(input: &mut dyn Read) -> Result<Head, StateError> {
        Head::of_json(&Kind::Device.read_head(input)?)
    }

    /// Parses the text of the header.
    pub fn of_json(text: &str) -> Result<Head, StateError> {
        serde_json::from_str(text).map_err(|error| wrong(format!("invalid JSON: {error}")))
    }

    /// Returns the device that was saved.
    pub fn device(&self) -> Result<DeviceConfig, StateError> {
        from_toml(&self.config, "the device in the saved state", &[]).map_err(|error| wrong(error.to_string()))
    }

    /// Reads a whole saved state and checks every digest. Returns its header and the list of its sections.
    pub fn inspect_state(input: impl Read) -> Result<(Head, Vec<Section>), StateError> {
        let mut input = BufReader::new(input);
        let head = Head::read(&mut input)?;
        let sections = Head::inspect_body(&mut input)?;
        Reader::check_end(&mut input)?;
        Ok((head, sections))
    }

    /// Reads the rest of a saved state, after its header, and checks every digest. The input may continue after the
    /// state.
    pub fn inspect_body(input: &mut dyn BufRead) -> Result<Vec<Section>, StateError> {
        sections(input, &SECTIONS)
    }
}

fn wrong(what: String) -> StateError {
    StateError::Damaged { section: "head".to_owned(), what }
}

/// Names of all sections, in file order. A state has only the sections of the parts that its device has.
const SECTIONS: [&str; 18] = [
    "media/blocks",
    "policy/mapping",
    "media/map",
    "media/invalid",
    "media/sectors",
    "media/counts",
    "media/folding",
    "media/parity",
    "media/contents",
    "media/faults",
    "policy/allocation",
    "policy/trigger",
    "policy/temperature",
    "policy/victim",
    "media/journal",
    "media/checkpoint",
    "policy/turns",
    "media/errors",
];

impl Device {
    /// Returns the FTL to be saved: victims that wait for the next burst are collected in it. Returns an error if
    /// the device cannot be saved: only an idle device can.
    fn at_rest(&self) -> Result<Cow<'_, Ftl>, StateError> {
        let busy = |what: String| Err(StateError::Busy(format!("cannot save the device: {what}")));
        if self.ftl.is_read_only() {
            return busy("it is read-only and holds data that flash has no room for".to_owned());
        }
        let requests = self.interface.outstanding();
        if requests > 0 {
            return busy(format!("{requests} requests have not completed; advance the device until it is idle"));
        }
        if self.buffer().is_some_and(|buffer| !Buffer::is_clean(buffer)) {
            let what = "the buffer holds dirty data; send a flush, then advance the device until it is idle";
            return busy(what.to_owned());
        }
        if let Some(at) = self.array.next_event() {
            return busy(format!("an event is due at {} ps; advance the device until it is idle", at.ps()));
        }
        let assigned = || self.ftl.pools.as_ref()?.first_assigned();
        if let Some(plane) = self.jobs.first_working().or_else(assigned) {
            return busy(format!("garbage collection of plane {plane} has not completed"));
        }
        if self.durability.as_ref().is_some_and(|durability| durability.has_waiting_trims()) {
            return busy("trims are not journaled; send a flush, then advance the device until it is idle".to_owned());
        }
        let mut ftl = Cow::Borrowed(&self.ftl);
        if self.jobs.has_victims() {
            self.jobs.clone().finish_victims(ftl.to_mut(), self.now);
        }
        match ftl.in_progress() {
            Some(what) => Err(StateError::Busy(format!("cannot save the device: {what}"))),
            None => Ok(ftl),
        }
    }

    /// Creates a device in the state of this one, which must be idle, as if it was loaded from a saved state.
    pub fn in_same_state(&self, config: DeviceConfig, options: Options) -> Result<Device, StateError> {
        let ftl = self.at_rest()?;
        let differences = self.config.shape().differences(&config.shape());
        if !differences.is_empty() {
            return Err(StateError::Differs(differences));
        }
        let options = Options { verify: self.options.verify, ..options };
        let mut device = Device::new(config, options).map_err(StateError::Policy)?;
        device.ftl.copy_state(&ftl);
        device.durability.clone_from(&self.durability);
        device.dispatch.copy_state(&self.dispatch);
        device.array.copy_state(&self.array);
        if let (Some(errors), Some(of)) = (&mut device.errors, &self.errors) {
            errors.copy_state(of, self.now);
        }
        Ok(device)
    }

    /// Writes the state of an idle device: flash, map and policies. `precondition` records what led to the state.
    ///
    /// The clock and the results of measurements are not saved: a loaded device starts at time 0. Its buffer is empty.
    /// Clean data of the buffer are not saved, as in a power cycle.
    pub fn save(&self, precondition: &Precondition, mut out: impl Write) -> Result<(), StateError> {
        let ftl = self.at_rest()?;
        let [media_digest, policy_digest] = self.config.shape().digests();
        let config = toml::to_string(&self.config.resolved()).map_err(|error| StateError::Policy(error.to_string()))?;
        let head = Head {
            floatgate: env!("CARGO_PKG_VERSION").to_owned(),
            device: self.config.name.clone(),
            config_digest: self.config.digest(),
            media_digest,
            policy_digest,
            seed: self.options.seed,
            precondition: precondition.clone(),
            contents: self.options.verify,
            config,
        };
        let head = serde_json::to_string(&head).map_err(|error| StateError::Policy(error.to_string()))?;
        Kind::Device.write_head(&mut out, &head)?;
        let mut writer = Writer::new(&mut out)?;
        ftl.save(&mut writer)?;
        if let Some(durability) = &self.durability {
            durability.save(self.ftl.sequence, &mut writer)?;
        }
        writer.section("policy/turns", |out| {
            self.dispatch.save(out)?;
            out.u8(u8::from(self.durability.as_ref().is_some_and(|durability| durability.is_recovered)))?;
            self.array.save(out)
        })?;
        if let Some(errors) = &self.errors {
            writer.section("media/errors", |out| errors.save(self.now, out))?;
        }
        writer.finish()
    }

    /// Creates a device with options of its own from a state that [`Device::save`] wrote. Options that shape the state
    /// must agree with the saved ones. Returns the header of the state too.
    pub fn load(config: DeviceConfig, options: Options, input: impl Read) -> Result<(Device, Head), StateError> {
        let mut input = BufReader::new(input);
        let loaded = Device::load_part(config, options, &mut input)?;
        Reader::check_end(&mut input)?;
        Ok(loaded)
    }

    /// Creates a device like [`Device::load`] from an input that may continue after the state.
    pub fn load_part(
        config: DeviceConfig,
        options: Options,
        input: &mut dyn BufRead,
    ) -> Result<(Device, Head), StateError> {
        let head = Head::read(&mut &mut *input)?;
        let of = head.device()?;
        let saved = of.shape();
        let differences = saved.differences(&config.shape());
        if !differences.is_empty() {
            return Err(StateError::Differs(differences));
        }
        if saved.digests() != [head.media_digest.clone(), head.policy_digest.clone()] {
            return Err(wrong("its digests do not match its device".to_owned()));
        }
        if head.contents != options.verify {
            let has = head.contents;
            let wants = options.verify;
            return Err(wrong(format!("it has sector contents: {has}, but verification needs them: {wants}")));
        }
        let spare = config.units_to_spare();
        let mut device = Device::new(config, options).map_err(StateError::Policy)?;
        let mut reader = Reader::new(input)?;
        device.ftl.load(&mut reader, spare)?;
        if let Some(durability) = &mut device.durability {
            durability.load(&mut device.ftl, &mut reader)?;
        }
        reader.section("policy/turns", |input| {
            device.dispatch.load(input)?;
            match input.u8()? {
                0 => {}
                1 => device.durability.get_or_insert_default().is_recovered = true,
                _ => return Err(input.damaged("the flag of a recovered device is neither 0 nor 1")),
            }
            device.array.load(input)
        })?;
        if let Some(mut saved) = ReadErrors::new(&of, head.seed) {
            reader.section("media/errors", |input| saved.load(input))?;
            if let Some(errors) = &mut device.errors {
                errors.copy_state(&saved, Time::ZERO);
            }
        }
        reader.finish()?;
        Ok((device, head))
    }
}
