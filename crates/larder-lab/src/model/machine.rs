//! The machine as the lab found it. A field that cannot be read is a reason, not an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One property of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// Its value as text.
    Known(String),
    /// Why it could not be read.
    Unknown(String),
}

impl Field {
    /// The value, or `unknown`.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Known(v) => v,
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What the machine is: no host name, no user name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Hash of the fields that make two machines the same for comparisons.
    pub fingerprint: String,
    /// Field name to value, for instance `cpu.model`, `cache.l2`, `kernel.release`, `thp.enabled`.
    pub fields: BTreeMap<String, Field>,
}

impl MachineRecord {
    /// A field's text, `unknown` where it is absent.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("unknown", Field::text)
    }
}

/// What disturbed the run. `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NoiseRecord {
    /// Share of the run in which some task waited for a CPU, percent (PSI `cpu some`).
    pub cpu_pressure_percent: Option<f64>,
    /// Same for memory.
    pub memory_pressure_percent: Option<f64>,
    /// Same for input and output.
    pub io_pressure_percent: Option<f64>,
    /// Share of CPU time stolen by the hypervisor, percent.
    pub steal_percent: Option<f64>,
    /// Load average over one minute, before and after.
    pub load: Option<(f64, f64)>,
    /// Share of the measured threads' CPU time that others took, percent; not in runs of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Sentences for the user: what, why it matters, what to do.
    pub warnings: Vec<String>,
    /// True when the thresholds were passed.
    pub noisy: bool,
}
