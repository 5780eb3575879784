//! What an array at rest remembers: where each channel turned to last.

use super::{Array, NOWHERE};
use crate::state::{Reader, StateError, Writer};

impl Array {
    /// Writes the chip that each channel carried something for last, and the channel that was turned to last.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.channels.iter().try_for_each(|channel| out.u32(channel.last_chip))?;
        out.u32(self.last_channel)
    }

    /// Remembers the same as another one, of a device of the same shape.
    pub fn copy_state(&mut self, other: &Array) {
        self.channels.iter_mut().zip(&other.channels).for_each(|(own, other)| own.last_chip = other.last_chip);
        self.last_channel = other.last_channel;
    }

    /// Reads what [`Array::save`] wrote, into a new array.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let chips = self.planes_per_chip.divide(self.lun_of_plane.len() as u32);
        let one_of = |input: &mut Reader, count: u32, what: &str| match input.u32()? {
            NOWHERE => Ok(NOWHERE),
            number if number < count => Ok(number),
            number => Err(input.damaged(format!("{what} {number} of {count}"))),
        };
        for channel in &mut self.channels {
            channel.last_chip = one_of(input, chips, "chip")?;
        }
        self.last_channel = one_of(input, self.channels.len() as u32, "channel")?;
        Ok(())
    }
}
