//! The settings file that the lab writes and the library reads: TOML, with the evidence beside each value.
//!
//! ```toml
//! version = 1
//!
//! [pages]
//! cluster_pages = 128       # or "auto"
//! zeroing = "avx2"          # or "auto", "portable", "sse2", "avx512", "stosb"
//! prezero = false
//!
//! [evidence.pages.cluster_pages]
//! run = "3f9c0e12"
//! because = "the smallest cluster within 3 % of the best"
//! ratio = 1.01
//! lo = 0.99
//! hi = 1.03
//! ```
//!
//! A key that is not known, or a value that makes no sense, is an error that names it: a setting that was
//! misspelt would otherwise be ignored in silence.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use crate::os::zero::Zeroing;
use crate::pages::ClusterSize;

/// The version of the file's layout that this library writes and reads.
pub const VERSION: u32 = 1;

/// Largest file that is read: settings take a few hundred bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Why settings cannot be used.
///
/// ```
/// # use larder::settings::{Settings, SettingsError};
/// let error = "version = 1\n[pages]\nprezero = 7\n".parse::<Settings>().unwrap_err();
/// assert!(matches!(error, SettingsError::Invalid { .. }));
/// assert!(error.to_string().contains("line 3"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read settings file {}: {reason}; write one with `larder settings --write`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The text is no settings.
    #[error("{origin}: {reason}")]
    Invalid {
        /// The file, or `settings`.
        origin: String,
        /// What is wrong, with the line.
        reason: String,
    },
}

/// What the file says about pages.
///
/// ```
/// # use larder::{os::zero::Zeroing, settings::Settings};
/// let settings: Settings = "version = 1\n[pages]\nzeroing = \"avx2\"\n".parse()?;
/// let pages = settings.pages();
/// assert_eq!((pages.zeroing, pages.cluster_pages), (Some(Zeroing::Avx2), None));
/// # Ok::<(), larder::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PageSettings {
    /// Pages of a cluster; `None` when the file does not say.
    pub cluster_pages: Option<ClusterSize>,
    /// Routine that zeroes a page; `None` when the file does not say or says `auto`.
    pub zeroing: Option<Zeroing>,
    /// Whether a helper keeps a pre-zeroed stock.
    pub prezero: bool,
}

/// Why a value was written.
///
/// [`Settings::evidence`] shows it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Evidence {
    /// Identifier of the lab's run.
    pub run: String,
    /// The reason in a sentence.
    #[serde(default)]
    pub because: String,
    /// Ratio to the best setting.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub lo: Option<f64>,
    /// Upper end of its interval.
    pub hi: Option<f64>,
    /// When it was measured.
    pub date: Option<String>,
    /// Fingerprint of the machine that it was measured on.
    pub machine: Option<String>,
}

/// A settings file that was read and found to make sense.
///
/// ```
/// use larder::settings::Settings;
/// let settings: Settings = "version = 1\n[pages]\ncluster_pages = 64\n".parse()?;
/// assert_eq!(settings.pages().cluster_pages.map(|c| c.resolve()), Some(64));
///
/// let error = "version = 1\n[pages]\ncluster_size = 64\n".parse::<Settings>().unwrap_err();
/// assert!(error.to_string().contains("cluster_size"));
/// # Ok::<(), larder::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    pages: PageSettings,
    evidence: BTreeMap<String, BTreeMap<String, Evidence>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: u32,
    #[serde(default)]
    pages: RawPages,
    #[serde(default)]
    evidence: BTreeMap<String, BTreeMap<String, Evidence>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPages {
    cluster_pages: Option<RawCluster>,
    zeroing: Option<String>,
    #[serde(default)]
    prezero: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawCluster {
    Pages(i64),
    Name(String),
}

impl Settings {
    /// Reads a file.
    ///
    /// ```
    /// # use larder::settings::Settings;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("larder.toml");
    /// std::fs::write(&path, "version = 1\n[pages]\nprezero = true\n")?;
    /// assert!(Settings::read(&path)?.pages().prezero);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let unreadable = |reason: String| SettingsError::Read {
            path: path.to_owned(),
            reason,
        };
        let size = std::fs::metadata(path)
            .map_err(|e: io::Error| unreadable(e.to_string()))?
            .len();
        if size > MOST_BYTES {
            return Err(unreadable(format!(
                "{size} bytes are too many for settings"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// What it says about pages.
    ///
    /// ```
    /// # use larder::settings::Settings;
    /// let settings: Settings = "version = 1\n[pages]\nprezero = true\n".parse()?;
    /// assert!(settings.pages().prezero);
    /// # Ok::<(), larder::settings::SettingsError>(())
    /// ```
    #[must_use]
    pub fn pages(&self) -> PageSettings {
        self.pages
    }

    /// Why a value was written, for instance of `pages`, `cluster_pages`.
    ///
    /// ```
    /// # use larder::settings::Settings;
    /// let settings: Settings = r#"
    ///     version = 1
    ///     [evidence.pages.cluster_pages]
    ///     run = "3f9c0e12"
    ///     ratio = 1.01
    /// "#.parse()?;
    /// let evidence = settings.evidence("pages", "cluster_pages");
    /// assert_eq!(evidence.map(|why| (why.run.as_str(), why.ratio)), Some(("3f9c0e12", Some(1.01))));
    /// assert!(settings.evidence("pages", "zeroing").is_none());
    /// # Ok::<(), larder::settings::SettingsError>(())
    /// ```
    #[must_use]
    pub fn evidence(&self, table: &str, key: &str) -> Option<&Evidence> {
        self.evidence.get(table)?.get(key)
    }

    fn parse(text: &str, origin: &str) -> Result<Self, SettingsError> {
        let invalid = |reason: String| SettingsError::Invalid {
            origin: origin.to_owned(),
            reason,
        };
        let raw: RawFile = toml::from_str(text).map_err(|e| invalid(e.to_string()))?;
        if raw.version != VERSION {
            return Err(invalid(format!(
                "version {} is not known, this library reads version {VERSION}; write the file anew with `larder settings --write`",
                raw.version
            )));
        }
        let cluster_pages = match raw.pages.cluster_pages {
            None => None,
            Some(RawCluster::Pages(n)) => Some(n.to_string()),
            Some(RawCluster::Name(name)) => Some(name),
        };
        let cluster_pages = cluster_pages
            .map(|text| {
                text.parse::<ClusterSize>()
                    .map_err(|e| invalid(format!("pages.cluster_pages '{text}': {e}")))
            })
            .transpose()?;
        let zeroing = match raw.pages.zeroing.as_deref() {
            None | Some("auto") => None,
            Some(name) => Some(
                name.parse::<Zeroing>()
                    .map_err(|e| invalid(format!("pages.zeroing: {e}")))?,
            ),
        };
        Ok(Self {
            pages: PageSettings {
                cluster_pages,
                zeroing,
                prezero: raw.pages.prezero,
            },
            evidence: raw.evidence,
        })
    }
}

impl FromStr for Settings {
    type Err = SettingsError;
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        Self::parse(text, "settings")
    }
}
