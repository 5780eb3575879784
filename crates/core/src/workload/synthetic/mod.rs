//! Synthetic workloads in fio's vocabulary.
