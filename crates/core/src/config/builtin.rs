//! Built-in devices: the files of `crates/core/devices/`.

/// A built-in device.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Name of the device, as users write it.
    pub name: &'static str,
    /// Text of its device file.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        impl Builtin {
            /// All built-in devices. To add one, add its file and its name here.
            pub const ALL: &[Builtin] = &[
                $(Builtin { name: $name, text: include_str!(concat!("../../devices/", $name, ".toml")) }),+
            ];
        }
    };
}

builtins! {
    "agrawal2008",
    "agrawal2008-fusionio",
    "agrawal2008-mtron",
    "agrawal2008-usb",
    "agrawal2008-zeus",
    "bench-1t",
    "bench-32g",
    "hu2011",
    "micron-7450-max",
    "mqsim-default",
    "park2015",
    "qlc-direct",
    "qlc-nvme",
    "samsung-pm9a3",
    "sk-hynix-pe8110",
    "tiny",
    "tlc-direct",
    "tlc-nvme",
    "vssim-a",
    "vssim-b",
    "vssim-c",
    "vssim-d",
    "vssim-e",
    "wd-dc",
    "x25m",
}

impl Builtin {
    /// Returns the built-in device called `name`.
    pub fn named(name: &str) -> Option<&'static Builtin> {
        Builtin::ALL.iter().find(|device| device.name == name)
    }

    /// Returns the names of the built-in devices, in alphabetical order.
    pub fn names() -> Vec<&'static str> {
        Builtin::ALL.iter().map(|device| device.name).collect()
    }
}
