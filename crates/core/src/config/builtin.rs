//! The devices that come with Floatgate.

/// A device that comes with Floatgate: a file of `devices/`.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        /// All built-in devices: to add one, add its file and its name here.
        pub const BUILTINS: &[Builtin] = &[
            $(Builtin { name: $name, text: include_str!(concat!("../../../../devices/", $name, ".toml")) }),+
        ];
    };
}

builtins! {
    "agrawal2008",
    "bench-1t",
    "bench-32g",
    "hu2011",
    "mqsim-default",
    "park2015",
    "qlc-nvme",
    "tiny",
    "tlc-nvme",
    "vssim-a",
    "vssim-b",
    "vssim-c",
    "vssim-d",
    "vssim-e",
    "x25m",
}

/// The built-in device of this name.
pub fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|device| device.name == name)
}

/// The names of the built-in devices, in alphabetical order.
pub fn builtin_names() -> Vec<&'static str> {
    BUILTINS.iter().map(|device| device.name).collect()
}
