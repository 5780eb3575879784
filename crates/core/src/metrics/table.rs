//! Tables of statistics: macros that declare a number once, with its meaning and its names in all outputs.
//!
//! A line `blocks_erased: u64 => erases, blocks_erased;` declares a counter, its column in `series.parquet`, and its
//! name in the frames and metrics of a live device. `_` leaves it out there. Results name it in `summary`. See
//! [`counters`](super::counters) and [`statistics`](super::statistics) for the tables.

/// Kind of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number that only grows. Those of adjacent spans of time add up.
    Counter,
    /// Value at the end of a span of time, or a ratio of counters.
    Gauge,
}

/// Statistic of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Column of `series.parquet`; `None` without one. By cause, it is followed by `_` and the name of the cause.
    pub column: Option<&'static str>,
    /// Key in the frames of a live device, and name of its metric; `None` without one.
    pub metric: Option<&'static str>,
    /// Kind.
    pub kind: Kind,
    /// Description.
    pub meaning: &'static str,
}

/// Value of a statistic.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    /// Whole number.
    Whole(&'a mut u64),
    /// Number; `None` if undefined.
    Number(&'a mut Option<f64>),
    /// Number for each cause, with the names of the causes.
    Each(&'a mut [u64], &'static [&'static str]),
}

/// Statistics with their values.
pub type Values<'a> = Vec<(&'static Statistic, Value<'a>)>;

/// Type of a statistic.
pub trait Publish {
    /// Returns the value. `names` are those of the causes.
    fn value(&mut self, names: &'static [&'static str]) -> Value<'_>;
}

impl Publish for u64 {
    fn value(&mut self, _: &'static [&'static str]) -> Value<'_> {
        Value::Whole(self)
    }
}

impl Publish for Option<f64> {
    fn value(&mut self, _: &'static [&'static str]) -> Value<'_> {
        Value::Number(self)
    }
}

impl<const N: usize> Publish for [u64; N] {
    fn value(&mut self, names: &'static [&'static str]) -> Value<'_> {
        Value::Each(self, names)
    }
}

/// Count, or several counts, of events since a device was created.
pub trait Count: Copy + Default {
    /// Combines each count with that of `other`.
    fn with(&self, other: &Self, together: &mut impl FnMut(u64, u64) -> u64) -> Self;

    /// Adds the statistics among the counts to a list.
    fn list<'a>(&'a mut self, _: &mut Values<'a>) {}

    /// Returns all counts, in the order of their declarations.
    fn values(&self) -> Vec<u64> {
        let mut values = Vec::new();
        self.with(self, &mut |value, _| {
            values.push(value);
            value
        });
        values
    }

    /// Creates counts from those of [`Count::values`]. Missing counts are 0.
    fn of_values(values: &[u64]) -> Self {
        let mut next = values.iter().copied();
        Self::default().with(&Self::default(), &mut |_, _| next.next().unwrap_or_default())
    }
}

impl Count for u64 {
    fn with(&self, other: &u64, together: &mut impl FnMut(u64, u64) -> u64) -> u64 {
        together(*self, *other)
    }
}

impl<const N: usize> Count for [u64; N]
where
    [u64; N]: Default,
{
    fn with(&self, other: &Self, together: &mut impl FnMut(u64, u64) -> u64) -> Self {
        std::array::from_fn(|index| together(self[index], other[index]))
    }
}

/// Adds one field to a list of statistics.
macro_rules! publish {
    (@name _) => { None };
    (@name $name:ident) => { Some(stringify!($name)) };
    (@names) => { &[] };
    (@names $cause:ident) => { &$cause::NAMES };
    ($into:ident, $value:expr, $kind:ident, [$($doc:literal)+], [$($cause:ident)?], $column:tt, $metric:tt) => {
        $into.push((
            const {
                &$crate::metrics::table::Statistic {
                    column: publish!(@name $column),
                    metric: publish!(@name $metric),
                    kind: $crate::metrics::table::Kind::$kind,
                    meaning: concat!($($doc),+).trim_ascii(),
                }
            },
            $crate::metrics::table::Publish::value(&mut $value, publish!(@names $($cause)?)),
        ));
    };
}

/// Declares a struct of counts, and groups of counts, with their differences and sums. A count by cause has the enum
/// of its causes after `by`.
macro_rules! counters {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty $(, by $cause:ident)? $(=> $column:tt, $metric:tt)?;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $name {
            /// Returns the counts since `earlier`.
            pub fn since(&self, earlier: &$name) -> $name {
                $crate::metrics::table::Count::with(self, earlier, &mut |now, before| now - before)
            }

            /// Returns the sums of both counts.
            pub fn plus(&self, other: &$name) -> $name {
                $crate::metrics::table::Count::with(self, other, &mut |one, other| one + other)
            }
        }

        impl $crate::metrics::table::Count for $name {
            fn with(&self, other: &$name, together: &mut impl FnMut(u64, u64) -> u64) -> $name {
                $name { $($field: self.$field.with(&other.$field, together),)* }
            }

            fn list<'a>(&'a mut self, into: &mut $crate::metrics::table::Values<'a>) {
                $(counters!(@list self, into, $field, [$($doc)+], [$($cause)?] $($column, $metric)?);)*
            }
        }
    };
    (@list $self:ident, $into:ident, $field:ident, $docs:tt, $cause:tt) => {
        $self.$field.list($into);
    };
    (@list $self:ident, $into:ident, $field:ident, $docs:tt, $cause:tt $column:tt, $metric:tt) => {
        publish!($into, $self.$field, Counter, $docs, $cause, $column, $metric);
    };
}

/// Declares the causes of a count: an enum, and the part of a result with a number for each cause, in the order of the
/// lines. The number of a cause is its index in a count, as in an enum.
macro_rules! causes {
    (
        $(#[$about:meta])*
        pub enum $cause:ident, $(#[$of:meta])* pub struct $counts:ident {
            $($(#[doc = $doc:literal])+ $(#[serde $serde:tt])? $variant:ident $(= $number:literal)?: $name:ident,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $cause {
            $($(#[doc = $doc])+ $variant $(= $number)?,)+
        }

        impl $cause {
            /// All of them, with their names in results.
            pub const ALL: [($cause, &'static str); [$(stringify!($name)),+].len()] =
                [$(($cause::$variant, stringify!($name))),+];
            /// Their names in results, indexed by cause.
            pub const NAMES: [&'static str; $cause::ALL.len()] = {
                let mut names = [""; $cause::ALL.len()];
                $(names[$cause::$variant as usize] = stringify!($name);)+
                names
            };
        }

        $(#[$of])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $counts {
            $($(#[doc = $doc])+ $(#[serde $serde])? pub $name: u64,)+
        }

        impl From<[u64; $cause::ALL.len()]> for $counts {
            fn from(counts: [u64; $cause::ALL.len()]) -> $counts {
                $counts { $($name: counts[$cause::$variant as usize]),+ }
            }
        }
    };
}

/// Declares the statistics that follow from others, each with its kind and its source.
macro_rules! statistics {
    (
        $(#[$about:meta])*
        pub struct $name:ident, of $of:ident: $from:ty {
            $(
                $(#[doc = $doc:literal])+
                $kind:ident $field:ident: $type:ty => $column:tt, $metric:tt = $value:expr;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $name {
            fn new($of: $from) -> $name {
                $name { $($field: $value,)* }
            }

            fn list<'a>(&'a mut self, into: &mut $crate::metrics::table::Values<'a>) {
                $(publish!(into, self.$field, $kind, [$($doc)+], [], $column, $metric);)*
            }
        }
    };
}
