//! Configurations of other SSD simulators, as device files and job files.
//!
//! [`import`] recognizes the simulator by the contents of the file. Each value of the result carries the key that it
//! was computed from, and each key without an equivalent is listed with the consequence.

mod disksim;
mod draft;
mod femu;
mod keys;
mod mqsim;
mod mqsim_jobs;
mod ssdsim;

pub use draft::Lost;

/// Simulator whose configurations are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulator {
    /// MQSim: `ssdconfig.xml`.
    Mqsim,
    /// MQSim: `workload.xml`.
    MqsimWorkload,
    /// SSDsim: `page.parameters`.
    Ssdsim,
    /// DiskSim with Microsoft's SSD extension: a `.parv` file.
    Disksim,
    /// FEMU: the options of the QEMU device, on a command line or in a script.
    Femu,
}

impl Simulator {
    /// Returns the name of the simulator.
    pub fn name(self) -> &'static str {
        match self {
            Simulator::Mqsim | Simulator::MqsimWorkload => "MQSim",
            Simulator::Ssdsim => "SSDsim",
            Simulator::Disksim => "DiskSim",
            Simulator::Femu => "FEMU",
        }
    }

    /// Returns a description of the file, with an article.
    pub fn described(self) -> &'static str {
        match self {
            Simulator::Mqsim => "a configuration of MQSim",
            Simulator::MqsimWorkload => "a workload of MQSim",
            Simulator::Ssdsim => "a parameter file of SSDsim",
            Simulator::Disksim => "a parameter file of DiskSim",
            Simulator::Femu => "a script or command line of FEMU",
        }
    }
}

/// Result of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Simulator that the file is for.
    pub simulator: Simulator,
    /// Device file, or job file for [`Simulator::MqsimWorkload`], with comments.
    pub text: String,
    /// Keys of the file that the text does not carry over, with the consequences.
    pub lost: Vec<Lost>,
}

/// Error of an import.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text belongs to none of the simulators.
    #[error(
        "not a configuration that can be imported: expected MQSim's ssdconfig.xml or workload.xml, SSDsim's \
         page.parameters, a .parv file of DiskSim with an ssdmodel_ssd, or a script or command line with `-device femu`"
    )]
    Unrecognized,
    /// The text cannot be read as a file of the simulator.
    #[error("{}: {message}", .simulator.described())]
    Malformed {
        /// Simulator that the file is for.
        simulator: Simulator,
        /// Problem and remedy.
        message: String,
    },
}

/// Maximum number of bytes that are examined to recognize a simulator.
const HEAD: usize = 1 << 20;

/// Returns the simulator that a file with this text is for.
pub fn recognize(text: &str) -> Option<Simulator> {
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    if head.trim_start().starts_with('<') {
        return match () {
            () if head.contains("<MQSim_IO_Scenarios") => Some(Simulator::MqsimWorkload),
            () if head.contains("<Device_Parameter_Set") => Some(Simulator::Mqsim),
            () => None,
        };
    }
    let simulators = [
        (Simulator::Ssdsim, ssdsim::recognize as fn(&str) -> bool),
        (Simulator::Disksim, disksim::recognize),
        (Simulator::Femu, femu::recognize),
    ];
    simulators.into_iter().find(|(_, recognize)| recognize(head)).map(|(simulator, _)| simulator)
}

/// Imports the text of a file. `path` names the device, and appears in the comments. `scenario` is the scenario of a
/// workload of MQSim that is imported, counted from 1.
pub fn import(text: &str, path: &str, scenario: usize) -> Result<Imported, ImportError> {
    let simulator = recognize(text).ok_or(ImportError::Unrecognized)?;
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let imported = match simulator {
        Simulator::Mqsim => mqsim::import(text, file).map(draft::Draft::finish),
        Simulator::MqsimWorkload => mqsim_jobs::import(text, file, scenario),
        Simulator::Ssdsim => ssdsim::import(text, file).map(draft::Draft::finish),
        Simulator::Disksim => disksim::import(text, file).map(draft::Draft::finish),
        Simulator::Femu => femu::import(text, file).map(draft::Draft::finish),
    };
    let (text, lost) = imported.map_err(|message| ImportError::Malformed { simulator, message })?;
    Ok(Imported { simulator, text, lost })
}
