//! Guards: they call external policies, and store the first fault of each.

use std::fmt;
use std::sync::OnceLock;

use super::fault::{Cause, Fault, invalid, position};
use super::outside::Outside;
use super::provider::{Externals, Wanted};
use crate::state::StateError;

/// External policy of the family `P`, until it fails. After a failure it is no longer called.
pub struct Guard<P: ?Sized> {
    who: String,
    policy: Option<Box<dyn Outside<P>>>,
    fault: OnceLock<Fault>,
}

impl<P: ?Sized + 'static> Guard<P> {
    /// Builds a policy, or creates a guard with a fault if the provider fails. Fails if the program has no provider.
    pub fn new(externals: &Externals, wanted: Wanted) -> Result<Guard<P>, String> {
        let mut guard = Guard { who: wanted.who(), policy: None, fault: OnceLock::new() };
        match externals.build(wanted)? {
            Ok(policy) => guard.set(policy),
            Err(cause) => guard.fail(cause),
        }
        Ok(guard)
    }

    fn set(&mut self, policy: Box<dyn Outside<P>>) {
        match policy.error().cloned() {
            None => self.policy = Some(policy),
            Some(cause) => self.fail(cause),
        }
    }

    /// Returns the policy, unless it has failed.
    pub fn policy(&self) -> Option<&P> {
        self.policy.as_deref().map(Outside::policy)
    }

    /// Drops the policy, which is no longer called.
    pub fn release(&mut self) {
        self.policy = None;
    }

    /// Calls the policy and returns its result, or `None` if it fails or has failed before.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&mut P) -> R) -> Option<R> {
        let policy = self.policy.as_deref_mut().filter(|_| self.fault.get().is_none())?;
        let result = ask(policy.policy_mut());
        match policy.error().cloned() {
            None => Some(result),
            Some(cause) => {
                self.fail(cause);
                None
            }
        }
    }

    /// Returns the position `chosen`, or refuses it and returns `None` if it is not below `count`.
    pub fn position(&mut self, chosen: i64, count: usize, of: &str) -> Option<usize> {
        self.accept(position(chosen, count, of))
    }

    /// Returns the value of a check, or refuses the result of the policy for the cause that the check returned.
    pub fn accept<R>(&mut self, checked: Result<R, Cause>) -> Option<R> {
        checked.map_err(|cause| self.fail(cause)).ok()
    }

    /// Calls the policy without changing it, like [`Guard::ask`].
    pub fn look<R>(&self, look: impl FnOnce(&P) -> R) -> Option<R> {
        let policy = self.policy.as_deref().filter(|_| self.fault.get().is_none())?;
        let result = look(policy.policy());
        let Some(cause) = policy.error() else { return Some(result) };
        self.note(cause.clone());
        None
    }

    /// Refuses an invalid result of the policy: stores a fault, and calls the policy no longer.
    pub fn refuse(&mut self, what: String) {
        self.fail(invalid(what));
    }

    fn fail(&mut self, cause: Cause) {
        self.policy = None;
        self.note(cause);
    }

    /// Stores the fault, unless there is one.
    fn note(&self, cause: Cause) {
        self.fault.get_or_init(|| Fault::new(self.who.clone(), cause));
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.get()
    }

    /// Fails, because the state of an external policy cannot be saved.
    pub fn save(&self) -> Result<(), StateError> {
        Err(StateError::Policy(format!("{} is an external policy: its state cannot be saved", self.who)))
    }
}

impl<P: ?Sized + 'static> Clone for Guard<P> {
    /// Copies the policy. If the copy has failed, the clone has a fault.
    fn clone(&self) -> Guard<P> {
        let mut guard = Guard { who: self.who.clone(), policy: None, fault: self.fault.clone() };
        if let Some(policy) = &self.policy {
            guard.set(policy.copy());
        }
        guard
    }
}

impl<P: ?Sized> fmt::Debug for Guard<P> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Guard({}, {:?})", self.who, self.fault)
    }
}
