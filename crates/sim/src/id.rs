//! Typed `u32` ids, so that a block is never taken for a plane.

/// A number that names one thing of a kind.
pub trait Id: Copy {
    /// Creates the id with a number.
    fn new(number: u32) -> Self;
    /// Returns the number.
    fn number(self) -> u32;
}

/// A plain number, for tables of which there is only one kind.
impl Id for u32 {
    #[inline]
    fn new(number: u32) -> u32 {
        number
    }

    #[inline]
    fn number(self) -> u32 {
        self
    }
}

/// Declares ids.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// No id of this kind, where one may be missing. Unlike `None`, it takes no room of its own.
            pub const NONE: $name = $name(u32::MAX);

            /// The id as an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns `true` if this is [`Self::NONE`].
            #[inline]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// Returns `true` if this is not [`Self::NONE`].
            #[inline]
            pub const fn is_some(self) -> bool {
                !self.is_none()
            }

            /// Returns the id, or `None` for [`Self::NONE`].
            #[inline]
            pub const fn get(self) -> Option<$name> {
                if self.is_none() { None } else { Some(self) }
            }
        }

        impl Id for $name {
            #[inline]
            fn new(number: u32) -> $name {
                $name(number)
            }

            #[inline]
            fn number(self) -> u32 {
                self.0
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
    /// A request that the device works on.
    RequestId;
    /// A transaction: an operation on the flash, or a mapping unit that waits for one.
    TransactionId;
}
