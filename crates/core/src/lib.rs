//! Floatgate's simulator: a deterministic, sans-I/O model of a flash SSD.
//!
//! Each module lists what one kind of program needs, and everything else is private. To simulate, load a
//! [`device_file`], construct a device of [`simulation`], bring it into a state ([`preparation`]), run requests on it,
//! and read the [`summary`].

/// Base types: time, random numbers, ids, requests, sources and text formatting.
pub use floatgate_sim as sim;

mod cache;
mod config;
mod contract;
mod device;
mod dispatch;
mod durability;
mod external;
mod ftl;
mod host;
mod lifetime;
mod metrics;
mod nand;
mod observe;
mod policy;
mod precondition;
mod run;
mod scheduler;
mod ssd;
mod state;
mod work;

pub(crate) use policy::policy_family;

/// Device files: the checked configuration of an SSD, its units, its schema, and the built-in devices.
pub mod device_file {
    pub use crate::config::cells::CellMode;
    pub use crate::config::scale::{Scale, Scaled};
    pub use crate::config::units::{Bandwidth, Bytes, Duration};
    pub use crate::config::{
        Builtin, Capacity, Concurrency, ConfigError, DeviceConfig, Direction, Figure, Frontiers, InjectedFault, Listed,
        Listing, Problem, Shape, did_you_mean, from_toml, from_toml_with, load, load_with,
    };
    pub use crate::nand::timing::Timing;
}

/// A simulated SSD, and the loop that runs requests on it until all have completed.
pub mod simulation {
    pub use crate::device::{Device, Options};
    pub use crate::run::{Backlog, NoWatcher, Outcome, Progress, RunError, RunOptions, Watcher, replay, run, run_with};
    pub use crate::ssd::{Room, Ssd, TakeProbed};
}

/// States of an SSD before a run: filled, aged, steady, or after the requests of a workload.
pub mod preparation {
    pub use crate::precondition::{
        OnProgress, PROGRESS_EVERY, Precondition, Prewrite, STOPPED, Turns, UnitSet, precondition, precondition_with,
        prewrite, sealed,
    };
}

/// Measurements: counters, latencies, statistics, and their values over time.
pub mod results {
    pub use crate::metrics::attribution::{Breakdown, Part};
    pub use crate::metrics::counters::{CopyCause, Counters, MergeKind, ProgramCause};
    pub use crate::metrics::latency::Latency;
    pub use crate::metrics::profile::Profile;
    pub use crate::metrics::results::{Results, StreamResults};
    pub use crate::metrics::series::{Answered, Sample, Series, Width, Window};
    pub use crate::metrics::statistics::{Derived, Interval, Statistics};
    pub use crate::metrics::table::{Kind as StatisticKind, Value};
}

/// The summary of a run: the fields of the published result format.
pub mod summary {
    pub use crate::metrics::energy::{EnergyCauses, EnergyUse};
    pub use crate::metrics::summary::{
        About, ArrayUse, ArrayWrites, Attribution, BackgroundGc, BadBlocks, Bottleneck, Bound, BufferEvictions,
        BufferReads, BufferUse, BufferWrites, Change, Changes, ChannelCounts, ChannelShares, ChipShares, Cost,
        DieShares, Distribution, Distributions, Each, ErrorsMet, FaultState, FaultsMet, FirmwareUse, Flash,
        FlashCommands, FlashPages, FlashUnits, GangUse, Gc, Imbalance, IntervalCounts, LateCauses, LatencyCurve, Live,
        LiveFrontend, LiveImage, LiveRecovery, LogBlocks, LogWrites, MapCache, MapPages, Mean, MemberOperations,
        Merges, MovedUnits, Named, ObjectUse, Operations, ParallelCommands, Parts, PerPackage, PoolsUse, Precondition,
        ProgramCauses, Reached, ReadCauses, ReadError, RebuildUse, Requests, Share, SizeCounts, SlcCacheUse, Spread,
        Stream, Summary, UncorrectableReads, UnitClass, Updates, Utilization, Wear, WearHistogram,
    };
}

/// Operations of the flash and of the controller over time, as a probe reports them.
pub mod timeline {
    pub use crate::nand::array::Kind;
    pub use crate::nand::probe::{CoreWork, Lane, Phase, Probe, Slice, Task};
}

/// The lifetime of an SSD: a workload is repeated until the SSD is worn out.
pub mod endurance {
    pub use crate::lifetime::{Expiry, Lifetime, RemainingLife, Repeated, Until, live};
}

/// Contents of flash: the blocks and their states, the log of changes, and the image that a recovery reads.
pub mod flash {
    pub use crate::config::checkpoint::Parts as CheckpointParts;
    pub use crate::durability::Recovery;
    pub use crate::durability::flash::{
        Bad, Before, FlashEvent, FlashImage, Keep, Outbox, Place, Record, RecordKind, Saved, Source, UnitState,
    };
    pub use crate::ftl::space::{Block, BlockState, Role};
}

/// Saved states: their format, and how a program reads and writes them.
pub mod saved_state {
    pub use crate::device::Head;
    pub use crate::state::{Difference, Kind, Reader, Section, StateError, Writer};
}

/// Policies of other programs: how a device file names them, and the trait and the views of each policy family.
pub mod policies {
    pub use crate::cache::eviction::EvictionPolicy;
    pub use crate::cache::eviction::external::no_unit;
    pub use crate::config::{ExternalConfig, Offer};
    pub use crate::external::{Built, Cause, Externals, Fault, Outside, Provider, Wanted, invalid, position};
    pub use crate::ftl::allocation::{AllocationPolicy, Order, PlaneSet};
    pub use crate::ftl::gc::trigger::TriggerPolicy;
    pub use crate::ftl::gc::victim::{Index, VictimPolicy};
    pub use crate::ftl::gc::wear::{Needs, WearPolicy};
    pub use crate::ftl::space::{BlockView, Candidates, Columns, RegionView};
    pub use crate::ftl::temperature::TemperaturePolicy;
    pub use crate::ftl::temperature::written::Written;
    pub use crate::scheduler::SchedulerPolicy;
    pub use crate::scheduler::external::check_rank;
    pub use crate::scheduler::read_first::ReadFirst;
    pub use crate::work::{Class, LunQueue, Purpose, Queued};
}

/// Mapping schemes of other programs: their trait, the translation layer that they work on, and its operations.
pub mod mapping {
    pub use crate::ftl::mapping::external::ExternalMapping;
    pub use crate::ftl::mapping::replacement::give_up;
    pub use crate::ftl::mapping::{
        Bound, Change, Context, Ended, FoundBlock, FoundMerge, KeptBlock, Location, LookUp, Mapping, PADDING, Place,
        Program, Recovering, SchemeReport, Step, Target, WaitCause, keep_found,
    };
    pub use crate::ftl::mover::Gather;
    pub use crate::ftl::mover::copy::Copy as UnitCopy;
    pub use crate::ftl::space::{InHand, Space};
    pub use crate::ftl::{Ftl, Shape};
    pub use crate::work::{Call, Kind, Task, Transaction, Transactions};
}

/// Tests that each policy and each mapping scheme must pass.
pub mod laws {
    pub use crate::contract::{close, mapping, offers, policies, power_cuts};
}

/// Parts for the tests, benchmarks and fuzz targets of the repository. They may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::cache::eviction::EvictionConfig;
    pub use crate::config::advanced::{Advanced, Waste};
    pub use crate::config::gang::{Gang, GangMode};
    pub use crate::config::{
        BusProtocol, Durability, GcPace, GcScope, MapMemory, example, options, reference_page, shapes_state,
    };
    pub use crate::contract::{allocation, eviction, scheduler, temperature, trigger, victim};
    pub use crate::device::Mutant;
    pub use crate::durability::memory::MemoryFlash;
    pub use crate::ftl::allocation::{AllocationConfig, Level, LevelOrder};
    pub use crate::ftl::gc::job::Job;
    pub use crate::ftl::gc::trigger::TriggerConfig;
    pub use crate::ftl::gc::victim::VictimConfig;
    pub use crate::ftl::mapping::{MappingConfig, MappingScheme};
    pub use crate::ftl::space::RESERVE;
    pub use crate::ftl::temperature::TemperatureConfig;
    pub use crate::host::arbitration::{ArbitrationConfig, ArbitrationPolicy};
    pub use crate::lifetime::Lived;
    pub use crate::metrics::bounds::Work as BoundWork;
    pub use crate::metrics::collections::CollectionCounts;
    pub use crate::metrics::counters::{BufferCounts, ClassCounts, EraseCause, MapCause, ReadCause};
    pub use crate::metrics::energy::{Served as EnergyServed, Work as EnergyWork};
    pub use crate::metrics::results::OperationResults;
    pub use crate::metrics::series::{MAX_WINDOWS, MIN_WINDOWS};
    pub use crate::metrics::table::Count;
    pub use crate::nand::array::{ChannelTime, DieTime};
    pub use crate::nand::errors::ErrorModel;
    pub use crate::scheduler::reads_before_writes::ReadsBeforeWrites;
    pub use crate::scheduler::{Scheduler, SchedulerConfig};
    pub use crate::state::VERSION;
}
