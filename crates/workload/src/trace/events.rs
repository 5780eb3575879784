//! Events of Linux's block layer: selection of the events that represent requests, and their operations.
//!
//! Each request has several events: it is queued (Q), inserted into the scheduler (I), issued to the driver (D) and
//! completed (C), each with its own time. Only one of them is replayed as the request.

use std::fmt;
use std::str::FromStr;

use super::record::counted;
use crate::sim::request::Operation;

/// Event that represents a request in a trace of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Q: passed to the block layer, before merging and splitting.
    Queue,
    /// I: passed to the scheduler.
    Insert,
    /// D: passed to the driver. Shows what the device receives, and when.
    Issue,
    /// C: completed.
    Complete,
}

/// Order of preference if the user selects none. The first one that occurs is used.
const PREFERRED: [Action; 3] = [Action::Issue, Action::Queue, Action::Insert];

impl Action {
    /// Returns the letter in blkparse.
    pub const fn letter(self) -> char {
        match self {
            Action::Queue => 'Q',
            Action::Insert => 'I',
            Action::Issue => 'D',
            Action::Complete => 'C',
        }
    }

    /// Returns the action for a letter, if it can represent a request.
    pub(super) fn of_letter(letter: &[u8]) -> Option<Action> {
        match letter {
            b"Q" => Some(Action::Queue),
            b"I" => Some(Action::Insert),
            b"D" => Some(Action::Issue),
            b"C" => Some(Action::Complete),
            _ => None,
        }
    }
}

impl FromStr for Action {
    type Err = String;
    fn from_str(text: &str) -> Result<Action, String> {
        Action::of_letter(text.as_bytes()).ok_or_else(|| format!("invalid event `{text}`: expected D, Q, I or C"))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// Operation of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    /// `None` for an operation that requests of a trace do not have.
    pub(super) operation: Option<Operation>,
    /// True if the event also requests a preceding flush, or durability at its completion.
    pub(super) durable: bool,
}

impl Requested {
    /// Parses the letters of blkparse (`blk_fill_rwbs` in Linux, `fill_rwbs` in blkparse): F for a preceding flush,
    /// then R, W, D (discard), F (flush) or N (none of these), then F (FUA), and S, M, A and others, which have no
    /// effect here.
    pub(super) fn of_letters(letters: &[u8]) -> Option<Requested> {
        if letters.is_empty() || !letters.iter().all(u8::is_ascii_uppercase) {
            return None;
        }
        let (before, letters) = match letters {
            [b'F', rest @ ..] if matches!(rest.first(), Some(b'R' | b'W' | b'D' | b'F' | b'N')) => (true, rest),
            _ => (false, letters),
        };
        let operation = match letters[0] {
            b'R' => Some(Operation::Read),
            b'W' => Some(Operation::Write),
            b'D' => Some(Operation::Trim),
            b'F' => Some(Operation::Flush),
            _ if before => Some(Operation::Flush),
            _ => None,
        };
        Some(Requested { operation, durable: before || letters[1..].contains(&b'F') })
    }
}

/// Selects the requests among the events, and counts the omitted ones.
pub(super) struct Events {
    requested: Option<Action>,
    action: Action,
    /// Number of events of a more preferred action, which did not occur at the start of the trace.
    preferred: u64,
    passthrough: u64,
    other: u64,
    durable: u64,
}

impl Events {
    pub(super) fn new(requested: Option<Action>) -> Events {
        let action = requested.unwrap_or(PREFERRED[0]);
        Events { requested, action, preferred: 0, passthrough: 0, other: 0, durable: 0 }
    }

    /// Selects the action, given the actions of the first events.
    pub(super) fn settle(&mut self, first: &[Action]) {
        let found = PREFERRED.into_iter().find(|action| first.contains(action));
        self.action = self.requested.or(found).unwrap_or(PREFERRED[0]);
    }

    /// Returns `true` if events of this action are the requests.
    #[inline]
    pub(super) fn wants(&mut self, action: Action) -> bool {
        if action == self.action {
            return true;
        }
        let rank = |action: Action| PREFERRED.into_iter().position(|preferred| preferred == action);
        if self.requested.is_none() && rank(action) < rank(self.action) && rank(action).is_some() {
            self.preferred += 1;
        }
        false
    }

    /// Counts a command that the block layer passed through to the device. Its address is not a sector of the device.
    pub(super) fn leave_out_passthrough(&mut self) {
        self.passthrough += 1;
    }

    /// Returns the operation of a selected event with `sectors` sectors. `None` if it is omitted.
    #[inline]
    pub(super) fn operation(&mut self, requested: Requested, sectors: u64) -> Option<Operation> {
        let operation = match requested.operation {
            // An empty write is a request for a flush.
            Some(Operation::Write) if sectors == 0 && requested.durable => Some(Operation::Flush),
            Some(Operation::Flush) => Some(Operation::Flush),
            Some(operation) if sectors > 0 => {
                self.durable += u64::from(requested.durable);
                Some(operation)
            }
            _ => None,
        };
        self.other += u64::from(operation.is_none());
        operation
    }

    /// Returns warnings about the events so far.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.preferred > 0 {
            warnings.push(format!(
                "{} events were read as the requests, for the first lines have no better ones; {} of a better kind came \
                 later: see `--action`",
                self.action,
                counted(self.preferred, "event")
            ));
        }
        for (count, what) in [(self.passthrough, "passed a command through"), (self.other, "neither read nor wrote")] {
            if count > 0 {
                let events = counted(count, "event");
                warnings.push(format!("{events} left out that {what}, so that no range of sectors belongs to it"));
            }
        }
        if self.durable > 0 {
            let requests = counted(self.durable, "request");
            warnings.push(format!("{requests} asked for a flush before or FUA, which is not replayed"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read() {
        let requested = |letters: &str| {
            Requested::of_letters(letters.as_bytes()).map(|requested| (requested.operation, requested.durable))
        };
        assert_eq!(requested("R"), Some((Some(Operation::Read), false)));
        assert_eq!(requested("RA"), Some((Some(Operation::Read), false)));
        assert_eq!(requested("WSM"), Some((Some(Operation::Write), false)));
        assert_eq!(requested("WFS"), Some((Some(Operation::Write), true)));
        assert_eq!(requested("FWFS"), Some((Some(Operation::Write), true)));
        assert_eq!(requested("DS"), Some((Some(Operation::Trim), false)));
        assert_eq!(requested("DE"), Some((Some(Operation::Trim), false)));
        assert_eq!(requested("F"), Some((Some(Operation::Flush), false)));
        assert_eq!(requested("FF"), Some((Some(Operation::Flush), true)));
        assert_eq!(requested("FN"), Some((Some(Operation::Flush), true)));
        assert_eq!(requested("N"), Some((None, false)));
        assert_eq!(requested("w"), None);
        assert_eq!(requested(""), None);
    }

    #[test]
    fn the_first_kind_that_occurs_is_selected() {
        let settled = |requested, first: &[Action]| {
            let mut events = Events::new(requested);
            events.settle(first);
            events.action
        };
        assert_eq!(settled(None, &[Action::Complete, Action::Queue, Action::Issue]), Action::Issue);
        assert_eq!(settled(None, &[Action::Complete, Action::Insert, Action::Queue]), Action::Queue);
        assert_eq!(settled(None, &[Action::Complete]), Action::Issue);
        assert_eq!(settled(Some(Action::Complete), &[Action::Issue]), Action::Complete);
        let mut events = Events::new(None);
        events.settle(&[Action::Queue]);
        assert!(events.wants(Action::Queue) && !events.wants(Action::Issue) && !events.wants(Action::Complete));
        assert!(events.warnings()[0].contains("1 event of a better kind"), "{:?}", events.warnings());
    }

    #[test]
    fn empty_writes_flush() {
        let mut events = Events::new(None);
        let write = Requested { operation: Some(Operation::Write), durable: true };
        assert_eq!(events.operation(write, 0), Some(Operation::Flush));
        assert_eq!(events.operation(write, 8), Some(Operation::Write));
        assert_eq!(events.operation(Requested { operation: None, durable: false }, 8), None);
        assert_eq!(events.operation(Requested { operation: Some(Operation::Read), durable: false }, 0), None);
        assert_eq!(events.warnings().len(), 2);
    }
}
