//! Timings with a name: published in 2003, measured here, or submitted.

use serde::{Deserialize, Serialize};

use super::{FittedModel, Timings};
use crate::published;

/// Where timings come from; each field of the calculator says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// In a run of the lab on this machine.
    Measured,
    /// In the tables of 2003.
    Published,
    /// Imported from another machine.
    Submitted,
    /// By hand.
    Typed,
}

impl Source {
    /// Label beside a field.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Measured => "measured here",
            Self::Published => "published",
            Self::Submitted => "submitted",
            Self::Typed => "typed",
        }
    }
}

/// Four timings under a name that a user can choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preset {
    /// Name in the list, for instance `mmap, second pass`.
    pub label: String,
    /// Half a sentence more: system, sender, or how it was measured.
    pub detail: String,
    /// Where it comes from.
    pub source: Source,
    /// The timings.
    pub timings: Timings,
    /// The better model, where the run has one.
    #[serde(default)]
    pub fitted: Option<FittedModel>,
}

/// One machine's row of the table of machines: no host name, no user name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// Machine, by its processor's model.
    pub machine: String,
    /// Operating system with its version.
    pub os: String,
    /// The timings, microseconds.
    pub timings: Timings,
    /// Day on which they were taken, RFC 3339.
    pub date: String,
}

impl Submission {
    /// The same as a choice of the calculator.
    #[must_use]
    pub fn preset(&self) -> Preset {
        Preset {
            label: self.machine.clone(),
            detail: format!("{}, {}", self.os, self.date),
            source: Source::Submitted,
            timings: self.timings,
            fitted: None,
        }
    }
}

/// The seven machines of the published table, then the pair of the Cube with mmap and `vm_allocate`.
#[must_use]
pub fn published_presets() -> Vec<Preset> {
    let mut presets: Vec<Preset> = published::zerofill_machines()
        .iter()
        .filter_map(|m| {
            let timings = Timings::new(
                m.alloc1_us,
                m.alloc1_fault_us,
                m.alloc2_us,
                m.alloc2_fault_us,
            )
            .ok()?;
            Some(Preset {
                label: m.cpu_machine.clone(),
                detail: if m.os == "unknown" {
                    format!("system unknown, {}", m.submitter)
                } else {
                    format!("Mac OS X {}, {}", m.os, m.submitter)
                },
                source: Source::Published,
                timings,
                fitted: None,
            })
        })
        .collect();
    let rows = published::zerofill_mmap();
    let pair = [
        ("mmap, 450 MHz Cube", column(rows, |r| r.mmap_us)),
        (
            "vm_allocate, 450 MHz Cube",
            column(rows, |r| r.vm_allocate_us),
        ),
    ];
    presets.extend(pair.into_iter().filter_map(|(label, timings)| {
        Some(Preset {
            label: label.to_owned(),
            detail: "Part IV, August 2003".to_owned(),
            source: Source::Published,
            timings: timings?,
            fitted: None,
        })
    }));
    presets
}

fn column(
    rows: &[published::ZerofillMmap],
    pick: fn(&published::ZerofillMmap) -> f64,
) -> Option<Timings> {
    let at = |name: &str| rows.iter().find(|r| r.operation == name).map(pick);
    Timings::new(
        at("alloc1")?,
        at("alloc1_fault")?,
        at("alloc2"),
        at("alloc2_fault")?,
    )
    .ok()
}

/// Why a machine was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineLookup {
    /// No name holds what was asked for.
    #[error("no machine is called '{asked}'; choose one of:\n  {}", names.join("\n  "))]
    Unknown {
        /// What was asked for.
        asked: String,
        /// All names.
        names: Vec<String>,
    },
    /// Several names hold it.
    #[error("'{asked}' fits more than one machine; say which:\n  {}", names.join("\n  "))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// The names that fit.
        names: Vec<String>,
    },
}

/// Lower case, letters, digits and points only: how names are compared.
fn squash(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '.')
        .collect()
}

/// Finds a machine by its name or a part of it; case, blanks and signs do not count.
///
/// The whole name wins, then the beginning of a name, then all words of the question anywhere in a name.
///
/// # Errors
/// Lists the names to choose from when none or several fit.
///
/// ```
/// use larder_lab::calc::{find_preset, published_presets};
///
/// let presets = published_presets();
/// assert_eq!(find_preset(&presets, "1ghz").expect("one fits").label, "1 GHz G4");
/// assert!(find_preset(&presets, "g4").is_err());
/// ```
pub fn find_preset<'a>(presets: &'a [Preset], asked: &str) -> Result<&'a Preset, MachineLookup> {
    let whole = squash(asked);
    let words: Vec<String> = asked
        .split_whitespace()
        .map(squash)
        .filter(|w| !w.is_empty())
        .collect();
    let every = |keep: &dyn Fn(&str) -> bool| -> Vec<&'a Preset> {
        presets.iter().filter(|p| keep(&squash(&p.label))).collect()
    };
    let rules: [&dyn Fn(&str) -> bool; 3] = [
        &|name| name == whole,
        &|name| name.starts_with(&whole),
        &|name| words.iter().all(|w| name.contains(w.as_str())),
    ];
    if !whole.is_empty() {
        for rule in rules {
            match every(rule).as_slice() {
                [] => {}
                [one] => return Ok(one),
                several => {
                    return Err(MachineLookup::Ambiguous {
                        asked: asked.to_owned(),
                        names: several.iter().map(|p| p.label.clone()).collect(),
                    });
                }
            }
        }
    }
    Err(MachineLookup::Unknown {
        asked: asked.to_owned(),
        names: presets.iter().map(|p| p.label.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(asked: &str) -> String {
        match find_preset(&published_presets(), asked) {
            Ok(p) => p.label.clone(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn seven_machines_and_the_pair() {
        let presets = published_presets();
        assert_eq!(presets.len(), 9);
        assert_eq!(presets[0].timings.alloc2(), None);
        assert_eq!(presets[7].timings.alloc1(), 9.7);
        assert_eq!(presets[8].timings.alloc2_fault(), 77.3);
    }

    #[test]
    fn parts_of_names_are_enough() {
        assert_eq!(found("1 GHz G4"), "1 GHz G4");
        assert_eq!(found("1GHZ"), "1 GHz G4");
        assert_eq!(found("1.25"), "1.25GHz G4 (167MHz system bus)");
        assert_eq!(found("powerbook"), "867 MHz G4 (Powerbook)");
        assert_eq!(found("ibook g3"), "500 MHz G3 (IBook)");
        assert_eq!(found("mmap"), "mmap, 450 MHz Cube");
        assert_eq!(found("450 MHz G4"), "450 MHz G4 (Cube)");
    }

    #[test]
    fn no_or_several_machines_list_the_names() {
        let several = found("500 MHz");
        assert!(several.contains("more than one"), "{several}");
        assert!(several.contains("500 MHz G3 (IBook)") && several.contains("500 MHz G4"));
        assert!(!several.contains("Powerbook"));
        for none in ["cray", "", "  ", "!!"] {
            let text = found(none);
            assert!(text.starts_with("no machine"), "{text}");
            assert!(text.contains("800 MHz G4 (iMac)"), "{text}");
        }
    }
}
