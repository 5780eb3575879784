//! Events of Linux's block layer: which of them are the requests of a trace, and what they do.
//!
//! Each request leaves several events behind: it is queued (Q), inserted into the scheduler (I), issued to the driver
//! (D) and completed (C), each with its time. Only one of them is the request that is replayed.

use std::fmt;
use std::str::FromStr;

use super::counted;
use crate::sim::request::Operation;

/// The event that stands for the request in a trace of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Q: handed to the block layer, before merging and splitting.
    Queue,
    /// I: handed to the scheduler.
    Insert,
    /// D: handed to the driver: what the device gets, and when.
    Issue,
    /// C: ended.
    Complete,
}

/// Those that are taken where the user names none, the first that occurs.
const PREFERRED: [Action; 3] = [Action::Issue, Action::Queue, Action::Insert];

impl Action {
    /// The letter that blkparse has for it.
    pub const fn letter(self) -> char {
        match self {
            Action::Queue => 'Q',
            Action::Insert => 'I',
            Action::Issue => 'D',
            Action::Complete => 'C',
        }
    }

    /// The action of that letter, if it can be a request.
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
        Action::of_letter(text.as_bytes())
            .ok_or_else(|| format!("`{text}` is no event that can be a request; choose one of D, Q, I, C"))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// What an event asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// `None` where it is none that a trace of requests has.
    pub(super) operation: Option<Operation>,
    /// It also asks for a flush before it, or for its data to be durable when it ends.
    pub(super) durable: bool,
}

impl Asked {
    /// From blkparse's letters (`blk_fill_rwbs` in Linux, `fill_rwbs` in blkparse): F for a flush before, then R, W, D
    /// (discard) or F (flush) or N (none of these), then F (FUA), S, M, A and others that change nothing here.
    pub(super) fn of_letters(letters: &[u8]) -> Option<Asked> {
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
        Some(Asked { operation, durable: before || letters[1..].contains(&b'F') })
    }
}

/// Picks the requests out of the events, and counts what it leaves out.
pub(super) struct Events {
    asked: Option<Action>,
    action: Action,
    /// Events that would have been preferred, had the start of the trace had one.
    preferred: u64,
    passthrough: u64,
    other: u64,
    durable: u64,
}

impl Events {
    pub(super) fn new(asked: Option<Action>) -> Events {
        let action = asked.unwrap_or(PREFERRED[0]);
        Events { asked, action, preferred: 0, passthrough: 0, other: 0, durable: 0 }
    }

    /// Settles on an action, from those of the first events.
    pub(super) fn settle(&mut self, first: &[Action]) {
        let found = PREFERRED.into_iter().find(|action| first.contains(action));
        self.action = self.asked.or(found).unwrap_or(PREFERRED[0]);
    }

    /// Whether events of that action are the requests.
    #[inline]
    pub(super) fn wants(&mut self, action: Action) -> bool {
        if action == self.action {
            return true;
        }
        let rank = |action: Action| PREFERRED.into_iter().position(|preferred| preferred == action);
        if self.asked.is_none() && rank(action) < rank(self.action) && rank(action).is_some() {
            self.preferred += 1;
        }
        false
    }

    /// A command that the block layer passed through to the device: its address is none of the device's sectors.
    pub(super) fn leave_out_passthrough(&mut self) {
        self.passthrough += 1;
    }

    /// The operation of an event that is wanted, of so many sectors; `None` if it is left out.
    #[inline]
    pub(super) fn operation(&mut self, asked: Asked, sectors: u64) -> Option<Operation> {
        let operation = match asked.operation {
            // An empty write is how a flush is asked for.
            Some(Operation::Write) if sectors == 0 && asked.durable => Some(Operation::Flush),
            Some(Operation::Flush) => Some(Operation::Flush),
            Some(operation) if sectors > 0 => {
                self.durable += u64::from(asked.durable);
                Some(operation)
            }
            _ => None,
        };
        self.other += u64::from(operation.is_none());
        operation
    }

    /// What was noticed.
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
        let asked = |letters: &str| Asked::of_letters(letters.as_bytes()).map(|asked| (asked.operation, asked.durable));
        assert_eq!(asked("R"), Some((Some(Operation::Read), false)));
        assert_eq!(asked("RA"), Some((Some(Operation::Read), false)));
        assert_eq!(asked("WSM"), Some((Some(Operation::Write), false)));
        assert_eq!(asked("WFS"), Some((Some(Operation::Write), true)));
        assert_eq!(asked("FWFS"), Some((Some(Operation::Write), true)));
        assert_eq!(asked("DS"), Some((Some(Operation::Trim), false)));
        assert_eq!(asked("DE"), Some((Some(Operation::Trim), false)));
        assert_eq!(asked("F"), Some((Some(Operation::Flush), false)));
        assert_eq!(asked("FF"), Some((Some(Operation::Flush), true)));
        assert_eq!(asked("FN"), Some((Some(Operation::Flush), true)));
        assert_eq!(asked("N"), Some((None, false)));
        assert_eq!(asked("w"), None);
        assert_eq!(asked(""), None);
    }

    #[test]
    fn the_first_kind_that_occurs_is_taken() {
        let settled = |asked, first: &[Action]| {
            let mut events = Events::new(asked);
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
        let write = Asked { operation: Some(Operation::Write), durable: true };
        assert_eq!(events.operation(write, 0), Some(Operation::Flush));
        assert_eq!(events.operation(write, 8), Some(Operation::Write));
        assert_eq!(events.operation(Asked { operation: None, durable: false }, 8), None);
        assert_eq!(events.operation(Asked { operation: Some(Operation::Read), durable: false }, 0), None);
        assert_eq!(events.warnings().len(), 2);
    }
}
