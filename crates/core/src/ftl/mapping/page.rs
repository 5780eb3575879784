//! Page mapping: the whole map is in the controller's memory, and a unit may be anywhere.

use super::{Context, Mapping, SchemeOptions};
use crate::config::DeviceConfig;
use crate::policy::Policy;

/// Page mapping has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageConfig {}

impl SchemeOptions for PageConfig {}

/// The whole map is in memory, so a look-up takes no time.
#[derive(Clone, Debug)]
pub struct Page;

impl Policy for Page {
    type Config = PageConfig;
    fn new(_: &PageConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Page)
    }
}

impl<C: Context + ?Sized> Mapping<C> for Page {}
