//! Asynchronous events of a controller: requests that wait for them, and events that wait for a request.

use super::wire::{Status, log};

/// Maximum number of waiting requests.
pub const LIMIT: usize = 4;

/// Bit of the configuration of events: an attribute of a namespace has changed.
pub const NAMESPACE_NOTICE: u32 = 1 << 8;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Reliability is degraded: the device has become read-only.
    Reliability,
    /// Spare blocks are below the threshold.
    Spare,
    /// An attribute of the namespace has changed.
    Namespace,
}

impl Event {
    /// Returns the type, the information, and the log page that clears the event.
    const fn parts(self) -> (u8, u8, u8) {
        match self {
            Event::Reliability => (1, 0, log::HEALTH),
            Event::Spare => (1, 2, log::HEALTH),
            Event::Namespace => (2, 0, log::CHANGED_NAMESPACES),
        }
    }

    /// Returns the result of the request that reports the event.
    pub fn result(self) -> u64 {
        let (kind, information, page) = self.parts();
        u64::from(kind) | u64::from(information) << 8 | u64::from(page) << 16
    }
}

/// Events of a controller.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Identifiers of the waiting requests, the oldest first.
    held: Vec<u16>,
    pending: Vec<Event>,
    /// Types of events that were reported and not cleared, as a bit mask.
    masked: u8,
    /// True if the namespace has changed since its log page was read.
    pub has_changed_namespace: bool,
}

impl Events {
    /// Adds a request that waits for an event.
    pub fn hold(&mut self, id: u16) -> Result<(), Status> {
        if self.held.len() == LIMIT {
            return Err(Status::EVENT_LIMIT);
        }
        self.held.push(id);
        Ok(())
    }

    /// Removes a waiting request. Returns `false` if there is none with this identifier.
    pub fn abort(&mut self, id: u16) -> bool {
        let index = self.held.iter().position(|held| *held == id);
        index.map(|index| self.held.remove(index)).is_some()
    }

    /// Adds an event, unless the same event waits.
    pub fn raise(&mut self, event: Event) {
        if !self.pending.contains(&event) {
            self.pending.push(event);
        }
    }

    /// Returns the next request to complete, and its event. Other events of its type wait until the event is
    /// cleared.
    pub fn deliver(&mut self) -> Option<(u16, Event)> {
        let is_due = |event: &Event| self.masked & 1 << event.parts().0 == 0;
        let index = self.pending.iter().position(is_due).filter(|_| !self.held.is_empty())?;
        let event = self.pending.remove(index);
        self.masked |= 1 << event.parts().0;
        Some((self.held.remove(0), event))
    }

    /// Clears the events of a log page that was read.
    pub fn clear(&mut self, page: u8) {
        for event in [Event::Reliability, Event::Namespace] {
            let (kind, _, of) = event.parts();
            if of == page {
                self.masked &= !(1 << kind);
            }
        }
        self.has_changed_namespace &= page != log::CHANGED_NAMESPACES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_waits_for_a_request_and_masks_its_type_until_its_page_is_read() {
        let mut events = Events::default();
        events.raise(Event::Spare);
        events.raise(Event::Spare);
        assert_eq!(events.deliver(), None);
        (7..11).for_each(|id| events.hold(id).unwrap());
        assert_eq!(events.hold(11), Err(Status::EVENT_LIMIT));
        assert_eq!(events.deliver(), Some((7, Event::Spare)));
        events.raise(Event::Reliability);
        assert_eq!(events.deliver(), None, "health events are masked");
        events.raise(Event::Namespace);
        assert_eq!(events.deliver(), Some((8, Event::Namespace)));
        events.clear(log::HEALTH);
        assert!(events.abort(10) && !events.abort(10));
        assert_eq!(events.deliver(), Some((9, Event::Reliability)));
        assert_eq!(Event::Namespace.result(), 0x04_00_02);
    }
}
