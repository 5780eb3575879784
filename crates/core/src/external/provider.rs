//! Providers: they build the external policies of a program.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::fault::{Cause, invalid};
use super::outside::Outside;
use crate::config::external::read_options;
use crate::config::{DeviceConfig, ExternalConfig, Offer};

/// Policy that a provider is to build.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Key of the policy, such as `gc.victim`.
    pub path: &'static str,
    /// Name and options of the policy.
    pub config: &'a ExternalConfig,
    /// Device of the policy.
    pub device: &'a DeviceConfig,
    /// Seed of all random numbers of the device.
    pub seed: u64,
}

impl Wanted<'_> {
    /// Returns the key and the name of the policy, for errors.
    pub fn who(&self) -> String {
        format!("{} `{}`", self.path, self.config.name)
    }

    /// Returns the error that the program has no policy of this name in this family.
    pub fn unknown(&self) -> Cause {
        let Wanted { path, config, .. } = self;
        invalid(format!("the program that runs the device has no policy `{}` for `{path}`", config.name))
    }

    /// Returns the options of the policy.
    ///
    /// # Errors
    ///
    /// Fails if an option has an unknown name or an invalid value. Options of a policy with an [`Offer`] were checked
    /// before.
    pub fn options<O: DeserializeOwned>(&self) -> Result<O, Cause> {
        read_options(&self.config.options).map_err(invalid)
    }
}

/// Policy of any family that a provider has built.
pub struct Built(Box<dyn Any>);

impl Built {
    /// Creates the result of [`Provider::build`]. `P` is the family: its trait, such as `dyn VictimPolicy`.
    pub fn new<P: ?Sized + 'static>(policy: impl Outside<P> + 'static) -> Built {
        Built(Box::new(Box::new(policy) as Box<dyn Outside<P>>))
    }

    /// Returns the policy, if it is of the family `P`.
    fn of<P: ?Sized + 'static>(self) -> Option<Box<dyn Outside<P>>> {
        self.0.downcast().ok().map(|policy| *policy)
    }
}

/// Builder of external policies.
pub trait Provider: Send + Sync {
    /// Lists the policies that device files name like built-in ones. If a built-in policy has the same name, the name
    /// refers to the built-in one.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    /// Builds a policy of the family with the key [`Wanted::path`].
    ///
    /// # Errors
    ///
    /// [`Wanted::unknown`] if there is no policy of this name, or the cause for which it cannot be built.
    fn build(&self, wanted: Wanted) -> Result<Built, Cause>;
}

/// External policies of a program: its provider, if it has one.
#[derive(Clone, Default)]
pub struct Externals(Option<Arc<dyn Provider>>);

impl Externals {
    /// Creates the externals of a program with this provider.
    pub fn by(provider: Arc<dyn Provider>) -> Externals {
        Externals(Some(provider))
    }

    /// Returns the policies that device files name like built-in ones.
    pub fn offers(&self) -> Vec<Offer> {
        self.0.as_ref().map(|provider| provider.offers()).unwrap_or_default()
    }

    /// Returns the provider of a policy. Fails if the program has none.
    pub fn provider(&self, wanted: Wanted) -> Result<&dyn Provider, String> {
        self.0.as_deref().ok_or_else(|| {
            format!(
                "`{}` is not a built-in policy: run the device from the program, in Python or another language, that \
                 registers the policy (docs/policies.md)",
                wanted.config.name
            )
        })
    }

    /// Builds a policy of the family `P`. The outer result fails if the program has no provider, and the inner one if
    /// the provider fails.
    pub fn build<P: ?Sized + 'static>(&self, wanted: Wanted) -> Result<Result<Box<dyn Outside<P>>, Cause>, String> {
        let built = self.provider(wanted)?.build(wanted);
        Ok(built.and_then(|built| built.of().ok_or_else(|| invalid("the program built a policy of another family"))))
    }
}

impl PartialEq for Externals {
    /// Returns `true` if both have the same provider.
    fn eq(&self, other: &Externals) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl fmt::Debug for Externals {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Externals" } else { "no Externals" })
    }
}
