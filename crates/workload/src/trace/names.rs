//! Named devices of a trace, numbered in the order of their first occurrence.

use super::fields::Expected;
use super::record::MAX_DEVICES;

/// Maximum length of a name, which bounds the memory for all names. The same as in fio.
const LONGEST: usize = 256;

/// Names so far. Each consists of a text and a number. One of them may be unused.
#[derive(Default)]
pub(super) struct Names {
    /// Indexed by device.
    names: Vec<(Box<[u8]>, u64)>,
    /// Devices, sorted by name.
    sorted: Vec<u32>,
    /// Device of the previous request, which is often that of the next one.
    recent: u32,
}

impl Names {
    /// Returns the device with a name.
    pub(super) fn device(&mut self, text: &[u8], number: u64) -> Result<u32, Expected> {
        let is = |(name, its): &(Box<[u8]>, u64)| **name == *text && *its == number;
        if self.names.get(self.recent as usize).is_some_and(is) {
            return Ok(self.recent);
        }
        let key = |device: &u32| {
            let (name, its) = &self.names[*device as usize];
            (**name).cmp(text).then(its.cmp(&number))
        };
        self.recent = match self.sorted.binary_search_by(key) {
            Ok(place) => self.sorted[place],
            Err(_) if self.names.len() >= MAX_DEVICES => return Err(Expected("at most 65536 different devices")),
            Err(_) if text.len() > LONGEST => return Err(Expected("the name of a device, of at most 256 bytes")),
            Err(place) => {
                let device = self.names.len() as u32;
                self.sorted.insert(place, device);
                self.names.push((text.into(), number));
                device
            }
        };
        Ok(self.recent)
    }

    /// Returns the name of a device.
    pub(super) fn name(&self, device: u32) -> (String, u64) {
        let (text, number) = &self.names[device as usize];
        (String::from_utf8_lossy(text).into_owned(), *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_name_a_device() {
        let mut names = Names::default();
        let mut device = |text: &str, number| names.device(text.as_bytes(), number).unwrap();
        let numbers = [device("web", 0), device("hm", 1), device("web", 1), device("hm", 1), device("web", 0)];
        assert_eq!(numbers, [0, 1, 2, 1, 0]);
        assert_eq!(names.sorted, [1, 0, 2]);
        assert_eq!(names.name(2), ("web".to_owned(), 1));
    }

    #[test]
    fn memory_is_bounded() {
        let mut names = Names::default();
        assert!(names.device(&[b'x'; 257], 0).unwrap_err().0.contains("256 bytes"));
        for number in 0..MAX_DEVICES as u64 {
            names.device(b"", number).unwrap();
        }
        assert!(names.device(b"", 1 << 40).unwrap_err().0.contains("65536 different"));
        assert_eq!(names.device(b"", 7), Ok(7));
    }
}
