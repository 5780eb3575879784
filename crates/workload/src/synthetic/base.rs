//! Bases of the suffixes of sizes.

/// What fio's suffixes mean, its `kb_base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// 1024: `k` is 1024 and, the other way round than the standards have it, `ki` is 1000 (HOWTO, "Parameter types").
    #[default]
    Binary,
    /// 1000: `k` is 1000 and `ki` is 1024, as in the standards.
    Decimal,
}
