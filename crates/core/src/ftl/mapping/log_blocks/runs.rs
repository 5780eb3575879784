//! Sequential writes.

use super::Incoming;
use super::options::Sequential;
use crate::config::DeviceConfig;
use crate::state::{Reader, StateError, Writer};

/// Tells which writes are sequential.
#[derive(Clone, Debug)]
pub struct Runs {
    rule: Sequential,
    /// Units of a request that is sequential by its size.
    min_units: u32,
    /// Unit after the last one that was written.
    next: u32,
}

impl Runs {
    /// Creates the rule of a device.
    pub fn new(rule: Sequential, device: &DeviceConfig) -> Runs {
        let pages = if let Sequential::MinPages(pages) = rule { pages } else { 0 };
        let min_units = (pages.saturating_mul(device.units_per_page()) / device.pages_per_unit()).max(1);
        Runs { rule, min_units, next: u32::MAX }
    }

    /// Returns `true` if a write goes to a sequential log block.
    pub fn is_sequential(&mut self, write: Incoming) -> bool {
        let follows = std::mem::replace(&mut self.next, write.lpn.0 + 1) == write.lpn.0;
        write.continues
            || match self.rule {
                Sequential::BlockStart => write.offset == 0,
                Sequential::AfterLast => write.offset == 0 || follows,
                Sequential::MinPages(_) => write.units >= self.min_units,
            }
    }

    /// Writes the state to a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u32(self.next)
    }

    /// Reads what [`Runs::save`] wrote.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.next = input.u32()?;
        Ok(())
    }
}

impl Sequential {
    /// Checks the rule for a device.
    ///
    /// # Errors
    ///
    /// The option, and a value that works.
    pub fn check(self, device: &DeviceConfig) -> Result<(), String> {
        match self {
            Sequential::MinPages(pages) if pages == 0 || pages > device.pages_per_block() => {
                let most = device.pages_per_block();
                Err(format!("sequential = {{ min-pages = {pages} }} must be from 1 to {most}; use 4"))
            }
            _ => Ok(()),
        }
    }
}
