//! Saved state of an idle array: the chip that each channel selected last, and the channel that was selected last.

use super::{Array, NOWHERE};
use crate::state::{Reader, StateError, Writer};

impl Array {
    /// Writes the chip that each channel selected last, and the channel that was selected last.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.channels.iter().try_for_each(|channel| out.u32(channel.last_chip))?;
        out.u32(self.last_channel)
    }

    /// Copies the saved state of the array of a device with the same shape.
    pub fn copy_state(&mut self, other: &Array) {
        self.channels.iter_mut().zip(&other.channels).for_each(|(own, other)| own.last_chip = other.last_chip);
        self.last_channel = other.last_channel;
    }

    /// Reads the data that [`Array::save`] wrote, into a new array.
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
