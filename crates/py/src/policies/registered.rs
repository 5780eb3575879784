//! Registered policies: the policies in Python that a command line names.
//!
//! A device of the package has its policies when it is created. A command loads its device later, so its policies are
//! looked up by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use floatgate_core::policies::{Built, Cause, Externals, Offer, Provider, Wanted, invalid};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::Policies;
use super::call::python;

/// Policy that the package has registered: the path of its key, its name, and the digest of its source.
pub type Named = (String, String, String);

/// Provider of registered policies.
struct Registered {
    /// Function of the package that returns a function that builds a policy.
    find: Py<PyAny>,
    offers: Vec<Offer>,
    /// Policies of the extension module.
    others: Externals,
}

/// Returns a text that lives as long as the process. A command registers its policies once.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Creates the externals of a command with registered policies. `find` returns the function that builds a policy, given
/// its path, its name, the digest of its source, and the device as JSON.
pub fn externals(find: Py<PyAny>, named: Vec<Named>, others: Externals) -> Externals {
    let offer = |(path, name, source)| {
        let doc = "Policy in Python.";
        Offer::new::<Map<String, Value>>(kept(path), kept(name), doc).with_source(kept(source))
    };
    Externals::by(Arc::new(Registered { find, offers: named.into_iter().map(offer).collect(), others }))
}

impl Provider for Registered {
    fn offers(&self) -> Vec<Offer> {
        self.others.offers().into_iter().chain(self.offers.iter().cloned()).collect()
    }

    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        let Wanted { path, config, device, .. } = wanted;
        if self.others.offers().iter().any(|offer| (offer.path(), offer.name()) == (path, config.name.as_str())) {
            return self.others.provider(wanted).map_err(invalid)?.build(wanted);
        }
        let device = serde_json::to_value(device.resolved()).unwrap_or_default().to_string();
        let maker = python(|py| self.find.call1(py, (path, &config.name, &config.source, device)))?;
        let makers = BTreeMap::from([(path.to_owned(), maker)]);
        Policies { makers, others: Externals::default() }.build(wanted)
    }
}
