//! Saved states of arrays: a header, followed by the states of the members; see docs/reference/state.md.

use std::io::{BufRead, BufReader, Read, Write};

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::saved_state::{Difference, Head, Kind, Reader, Section, StateError};
use floatgate_core::sim::request::SECTOR;
use floatgate_core::simulation::{Device, Options as DeviceOptions, Ssd};
use floatgate_core::summary::Precondition;
use serde::{Deserialize, Serialize};

use crate::array::{Options, SsdArray};
use crate::config::{ArrayConfig, ArrayOptions, JOURNAL_AREA};

/// Checked state of a member or of a single SSD: its header and its sections.
pub type Inspected = (Head, Vec<Section>);

/// Header of the saved state of an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayHead {
    /// Version of Floatgate that wrote the state.
    pub floatgate: String,
    /// Name of the array.
    pub device: String,
    /// Digest of the array with all its options.
    pub config_digest: String,
    /// Seed of the random numbers of the array.
    pub seed: u64,
    /// Preconditioning that led to the state.
    pub precondition: Precondition,
    /// Options of the array.
    pub options: ArrayOptions,
    /// Names of the members' devices.
    pub members: Vec<String>,
    /// Members that had failed. The file has no states of them.
    pub failed: Vec<u32>,
    /// Position of the next entry in the journal area of each member, in sectors.
    pub journal: Vec<u64>,
    /// Array file with its overrides. Paths of members are relative to the original file.
    pub config: String,
}

fn wrong(what: String) -> StateError {
    StateError::Damaged { section: "head".to_owned(), what }
}

/// Adds the number of the member to an error.
fn of_member(number: usize) -> impl Fn(StateError) -> StateError {
    move |error| match error {
        StateError::Io(error) => StateError::Io(error),
        error => StateError::Part { part: format!("member {number}"), error: Box::new(error) },
    }
}

/// Checks that the file has a state of a member next.
fn expect_member(number: usize, input: &mut dyn BufRead) -> Result<(), StateError> {
    if input.fill_buf()?.is_empty() { Err(StateError::Ends(format!("member {number}"))) } else { Ok(()) }
}

impl ArrayHead {
    /// Reads the header of a saved state.
    pub fn read(input: &mut dyn Read) -> Result<ArrayHead, StateError> {
        ArrayHead::of_json(&Kind::Array.read_head(input)?)
    }

    /// Parses the text of the header.
    pub fn of_json(text: &str) -> Result<ArrayHead, StateError> {
        let head: ArrayHead = serde_json::from_str(text).map_err(|error| wrong(format!("invalid JSON: {error}")))?;
        let is_outside = |position: &u64| *position > JOURNAL_AREA / SECTOR;
        if head.journal.len() != head.members.len() || head.journal.iter().any(is_outside) {
            return Err(wrong("invalid positions in the stripe journal".to_owned()));
        }
        Ok(head)
    }

    /// Returns `true` if the file has a state of a member.
    fn has(&self, number: usize) -> bool {
        !self.failed.contains(&(number as u32))
    }

    /// Reads the states of the members after the header, and checks every digest. Failed members have none.
    pub fn inspect_members(&self, input: impl Read) -> Result<Vec<Option<Inspected>>, StateError> {
        let mut input = BufReader::new(input);
        let inspected = (0..self.members.len()).map(|number| {
            if !self.has(number) {
                return Ok(None);
            }
            expect_member(number, &mut input)?;
            let head = Head::read(&mut input).map_err(of_member(number))?;
            Ok(Some((head, Head::inspect_body(&mut input).map_err(of_member(number))?)))
        });
        let inspected = inspected.collect::<Result<_, StateError>>()?;
        Reader::check_end(&mut input)?;
        Ok(inspected)
    }
}

/// Checks that an array has the layout of a saved one, and that its failed members include the saved ones. The options
/// of members are compared with their own states.
fn check(saved: &ArrayOptions, members: usize, failed: &[u32], config: &ArrayConfig) -> Result<(), StateError> {
    let shaping = |options: &ArrayOptions, members: usize| {
        let write_hole = serde_json::to_value(options.write_hole).unwrap_or_default();
        [
            ("array.level", options.level.to_string()),
            ("array.count", members.to_string()),
            ("array.stripe", options.stripe.to_string()),
            ("array.write_hole", write_hole.as_str().unwrap_or_default().to_owned()),
        ]
    };
    let pairs = shaping(saved, members).into_iter().zip(shaping(&config.options, config.members.len()));
    let pairs = pairs.filter(|((_, saved), (_, requested))| saved != requested);
    let mut differences: Vec<Difference> =
        pairs.map(|((path, saved), (_, requested))| Difference { path: path.to_owned(), saved, requested }).collect();
    let requested = &config.options.failed;
    if failed.iter().any(|member| !requested.contains(member)) {
        let [saved, requested] = [failed, requested].map(|members| format!("{members:?}"));
        differences.push(Difference { path: "array.failed".to_owned(), saved, requested });
    }
    if differences.is_empty() { Ok(()) } else { Err(StateError::Differs(differences)) }
}

impl SsdArray {
    /// Returns the reason why the array cannot be saved, if there is one.
    fn in_progress(&self) -> Option<String> {
        if self.options.verify {
            return Some("the contents of its sectors are verified, and cannot be saved".to_owned());
        }
        if self.outstanding() > 0 {
            let requests = self.outstanding();
            return Some(format!("{requests} requests have not completed; advance it until it is idle"));
        }
        let at = self.next_event()?;
        Some(format!("an event is due at {} ps; advance it until it is idle", at.ps()))
    }

    fn at_rest(&self) -> Result<(), StateError> {
        self.in_progress().map_or(Ok(()), |what| Err(StateError::Busy(format!("cannot save the array: {what}"))))
    }

    /// Returns the numbers of the members that have failed and were not rebuilt.
    pub(crate) fn failed_members(&self) -> Vec<u32> {
        (0..self.layout.members()).filter(|member| self.has_failed(*member as usize)).collect()
    }

    /// Writes the state of an idle array: the states of the members that have not failed, and the positions in the
    /// stripe journal. `precondition` records what led to the state.
    ///
    /// The clock, the turns to collect garbage, and the results of measurements are not saved.
    pub fn save(&self, precondition: &Precondition, mut out: impl Write) -> Result<(), StateError> {
        self.at_rest()?;
        let head = ArrayHead {
            floatgate: env!("CARGO_PKG_VERSION").to_owned(),
            device: self.config.name.clone(),
            config_digest: self.config.digest(),
            seed: self.options.seed,
            precondition: precondition.clone(),
            options: self.config.options.clone(),
            members: self.config.members.iter().map(|member| member.name.clone()).collect(),
            failed: self.failed_members(),
            journal: self.members.iter().map(|member| member.journal_at).collect(),
            config: self.config.to_toml(),
        };
        let text = serde_json::to_string(&head).map_err(|error| StateError::Policy(error.to_string()))?;
        Kind::Array.write_head(&mut out, &text)?;
        for (number, member) in self.members.iter().enumerate().filter(|(number, _)| head.has(*number)) {
            member.device.save(precondition, &mut out).map_err(of_member(number))?;
        }
        Ok(())
    }

    /// Creates an array with options of its own from a state that [`SsdArray::save`] wrote. Options that shape the
    /// state must agree with the saved ones. Members that have failed are replaced by empty ones. Returns the header of
    /// the state too.
    pub fn load(config: ArrayConfig, options: Options, input: impl Read) -> Result<(SsdArray, ArrayHead), StateError> {
        let mut input = BufReader::new(input);
        let head = ArrayHead::read(&mut input)?;
        check(&head.options, head.members.len(), &head.failed, &config)?;
        let array = SsdArray::from_states(config, options, &head.journal, |number, device, options| {
            if !head.has(number) {
                return Ok(None);
            }
            expect_member(number, &mut input)?;
            let (device, _) = Device::load_part(device, options, &mut input).map_err(of_member(number))?;
            Ok(Some(device))
        })?;
        Reader::check_end(&mut input)?;
        Ok((array, head))
    }

    /// Creates an array in the state of this one, which must be idle, as if it was loaded from a saved state.
    pub fn in_same_state(&self, config: ArrayConfig, options: Options) -> Result<SsdArray, StateError> {
        self.at_rest()?;
        check(&self.config.options, self.members.len(), &self.failed_members(), &config)?;
        let journal: Vec<u64> = self.members.iter().map(|member| member.journal_at).collect();
        SsdArray::from_states(config, options, &journal, |number, device, options| {
            let from = &self.members[number].device;
            Ok(Some(from.in_same_state(device, options).map_err(of_member(number))?))
        })
    }

    /// Creates an array whose members are the devices that `member` returns. Members that have failed are empty.
    fn from_states(
        config: ArrayConfig,
        options: Options,
        journal: &[u64],
        mut member: impl FnMut(usize, DeviceConfig, DeviceOptions) -> Result<Option<Device>, StateError>,
    ) -> Result<SsdArray, StateError> {
        let seeded = SsdArray::seeded(&config, &options).into_iter().enumerate();
        let members = seeded.map(|(number, (device, options))| {
            let found = member(number, device.clone(), options.clone())?;
            let found = found.filter(|_| !config.options.failed.contains(&(number as u32)));
            let empty = || Device::new(device, options).map_err(StateError::Policy).map_err(of_member(number));
            found.map_or_else(empty, Ok)
        });
        let members = members.collect::<Result<Vec<_>, StateError>>()?;
        let mut array = SsdArray::of(config, options, members);
        array.members.iter_mut().zip(journal).for_each(|(member, position)| member.journal_at = *position);
        Ok(array)
    }
}
