//! Bases of size suffixes.

/// Base of size suffixes, fio's `kb_base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// 1024: `k` is 1024 and `ki` is 1000, which is the reverse of the standards (HOWTO, "Parameter types").
    #[default]
    Binary,
    /// 1000: `k` is 1000 and `ki` is 1024, as in the standards.
    Decimal,
}
