//! Scheduling classes of flash operations.

/// Purpose of a flash operation, as far as scheduling distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// A read that a host read waits for.
    HostRead,
    /// A read that a partial host write waits for.
    RmwRead,
    /// A program of host data.
    HostProgram,
    /// A read, program or erase of garbage collection.
    Gc,
    /// An operation of garbage collection in a plane at or below `gc.hard_threshold`. With `gc.pace = "proportional"`:
    /// in a plane that has to free space before the host uses more of it. With `gc.pace.burst`: in a burst.
    UrgentGc,
    /// A program of a summary page, the last page of its block, or of parity.
    Summary,
    /// A read of a translation page.
    MapRead,
    /// A program of a translation page.
    MapProgram,
    /// An operation of garbage collection for a victim that was chosen in idle time (`gc.background`).
    BackgroundGc,
    /// A read of units that the host has not requested yet (`buffer.read_ahead`).
    ReadAhead,
}

/// Reason for an operation of garbage collection, for observers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The reason that its class names.
    #[default]
    OfClass,
    /// Wear leveling migrates data.
    Wear,
    /// A mapping scheme merges blocks.
    Merge,
    /// A switch merge.
    SwitchMerge,
    /// A partial merge.
    PartialMerge,
    /// A full merge.
    FullMerge,
    /// Folding moves data out of the SLC cache.
    Fold,
    /// An uncorrectable page is rebuilt from its stripe, and its data are moved.
    Rebuild,
    /// Data are moved to refresh their block.
    Refresh,
}

impl Purpose {
    /// All purposes.
    pub const ALL: [Purpose; 9] = [
        Purpose::OfClass,
        Purpose::Wear,
        Purpose::Merge,
        Purpose::SwitchMerge,
        Purpose::PartialMerge,
        Purpose::FullMerge,
        Purpose::Fold,
        Purpose::Rebuild,
        Purpose::Refresh,
    ];
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 10;
    /// All classes.
    pub const ALL: [Class; Class::COUNT] = [
        Class::HostRead,
        Class::RmwRead,
        Class::HostProgram,
        Class::Gc,
        Class::UrgentGc,
        Class::Summary,
        Class::MapRead,
        Class::MapProgram,
        Class::BackgroundGc,
        Class::ReadAhead,
    ];

    /// Returns `true` for garbage collection, summaries and parity, which are not host operations. Attribution counts
    /// waits for such operations as waits for garbage collection.
    #[inline]
    pub const fn is_collecting(self) -> bool {
        matches!(self, Class::Gc | Class::UrgentGc | Class::BackgroundGc | Class::Summary)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Class::HostRead => "host-read",
            Class::RmwRead => "rmw-read",
            Class::HostProgram => "host-program",
            Class::Gc => "gc",
            Class::UrgentGc => "urgent-gc",
            Class::BackgroundGc => "background-gc",
            Class::Summary => "summary",
            Class::ReadAhead => "read-ahead",
            Class::MapRead => "map-read",
            Class::MapProgram => "map-program",
        })
    }
}
