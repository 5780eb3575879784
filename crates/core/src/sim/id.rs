//! Typed `u32` ids, so that a block is never taken for a plane.

/// Declares ids.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

ids! {
    /// A channel of the device.
    ChannelId;
    /// What takes one command at a time: a package, chip, die or plane, as `nand.concurrency` says. ONFI's word is
    /// logical unit, the smallest unit that takes commands by itself.
    LunId;
    /// What executes one operation at a time: a die, or a plane where planes are independent. A LUN has several where
    /// one command may set several dies to work.
    UnitId;
    /// A plane, counted over the whole device: ((channel * chips + chip) * dies + die) * planes + plane.
    PlaneId;
    /// A block, counted over the whole device, plane by plane.
    BlockId;
    /// A logical page number: the number of a mapping unit in the host's address space.
    Lpn;
    /// A physical page number, in mapping units: the place of a unit, counted block by block.
    Ppn;
}
