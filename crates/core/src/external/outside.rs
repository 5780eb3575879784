//! Policies of other programs, which implement the traits of built-in ones.

use super::fault::Cause;

/// Policy of another program. `P` is the trait of its family. Each type that implements the trait and can be cloned is
/// one, see `outside_policies!`.
pub trait Outside<P: ?Sized>: Send + Sync {
    /// Returns the policy.
    fn policy(&self) -> &P;
    /// Returns the policy, to call it.
    fn policy_mut(&mut self) -> &mut P;
    /// Returns the error of the policy, if it has failed.
    fn error(&self) -> Option<&Cause>;
    /// Returns another policy with the same state.
    fn copy(&self) -> Box<dyn Outside<P>>;
}

/// Declares that each type that implements the trait of a policy family, and can be cloned, is an external policy. The
/// trait has a method `error`.
macro_rules! outside_policies {
    ($contract:ident) => {
        impl<T: $contract + Clone + Send + Sync + 'static> $crate::external::Outside<dyn $contract> for T {
            fn policy(&self) -> &(dyn $contract + 'static) {
                self
            }
            fn policy_mut(&mut self) -> &mut (dyn $contract + 'static) {
                self
            }
            fn error(&self) -> Option<&$crate::external::Cause> {
                <T as $contract>::error(self)
            }
            fn copy(&self) -> Box<dyn $crate::external::Outside<dyn $contract>> {
                Box::new(self.clone())
            }
        }
    };
}

pub(crate) use outside_policies;
