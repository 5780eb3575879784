//! Policies that the program which runs the device brings along, such as a script in Python.
//!
//! A device file names one, `gc.victim = { external = { name = "coldest" } }`, and the program gives the device a
//! [`Provider`] that makes it. What it answers is checked before it is used. When it fails, or answers what cannot be,
//! the device remembers that as a [`Fault`] and goes on with a choice of its own, so that it stays whole; whoever runs
//! it asks for the fault now and then, and stops. So nothing is asked where all policies are built in.
//!
//! A provider may also list its policies as [`Offer`]s. Then device files name them like built-in ones,
//! `gc.victim = "coldest"`, and the schema and the suggestions in errors include them. `examples/policies` is a program
//! with such a provider.

mod fault;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::DeviceConfig;
use crate::ftl::mapping::{Context, Mapping, MappingInTime};
use crate::ftl::space::RegionView;
pub use crate::ftl::temperature::written::{MAX_CLASSES, Written};
use crate::sim::id::BlockId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};
pub use fault::{Cause, Fault};

/// The key of an external policy, beside the names of the built-in ones.
pub const EXTERNAL: &str = "external";

/// Which policy is meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalConfig {
    /// What the program that runs the device calls the policy.
    pub name: String,
    /// Digest of the policy's source, so that devices and results of different sources are told apart. The program
    /// writes it down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Options of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub options: Map<String, Value>,
}

/// An answer that breaks the contract.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

/// Which policy to make.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The key that names it, like `gc.victim`.
    pub path: &'static str,
    /// Its name and options.
    pub config: &'a ExternalConfig,
    /// Seed of all random numbers of the device.
    pub seed: u64,
}

impl Wanted<'_> {
    /// Returns the error that the program has no policy of this name in this family.
    pub fn unknown(&self) -> Cause {
        let Wanted { path, config, .. } = self;
        Arc::new(Refused(format!("the program that runs the device has no policy `{}` for `{path}`", config.name)))
    }

    /// Returns the error that the policy cannot be made, for this reason.
    pub fn refused(&self, why: String) -> Cause {
        Arc::new(Refused(why))
    }

    /// Returns the options of the policy.
    ///
    /// # Errors
    ///
    /// An option has an unknown name or a wrong value. Options of a policy with an [`Offer`] were checked before.
    pub fn options<O: DeserializeOwned>(&self) -> Result<O, Cause> {
        read_options(&self.config.options).map_err(|what| Arc::new(Refused(what)) as Cause)
    }
}

fn read_options<O: DeserializeOwned>(options: &Map<String, Value>) -> Result<O, String> {
    serde_json::from_value(Value::Object(options.clone())).map_err(|error| error.to_string())
}

/// Policy of a provider that device files name like a built-in one.
#[derive(Clone, Debug)]
pub struct Offer {
    path: &'static str,
    name: &'static str,
    doc: &'static str,
    source: &'static str,
    /// JSON schema of the options.
    options: Value,
    check: fn(&Map<String, Value>) -> Result<(), String>,
}

impl Offer {
    /// Offers the policy `name` for the key `path`, such as `gc.victim`. `doc` is a sentence for the schema, and `O`
    /// the type of its options.
    ///
    /// All options need a default, as with `#[serde(default, deny_unknown_fields)]`, because the name alone stands for
    /// the policy with its default options.
    pub fn new<O: DeserializeOwned + schemars::JsonSchema>(
        path: &'static str,
        name: &'static str,
        doc: &'static str,
    ) -> Offer {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let options = settings.into_generator().into_root_schema_for::<O>().into();
        let check = |options: &Map<String, Value>| read_options::<O>(options).map(drop);
        Offer { path, name, doc, source: "", options, check }
    }

    /// Sets what distinguishes devices and results with this implementation from those with others, such as the version
    /// of its crate.
    pub fn with_source(self, source: &'static str) -> Offer {
        Offer { source, ..self }
    }

    /// Returns the key that names the policy.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the name of the policy.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns a sentence about the policy.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// Returns what distinguishes the implementation from others.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Returns the JSON schema of the options.
    pub fn options(&self) -> &Value {
        &self.options
    }

    /// Checks options.
    ///
    /// # Errors
    ///
    /// The invalid option, and what is wrong with it.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), String> {
        (self.check)(options)
    }
}

/// Makes policies by their names. A program that has no policies of a family leaves out its method.
pub trait Provider: Send + Sync {
    /// Lists the policies that device files name like built-in ones. A name of a built-in policy remains that policy's.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
    /// Makes what chooses victims.
    fn victim(&self, wanted: Wanted) -> Result<Box<dyn ExternalVictim>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what says when a plane is cleaned.
    fn trigger(&self, wanted: Wanted) -> Result<Box<dyn ExternalTrigger>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what levels wear.
    fn wear(&self, wanted: Wanted) -> Result<Box<dyn ExternalWear>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what says where flash pages' worth of units go, of which the device has `pages`.
    fn allocation(&self, wanted: Wanted, _pages: u32) -> Result<Placing, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what tells the classes of units.
    fn classifier(&self, wanted: Wanted) -> Result<Box<dyn ExternalClassifier>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what chooses what leaves the buffer, which has room for `entries` units.
    fn eviction(&self, wanted: Wanted, _entries: u32) -> Result<Box<dyn ExternalEviction>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes a mapping scheme for a device.
    fn mapping(&self, wanted: Wanted, _device: &DeviceConfig) -> Result<Box<dyn ExternalMapping>, Cause> {
        Err(wanted.unknown())
    }
    /// Makes what chooses the operations that LUNs start.
    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        Err(wanted.unknown())
    }
}

/// Who makes a device's external policies, if anybody does. It comes with the program, not with the device file, so
/// devices that differ in nothing else are equal.
#[derive(Clone, Default)]
pub struct Externals(Option<Arc<dyn Provider>>);

impl Externals {
    /// By this program.
    pub fn by(provider: Arc<dyn Provider>) -> Externals {
        Externals(Some(provider))
    }

    /// Returns the policies that device files name like built-in ones.
    pub fn offers(&self) -> Vec<Offer> {
        self.0.as_ref().map(|provider| provider.offers()).unwrap_or_default()
    }

    /// Who makes the policy, or why there is none.
    pub fn provider(&self, wanted: Wanted) -> Result<&dyn Provider, String> {
        self.0.as_deref().ok_or_else(|| {
            format!(
                "`{}` is no policy of the simulator: it was written in Python or another program, which has to run \
                 this device, with the policy registered (docs/policies.md)",
                wanted.config.name
            )
        })
    }
}

impl PartialEq for Externals {
    fn eq(&self, _: &Externals) -> bool {
        true
    }
}

impl fmt::Debug for Externals {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Externals" } else { "no Externals" })
    }
}

/// Chooses victims among the closed blocks of a plane.
pub trait ExternalVictim: Send + Sync {
    /// Returns the position of the victim among the closed blocks of a region, of which there is at least one. They are
    /// in the order of their valid units. Of equally many, the one comes first that has had so few for the longest
    /// time.
    fn choose(&mut self, view: &RegionView) -> Result<i64, Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalVictim>, Cause>;
}

/// Says when a plane is cleaned.
pub trait ExternalTrigger: Send + Sync {
    /// Whether to clean a plane now that may be, and need not be.
    fn wants(&mut self, view: &RegionView) -> Result<bool, Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalTrigger>, Cause>;
}

/// Levels wear, as [`WearPolicy`](crate::ftl::gc::wear::WearPolicy) does.
pub trait ExternalWear: Send + Sync {
    /// Returns the position of the block to open among `oldest`, free blocks of which there is at least one.
    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> Result<i64, Cause>;
    /// Returns `true` if garbage collection may take a victim.
    fn allows(&mut self, view: &RegionView, victim: BlockId) -> Result<bool, Cause>;
    /// Returns a closed block of the region to migrate after an erase.
    fn erased(&mut self, view: &RegionView, block: BlockId) -> Result<Option<BlockId>, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalWear>, Cause>;
}

/// Tells the classes of units that the host writes.
pub trait ExternalClassifier: Send + Sync {
    /// The class of a unit that is written now: 0 for what stays longest.
    fn classify(&mut self, written: Written) -> Result<i64, Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalClassifier>, Cause>;
}

/// How planes are chosen for host writes.
pub enum Placing {
    /// By flash page's worth of units of the host's address space: its plane.
    Table(Vec<u32>),
    /// When a plane is idle.
    Choice(Box<dyn ExternalAllocation>),
}

/// Chooses planes for host writes.
pub trait ExternalAllocation: Send + Sync {
    /// The position of the plane among `planes`, of which there is one at least, in ascending order.
    fn choose(&mut self, planes: &[u32]) -> Result<i64, Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalAllocation>, Cause>;
}

/// Chooses what leaves the buffer. Units are told of by the number of their entry, as by
/// [`EvictionPolicy`](crate::cache::eviction::EvictionPolicy).
pub trait ExternalEviction: Send + Sync {
    /// A unit has come.
    fn on_insert(&mut self, entry: u32, lpn: u32, dirty: bool, read: bool) -> Result<(), Cause>;
    /// A unit was hit.
    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) -> Result<(), Cause>;
    /// A dirty unit is in flash now and stays.
    fn on_clean(&mut self, entry: u32) -> Result<(), Cause>;
    /// A unit has left without being chosen.
    fn on_remove(&mut self, entry: u32) -> Result<(), Cause>;
    /// The entries that leave, one at least of those that are there; they are forgotten.
    fn choose(&mut self, chosen: &mut Vec<i64>) -> Result<(), Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalEviction>, Cause>;
}

/// A mapping scheme. It has blocks of its own, which all host writes go to, and takes part in the stages of a device
/// that [`Hooks::places`](crate::ftl::mapping::Hooks) names.
///
/// Unlike other policies, a scheme is not asked for a choice: it moves data. A scheme that loses some is found by the
/// checks of the contract tests, and by runs with verification.
pub trait ExternalMapping: Mapping + MappingInTime<dyn Context> + fmt::Debug + Send + Sync {
    /// Returns another one with the same state.
    fn fork(&self) -> Box<dyn ExternalMapping>;
}

/// Chooses the operation that a LUN starts next.
pub trait ExternalScheduler: Send + Sync {
    /// Returns the rank of operations of `class`, from 0, which goes first, to 3. It is called once for each class, as
    /// the device is built.
    fn rank(&mut self, class: Class) -> Result<i64, Cause>;
    /// See [`SchedulerPolicy::reconsiders`](crate::scheduler::SchedulerPolicy::reconsiders).
    fn reconsiders(&self) -> bool {
        false
    }
    /// Returns `false` if the ranks alone decide. Then `pick` is not called.
    fn looks(&self) -> bool {
        true
    }
    /// Returns the position in `queue` of the operation that starts, or `None` to leave the choice to the ranks. The
    /// queue has at least two operations. See [`SchedulerPolicy::pick`](crate::scheduler::SchedulerPolicy::pick).
    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause>;
    /// Another one with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause>;
}

/// What can be forked, or fails to be.
pub trait Fork {
    /// Another one with the same state.
    fn forked(&self) -> Result<Box<Self>, Cause>;
}

macro_rules! forks {
    ($($contract:ident),+) => {$(
        impl Fork for dyn $contract {
            fn forked(&self) -> Result<Box<dyn $contract>, Cause> {
                self.fork()
            }
        }
    )+};
}

forks!(
    ExternalVictim,
    ExternalTrigger,
    ExternalWear,
    ExternalAllocation,
    ExternalClassifier,
    ExternalEviction,
    ExternalScheduler
);

/// An external policy until it fails: after that it is not asked any more.
pub struct Guard<T: ?Sized> {
    who: String,
    policy: Option<Box<T>>,
    fault: Option<Fault>,
}

impl<T: ?Sized> Guard<T> {
    /// The policy that was wanted; or that there is none, for this reason.
    pub fn new(wanted: Wanted, made: Result<Box<T>, Cause>) -> Guard<T> {
        let mut guard = Guard::none(wanted);
        match made {
            Ok(policy) => guard.policy = Some(policy),
            Err(cause) => guard.fail(cause),
        }
        guard
    }

    /// A policy that is not asked again.
    pub fn none(wanted: Wanted) -> Guard<T> {
        Guard { who: format!("{} `{}`", wanted.path, wanted.config.name), policy: None, fault: None }
    }

    /// The answer of the policy, unless it has failed.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&mut T) -> Result<R, Cause>) -> Option<R> {
        match ask(self.policy.as_deref_mut()?) {
            Ok(answer) => Some(answer),
            Err(cause) => {
                self.fail(cause);
                None
            }
        }
    }

    /// The chosen one of `count`, unless there is none of this position.
    pub fn position(&mut self, chosen: i64, count: usize, of: &str) -> Option<usize> {
        match usize::try_from(chosen).ok().filter(|position| *position < count) {
            None => {
                self.refuse(format!("chose number {chosen} of {count} {of}, which are counted from 0"));
                None
            }
            position => position,
        }
    }

    /// The policy has answered what cannot be.
    pub fn refuse(&mut self, what: String) {
        self.fail(Arc::new(Refused(what)));
    }

    fn fail(&mut self, cause: Cause) {
        self.policy = None;
        self.fault.get_or_insert(Fault::new(self.who.clone(), cause));
    }

    /// What went wrong.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Why it is in no saved state.
    pub fn not_saved(&self) -> String {
        not_saved(&self.who)
    }
}

/// Returns why an external policy is in no saved state.
pub fn not_saved(who: &str) -> String {
    format!("{who} comes with the program that runs the device: what it knows cannot be saved")
}

impl<T: ?Sized + Fork> Clone for Guard<T> {
    /// Forks the policy; that it cannot be forked is a fault of the clone.
    fn clone(&self) -> Guard<T> {
        let mut guard = Guard { who: self.who.clone(), policy: None, fault: self.fault.clone() };
        match self.policy.as_deref().map(Fork::forked) {
            Some(Ok(policy)) => guard.policy = Some(policy),
            Some(Err(cause)) => guard.fail(cause),
            None => {}
        }
        guard
    }
}

impl<T: ?Sized> fmt::Debug for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Guard({}, {:?})", self.who, self.fault)
    }
}
