//! Typed `u32` ids, so that a block cannot be confused with a plane.

/// An id: the number of an item of one kind.
pub trait Id: Copy {
    /// Creates the id with a number.
    fn new(number: u32) -> Self;
    /// Returns the number.
    fn number(self) -> u32;
}

/// A plain number, for tables that do not need an id type.
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
            /// Represents no id. Unlike `None`, takes no additional space.
            pub const NONE: $name = $name(u32::MAX);

            /// Returns the id as an index.
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
    /// A logical unit (ONFI: the smallest unit that executes commands by itself). `nand.concurrency` selects whether
    /// this is a package, chip, die or plane. It accepts one command at a time.
    LunId;
    /// An execution unit, which executes one operation at a time: a die, or a plane if planes are independent. A LUN
    /// has several of them if one command may start operations on several dies.
    ExecUnitId;
    /// A plane, numbered across the device: ((channel * chips + chip) * dies + die) * planes + plane.
    PlaneId;
    /// A block, numbered across the device, plane by plane.
    BlockId;
    /// A logical page number: the number of a mapping unit in the host's address space.
    Lpn;
    /// A physical page number: the physical address of a mapping unit, counted block by block.
    Ppn;
    /// An outstanding request of the device.
    RequestId;
    /// A transaction: an operation on the flash, or a mapping unit that waits for one.
    TransactionId;
}
