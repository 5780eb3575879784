//! Candidates of a saved state.

use crate::sim::id::BlockId;
use crate::state::{Reader, StateError};

/// What a policy may choose from after it was loaded: the closed blocks, with their valid units.
#[derive(Clone, Debug)]
pub struct Candidates {
    valid: Vec<Option<u16>>,
    per_plane: u32,
    clock: u64,
}

impl Candidates {
    /// By block, the valid units of candidates; blocks of a plane; host writes so far.
    pub fn new(valid: Vec<Option<u16>>, per_plane: u32, clock: u64) -> Candidates {
        Candidates { valid, per_plane, clock }
    }

    /// Blocks of a plane.
    pub fn per_plane(&self) -> u32 {
        self.per_plane
    }

    /// Host writes so far.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Reads the candidates plane by plane, each by its number, and tells of each with its valid units. It makes sure
    /// that each comes once, and none is left out.
    pub fn read(
        mut self,
        input: &mut Reader,
        mut each: impl FnMut(&mut Reader, BlockId, u32) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let per_plane = self.per_plane as usize;
        for first in (0..self.valid.len()).step_by(per_plane) {
            let expected = self.valid[first..first + per_plane].iter().flatten().count();
            for _ in 0..expected {
                let block = input.u32()?;
                let in_plane = (first..first + per_plane).contains(&(block as usize));
                let valid = if in_plane { self.valid[block as usize].take() } else { None };
                let Some(valid) = valid else {
                    return Err(input.damaged(format!("block {block} among those that can be reclaimed")));
                };
                each(input, BlockId(block), u32::from(valid))?;
            }
        }
        Ok(())
    }
}
