//! Recorded workloads: one file per trace format.
