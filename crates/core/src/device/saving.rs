//! Saving and loading a device: see docs/reference/state.md.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::{Device, Options};
use crate::cache::Buffer;
use crate::config::{DeviceConfig, from_toml};
use crate::metrics::summary::Precondition;
use crate::state::{Reader, Section, StateError, Writer, read_head, sections, write_head};

/// What a file says of the state in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of Floatgate that wrote it.
    pub floatgate: String,
    /// The device's name.
    pub device: String,
    /// The digest of the device, with all its options.
    pub config_digest: String,
    /// The digest of the options that shape what is in flash.
    pub media_digest: String,
    /// The digest of the options that shape what the policies know.
    pub policy_digest: String,
    /// The seed of the device's random numbers.
    pub seed: u64,
    /// Where the state comes from.
    pub precondition: Precondition,
    /// Whether it has the contents of every sector, for verification.
    pub contents: bool,
    /// The device file, with defaults written down.
    pub config: String,
}

impl Head {
    /// Reads the head of a file.
    pub fn read(input: &mut dyn Read) -> Result<Head, StateError> {
        let text = read_head(input)?;
        serde_json::from_str(&text).map_err(|error| wrong(format!("its JSON: {error}")))
    }

    /// The device that was saved.
    pub fn device(&self) -> Result<DeviceConfig, StateError> {
        from_toml(&self.config, "the device in the saved state", &[]).map_err(|error| wrong(error.to_string()))
    }
}

fn wrong(what: String) -> StateError {
    StateError::Damaged { section: "head".to_owned(), what }
}

/// Reads a file through, and checks every digest: what it is of, and what it holds.
pub fn inspect_state(mut input: impl Read) -> Result<(Head, Vec<Section>), StateError> {
    let head = Head::read(&mut input)?;
    Ok((head, sections(&mut input, &SECTIONS)?))
}

/// The names of all sections, in their order. A device has those of the parts that it has.
const SECTIONS: [&str; 15] = [
    "media/blocks",
    "policy/mapping",
    "media/map",
    "media/stale",
    "media/sectors",
    "media/counts",
    "media/contents",
    "media/faults",
    "policy/allocation",
    "policy/trigger",
    "policy/temperature",
    "policy/victim",
    "media/journal",
    "media/checkpoint",
    "policy/turns",
];

impl Device {
    /// What is in progress, if anything is: a device is saved at rest.
    fn in_progress(&self) -> Option<String> {
        if self.ftl.is_read_only() {
            let what = "it takes no writes any more, and holds what flash has no room for";
            return Some(what.to_owned());
        }
        let requests = self.outstanding();
        if requests > 0 {
            return Some(format!("{requests} requests have not completed: advance until they have"));
        }
        if self.buffer().is_some_and(|buffer| !Buffer::is_clean(buffer)) {
            let what =
                "the buffer holds what flash does not have: send a flush, and advance until nothing is in progress";
            return Some(what.to_owned());
        }
        if let Some(at) = self.next_event_time() {
            return Some(format!("something happens at {} ps: advance until nothing is in progress", at.ps()));
        }
        if let Some(plane) = self.jobs.iter().position(|job| !job.is_idle()) {
            return Some(format!("cleaning of plane {plane} has units in hand"));
        }
        if self.durability.as_ref().is_some_and(|durability| durability.has_waiting_trims()) {
            return Some("trims are not journalled: send a flush, and advance until nothing is in progress".to_owned());
        }
        self.ftl.in_progress()
    }

    /// Whether a device is at rest; if not, what is in progress.
    fn at_rest(&self) -> Result<(), StateError> {
        self.in_progress().map_or(Ok(()), |what| {
            Err(StateError::Busy(format!("a device is saved at rest, and this one is not: {what}")))
        })
    }

    /// Another device in the state of this one, which is at rest: as one that is loaded from its file.
    pub fn in_same_state(&self, config: DeviceConfig, options: Options) -> Result<Device, StateError> {
        self.at_rest()?;
        let differences = self.config.shape().differences(&config.shape());
        if !differences.is_empty() {
            return Err(StateError::Differs(differences));
        }
        let options = Options { verify: self.options.verify, ..options };
        let mut device = Device::new(config, options).map_err(StateError::Policy)?;
        device.ftl.copy_state(&self.ftl);
        device.durability.clone_from(&self.durability);
        device.dispatch.copy_state(&self.dispatch);
        device.array.copy_state(&self.array);
        Ok(device)
    }

    /// Writes the state of a device at rest: flash, map and policies. `precondition` says where it comes from.
    ///
    /// The clock, and what was measured over time, is not part of it: the device that is loaded begins at 0. Its buffer
    /// is empty: what it holds that flash holds too is forgotten, as over a power cycle.
    pub fn save(&self, precondition: &Precondition, mut out: impl Write) -> Result<(), StateError> {
        self.at_rest()?;
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
        write_head(&mut out, &head)?;
        let mut writer = Writer::new(&mut out)?;
        self.ftl.save(&mut writer)?;
        if let Some(durability) = &self.durability {
            durability.save(self.ftl.sequence, &mut writer)?;
        }
        writer.section("policy/turns", |out| {
            self.dispatch.save(out)?;
            out.u8(u8::from(self.durability.as_ref().is_some_and(|durability| durability.is_recovered)))?;
            self.array.save(out)
        })?;
        writer.finish()
    }

    /// A device in a state that [`Device::save`] wrote: its own options, with which those that shaped the state must
    /// agree, and what the file says of where the state comes from.
    pub fn load(config: DeviceConfig, options: Options, mut input: impl Read) -> Result<(Device, Head), StateError> {
        let head = Head::read(&mut input)?;
        let device = Device::load_body(config, options, &head, &mut input)?;
        Ok((device, head))
    }

    /// The same as the device that was saved.
    pub fn load_as_saved(options: Options, mut input: impl Read) -> Result<(Device, Head), StateError> {
        let head = Head::read(&mut input)?;
        let device = Device::load_body(head.device()?, options, &head, &mut input)?;
        Ok((device, head))
    }

    fn load_body(
        config: DeviceConfig,
        options: Options,
        head: &Head,
        input: &mut dyn Read,
    ) -> Result<Device, StateError> {
        let saved = head.device()?.shape();
        let differences = saved.differences(&config.shape());
        if !differences.is_empty() {
            return Err(StateError::Differs(differences));
        }
        if saved.digests() != [head.media_digest.clone(), head.policy_digest.clone()] {
            return Err(wrong("its digests are not those of its device".to_owned()));
        }
        if head.contents != options.verify {
            let (has, wants) = (head.contents, options.verify);
            return Err(wrong(format!("it has the contents of sectors: {has}, and they are verified: {wants}")));
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
                _ => return Err(input.damaged("whether it was recovered is neither yes nor no")),
            }
            device.array.load(input)
        })?;
        reader.finish()?;
        Ok(device)
    }
}
