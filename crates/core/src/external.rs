//! External policies: policies of the program that runs the device, such as a Python script.
//!
//! A device file names an external policy, `gc.victim = { external = { name = "coldest" } }`, and the program passes
//! the device a [`Provider`] that builds it. The device checks each result of the policy before it uses it. If the
//! policy fails or returns an invalid result, the device stores a [`Fault`], and from then on makes its own choices, so
//! that its state stays consistent. The caller polls for the fault and ends the run. Devices with only built-in
//! policies make no such checks.
//!
//! A provider can also list its policies as [`Offer`]s. Then device files name them like built-in ones, `gc.victim =
//! "coldest"`, and the schema and the suggestions in errors include them. See `examples/policies` for a program with
//! such a provider.

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

/// Key of an external policy in device files, where built-in policies have their names.
pub const EXTERNAL: &str = "external";

/// Reference to an external policy in a device file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalConfig {
    /// Name under which the program registers the policy.
    pub name: String,
    /// Digest of the policy's source, filled in by the program, so that devices with other sources differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Options of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub options: Map<String, Value>,
}

/// Error: a result breaks the contract of the policy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

/// Policy that a provider is to build.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Key of the policy, such as `gc.victim`.
    pub path: &'static str,
    /// Name and options of the policy.
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

    /// Returns the error that the policy cannot be built, for this reason.
    pub fn refused(&self, why: String) -> Cause {
        Arc::new(Refused(why))
    }

    /// Returns the options of the policy.
    ///
    /// # Errors
    ///
    /// Fails if an option has an unknown name or an invalid value. Options of a policy with an [`Offer`] were checked
    /// before.
    pub fn options<O: DeserializeOwned>(&self) -> Result<O, Cause> {
        read_options(&self.config.options).map_err(|what| Arc::new(Refused(what)) as Cause)
    }
}

fn read_options<O: DeserializeOwned>(options: &Map<String, Value>) -> Result<O, String> {
    serde_json::from_value(Value::Object(options.clone())).map_err(|error| error.to_string())
}

/// Policy of a provider that device files name like a built-in policy.
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
    /// Offers the policy `name` for the key `path`, such as `gc.victim`. `doc` is a sentence for the schema, and `O` is
    /// the type of the options.
    ///
    /// All options need a default, as with `#[serde(default, deny_unknown_fields)]`, because the name alone means the
    /// policy with its default options.
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

    /// Sets the identification of this implementation, such as the version of its crate, to distinguish devices and
    /// results from those with other implementations.
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

    /// Returns the description of the policy.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// Returns the identification of the implementation.
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
    /// Fails with the name of the invalid option and the cause.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), String> {
        (self.check)(options)
    }
}

/// Builder of external policies. A program without policies of a family omits the method of the family.
pub trait Provider: Send + Sync {
    /// Lists the policies that device files name like built-in ones. If a built-in policy has the same name, the name
    /// refers to the built-in one.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
    /// Builds a victim policy.
    fn victim(&self, wanted: Wanted) -> Result<Box<dyn ExternalVictim>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds a trigger of garbage collection.
    fn trigger(&self, wanted: Wanted) -> Result<Box<dyn ExternalTrigger>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds a wear-leveling policy.
    fn wear(&self, wanted: Wanted) -> Result<Box<dyn ExternalWear>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds an allocation scheme for the logical space of the device, which has `pages` flash pages of units.
    fn allocation(&self, wanted: Wanted, _pages: u32) -> Result<Placing, Cause> {
        Err(wanted.unknown())
    }
    /// Builds a classifier of units.
    fn classifier(&self, wanted: Wanted) -> Result<Box<dyn ExternalClassifier>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds an eviction policy for a buffer with room for `entries` units.
    fn eviction(&self, wanted: Wanted, _entries: u32) -> Result<Box<dyn ExternalEviction>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds a mapping scheme for a device.
    fn mapping(&self, wanted: Wanted, _device: &DeviceConfig) -> Result<Box<dyn ExternalMapping>, Cause> {
        Err(wanted.unknown())
    }
    /// Builds a scheduler.
    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        Err(wanted.unknown())
    }
}

/// Provider of a device's external policies, if there is one. It belongs to the program, not to the device file, so
/// devices that differ only in it are equal.
#[derive(Clone, Default)]
pub struct Externals(Option<Arc<dyn Provider>>);

impl Externals {
    /// Creates the externals of a program with this provider.
    pub fn by(provider: Arc<dyn Provider>) -> Externals {
        Externals(Some(provider))
    }

    /// Returns the policies that device files name like built-in ones.
    pub fn offers(&self) -> Vec<Offer> {
        self.0.as_ref().map(|provider| provider.offers()).unwrap_or_default()
    }

    /// Returns the provider of the policy, or an error if there is none.
    pub fn provider(&self, wanted: Wanted) -> Result<&dyn Provider, String> {
        self.0.as_deref().ok_or_else(|| {
            format!(
                "`{}` is not a built-in policy: run the device from the program, in Python or another language, that \
                 registers the policy (docs/policies.md)",
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

/// External victim policy: chooses victims among the closed blocks of a plane.
pub trait ExternalVictim: Send + Sync {
    /// Returns `true` if the policy reads the closed blocks in columns ([`RegionView::candidates`]). They are in no
    /// particular order then.
    fn reads_columns(&self) -> bool {
        false
    }
    /// Returns the position of the victim among the closed blocks of a region. There is at least one. Unless the policy
    /// reads columns, they are in ascending order of their valid units. Among blocks with equal counts, the one that
    /// reached this count first comes first.
    fn choose(&mut self, view: &RegionView) -> Result<i64, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalVictim>, Cause>;
}

/// External trigger: decides when garbage collection of a plane starts.
pub trait ExternalTrigger: Send + Sync {
    /// Returns `true` if garbage collection of a plane is to start now, when it may start but does not have to.
    fn wants(&mut self, view: &RegionView) -> Result<bool, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalTrigger>, Cause>;
}

/// External wear-leveling policy, see [`WearPolicy`](crate::ftl::gc::wear::WearPolicy).
pub trait ExternalWear: Send + Sync {
    /// Returns the position of the block to open among the free blocks `oldest`. There is at least one.
    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> Result<i64, Cause>;
    /// Returns `true` if garbage collection may take a victim.
    fn allows(&mut self, view: &RegionView, victim: BlockId) -> Result<bool, Cause>;
    /// Returns a closed block of the region to migrate after an erase.
    fn erased(&mut self, view: &RegionView, block: BlockId) -> Result<Option<BlockId>, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalWear>, Cause>;
}

/// External classifier of the units that the host writes.
pub trait ExternalClassifier: Send + Sync {
    /// Returns the class of a unit that is written now: 0 for data that stay longest.
    fn classify(&mut self, written: Written) -> Result<i64, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalClassifier>, Cause>;
}

/// Method by which planes are chosen for host writes.
pub enum Placing {
    /// Fixed plane of each flash page of units in the host's address space.
    Table(Vec<u32>),
    /// Choice whenever a plane is idle.
    Choice(Box<dyn ExternalAllocation>),
}

/// External allocation scheme: chooses planes for host writes.
pub trait ExternalAllocation: Send + Sync {
    /// Returns the position of the chosen plane among `planes`. There is at least one, and they are in ascending order.
    fn choose(&mut self, planes: &[u32]) -> Result<i64, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalAllocation>, Cause>;
}

/// External eviction policy: chooses the units that the buffer evicts. Units are identified by the number of their
/// entry, as in [`EvictionPolicy`](crate::cache::eviction::EvictionPolicy).
pub trait ExternalEviction: Send + Sync {
    /// Notifies the policy that a unit was inserted.
    fn on_insert(&mut self, entry: u32, lpn: u32, dirty: bool, read: bool) -> Result<(), Cause>;
    /// Notifies the policy that a unit was hit.
    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) -> Result<(), Cause>;
    /// Notifies the policy that a dirty unit was written back and remains in the buffer.
    fn on_clean(&mut self, entry: u32) -> Result<(), Cause>;
    /// Notifies the policy that a unit was removed without being chosen.
    fn on_remove(&mut self, entry: u32) -> Result<(), Cause>;
    /// Adds the entries to evict to `chosen`: at least one of those in the buffer. The policy forgets them.
    fn choose(&mut self, chosen: &mut Vec<i64>) -> Result<(), Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalEviction>, Cause>;
}

/// External mapping scheme. It has its own blocks, to which all host writes go, and takes part in the stages of a
/// device that [`Hooks::places`](crate::ftl::mapping::Hooks) names.
///
/// Unlike other policies, a scheme makes no choices that the device could check, but moves data. The checks of the
/// contract tests and runs with verification detect a scheme that loses data.
pub trait ExternalMapping: Mapping + MappingInTime<dyn Context> + fmt::Debug + Send + Sync {
    /// Returns another scheme with the same state.
    fn fork(&self) -> Box<dyn ExternalMapping>;
}

/// External scheduler: chooses the operation that a LUN starts next.
pub trait ExternalScheduler: Send + Sync {
    /// Returns the rank of operations of `class`, from 0 (first) to 3. Called once for each class when the device is
    /// built.
    fn rank(&mut self, class: Class) -> Result<i64, Cause>;
    /// See [`SchedulerPolicy::reconsiders`](crate::scheduler::SchedulerPolicy::reconsiders).
    fn reconsiders(&self) -> bool {
        false
    }
    /// Returns `false` if the ranks alone decide. Then `pick` is not called.
    fn picks(&self) -> bool {
        true
    }
    /// Returns the position in `queue` of the operation that starts, or `None` to leave the choice to the ranks. The
    /// queue has at least two operations. See [`SchedulerPolicy::pick`](crate::scheduler::SchedulerPolicy::pick).
    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause>;
    /// Returns another policy with the same state.
    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause>;
}

/// Object that can be forked.
pub trait Fork {
    /// Returns another policy with the same state.
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

/// External policy, until it fails. After a failure it is no longer called.
pub struct Guard<T: ?Sized> {
    who: String,
    policy: Option<Box<T>>,
    fault: Option<Fault>,
}

impl<T: ?Sized> Guard<T> {
    /// Creates the guard of a policy, or one with a fault if the policy could not be built.
    pub fn new(wanted: Wanted, made: Result<Box<T>, Cause>) -> Guard<T> {
        let mut guard = Guard::none(wanted);
        match made {
            Ok(policy) => guard.policy = Some(policy),
            Err(cause) => guard.fail(cause),
        }
        guard
    }

    /// Creates a guard without a policy.
    pub fn none(wanted: Wanted) -> Guard<T> {
        Guard { who: format!("{} `{}`", wanted.path, wanted.config.name), policy: None, fault: None }
    }

    /// Calls the policy and returns its result, or `None` if it fails or has failed before.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&mut T) -> Result<R, Cause>) -> Option<R> {
        match ask(self.policy.as_deref_mut()?) {
            Ok(answer) => Some(answer),
            Err(cause) => {
                self.fail(cause);
                None
            }
        }
    }

    /// Returns the position `chosen`, or refuses it and returns `None` if it is not below `count`.
    pub fn position(&mut self, chosen: i64, count: usize, of: &str) -> Option<usize> {
        match usize::try_from(chosen).ok().filter(|position| *position < count) {
            None => {
                self.refuse(format!("chose number {chosen} of {count} {of}, which are counted from 0"));
                None
            }
            position => position,
        }
    }

    /// Refuses an invalid result of the policy: stores a fault, and calls the policy no longer.
    pub fn refuse(&mut self, what: String) {
        self.fail(Arc::new(Refused(what)));
    }

    fn fail(&mut self, cause: Cause) {
        self.policy = None;
        self.fault.get_or_insert(Fault::new(self.who.clone(), cause));
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Returns the error that the policy cannot be saved.
    pub fn not_saved(&self) -> String {
        not_saved(&self.who)
    }
}

/// Returns the error that an external policy cannot be saved.
pub fn not_saved(who: &str) -> String {
    format!("{who} is an external policy: its state cannot be saved")
}

impl<T: ?Sized + Fork> Clone for Guard<T> {
    /// Forks the policy. If this fails, the clone has a fault.
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
