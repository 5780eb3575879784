//! Policy families: a macro that declares all policies of a family, with one file and one line per policy.
//!
//! The line in [`policy_family!`](crate::policy_family) declares the module, the config variant, its name and the
//! constructor. The parser, the JSON schema, the reference page, the list of names in errors and the contract tests
//! follow from it.

use crate::config::DeviceConfig;

/// Policy of any family: its options, and its constructor.
pub trait Policy: Sized + Clone + std::fmt::Debug {
    /// Options of the policy. `{}` if it has none.
    type Config: Default + Clone + PartialEq + std::fmt::Debug;

    /// Checks the options for this device without building the policy, and must be cheap. Fails with the invalid option
    /// and the cause.
    fn check(_options: &Self::Config, _device: &DeviceConfig) -> Result<(), String> {
        Ok(())
    }

    /// Builds the policy for a device. Fails with the invalid option and the cause.
    fn new(options: &Self::Config, device: &DeviceConfig, seed: u64) -> Result<Self, String>;
}

/// Declares one policy family.
///
/// Device files give a policy as its name (`victim = "greedy"`), or as a table of one key with its options (`victim = {
/// d-choices = { d = 10 } }`). This is serde's external tagging, which reports errors at the exact key, plus the bare
/// name for default options. The built policy is an enum, so that a device can be cloned. It derefs to the family's
/// trait, which costs 1-3 % of an event.
///
/// A family that is declared with `or external`, the name of a module, also accepts policies of the program that runs
/// the device (`external`): `victim = { external = { name = "..." } }`.
macro_rules! policy_family {
    ($(#[doc = $doc:literal])* $family:ident / $config:ident: dyn $contract:path $(, or $external:ident)? {
        $($(#[doc = $policy_doc:literal])* $module:ident :: $policy:ident = $name:literal),+ $(,)?
    }) => {
        $(pub mod $module;)+

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $config {
            $($(#[doc = $policy_doc])* $policy(<$module::$policy as $crate::policy::Policy>::Config),)+
            $(
                /// Policy of the program that runs the device (docs/policies.md).
                External($external::Config),
            )?
        }

        impl $config {
            /// Names of the built-in policies of the family.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns every built-in policy with its default options, for contract tests and lists.
            pub fn all() -> Vec<$config> {
                vec![$($config::$policy(Default::default())),+]
            }

            /// Returns the name of the policy.
            pub fn name(&self) -> &str {
                match self {
                    $($config::$policy(_) => $name,)+
                    $($config::External($external::Config { name, .. }) => name,)?
                }
            }

            /// Checks the options for this device. Fails with the name of the policy, and the invalid option with the
            /// cause.
            pub fn check(&self, device: &$crate::config::DeviceConfig) -> Result<(), (&'static str, String)> {
                match self {
                    $($config::$policy(options) => {
                        <$module::$policy as $crate::policy::Policy>::check(options, device).map_err(|e| ($name, e))
                    })+
                    $($config::External($external::Config { .. }) => Ok(()),)?
                }
            }

            /// Builds the policy.
            pub fn build(
                &self,
                device: &$crate::config::DeviceConfig,
                seed: u64,
                _externals: &$crate::external::Externals,
            ) -> Result<$family, String> {
                use $crate::policy::Policy;
                Ok(match self {
                    $($config::$policy(options) => $family::$policy(
                        $module::$policy::new(options, device, seed).map_err(|e| format!("{}: {e}", $name))?,
                    ),)+
                    $($config::External(options) => {
                        $family::External(Box::new($external::External::new(options, device, seed, _externals)?))
                    })?
                })
            }
        }

        impl serde::Serialize for $config {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                match self {
                    $($config::$policy(options) if *options == Default::default() => serializer.serialize_str($name),
                    $config::$policy(options) => {
                        let mut map = serializer.serialize_map(Some(1))?;
                        map.serialize_entry($name, options)?;
                        map.end()
                    })+
                    $($config::External(options) => {
                        let mut map = serializer.serialize_map(Some(1))?;
                        map.serialize_entry($external::EXTERNAL, options)?;
                        map.end()
                    })?
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $config {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $config;
                    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                        write!(f, "one of {}, or a table of one of them with its options", $config::NAMES.join(", "))
                    }
                    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<$config, E> {
                        match name {
                            $($name => Ok($config::$policy(Default::default())),)+
                            _ => Err($crate::config::unknown_variant(name, $config::NAMES)),
                        }
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$config, A::Error> {
                        use serde::de::Error;
                        let Some(name) = map.next_key::<String>()? else {
                            return Err(A::Error::custom(format!("an empty table: expected one of {}", $config::NAMES.join(", "))));
                        };
                        let policy = match name.as_str() {
                            $($name => $config::$policy(map.next_value()?),)+
                            $($external::EXTERNAL => $config::External(map.next_value()?),)?
                            _ => return Err($crate::config::unknown_variant(&name, $config::NAMES)),
                        };
                        match map.next_key::<String>()? {
                            None => Ok(policy),
                            Some(second) => Err(A::Error::custom(format!("two policies, `{name}` and `{second}`: name one"))),
                        }
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $config {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($family).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut choices = Vec::new();
                $({
                    let doc = concat!($($policy_doc, "\n"),*);
                    let doc = doc.lines().map(str::trim).collect::<Vec<_>>().join("\n");
                    let options = generator.subschema_for::<<$module::$policy as $crate::policy::Policy>::Config>();
                    choices.push(schemars::json_schema!({ "description": doc, "const": $name }));
                    choices.push(schemars::json_schema!({
                        "description": doc,
                        "type": "object", "properties": { $name: options },
                        "required": [$name], "additionalProperties": false,
                    }));
                })+
                $({
                    let options = generator.subschema_for::<$external::Config>();
                    choices.push(schemars::json_schema!({
                        "description": "Policy of the program that runs the device (docs/policies.md).",
                        "type": "object", "properties": { $external::EXTERNAL: options },
                        "required": [$external::EXTERNAL], "additionalProperties": false,
                    }));
                })?
                schemars::json_schema!({ "anyOf": choices })
            }
        }

        /// Policy with its state. A clone has a copy of the state.
        #[derive(Clone, Debug)]
        pub enum $family {
            $($(#[doc = $policy_doc])* $policy($module::$policy),)+
            $(
                /// External policy of the program that runs the device.
                External(Box<$external::External>),
            )?
        }

        impl $family {
            /// Returns the fault of an external policy.
            pub fn fault(&self) -> Option<&$crate::external::Fault> {
                match self {
                    $($family::$policy(_) => None,)+
                    $($family::External(policy) => { let policy: &$external::External = policy; policy.fault() })?
                }
            }
        }

        impl std::ops::Deref for $family {
            type Target = dyn $contract;
            fn deref(&self) -> &(dyn $contract + 'static) {
                match self {
                    $($family::$policy(policy) => policy,)+
                    $($family::External(policy) => { let policy: &$external::External = policy; policy })?
                }
            }
        }

        impl std::ops::DerefMut for $family {
            fn deref_mut(&mut self) -> &mut (dyn $contract + 'static) {
                match self {
                    $($family::$policy(policy) => policy,)+
                    $($family::External(policy) => { let policy: &mut $external::External = policy; policy })?
                }
            }
        }
    };
}

pub(crate) use policy_family;
