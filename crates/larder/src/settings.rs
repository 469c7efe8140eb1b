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
//! [cache]
//! policy = "lirs"           # of a block cache
//! bytes = 268435456
//!
//! [malloc]
//! mode = "per-thread"       # or "per-cpu", "locked"
//! decay_ms = 1000           # or "never"
//! cache_bytes = "auto"      # or a number
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
use std::time::Duration;

use serde::Deserialize;

use crate::heap::HeapMode;
use crate::heap::global::{cache_bytes, decay_time};
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
    /// Pages of a cluster; `None` when the file does not say. [`ClusterSize::AUTO`] of a pool means this.
    pub cluster_pages: Option<ClusterSize>,
    /// Routine that zeroes a page; `None` when the file does not say or says `auto`.
    pub zeroing: Option<Zeroing>,
    /// Whether a helper keeps a pre-zeroed stock.
    pub prezero: bool,
}

/// What the file says about a block cache. Whether there is a rule of that name is known when the cache is built.
///
/// ```
/// # use larder::settings::Settings;
/// let settings: Settings = "version = 1\n[cache]\npolicy = \"lirs\"\nbytes = 1048576\n".parse()?;
/// let cache = settings.cache();
/// assert_eq!((cache.policy.as_deref(), cache.bytes), (Some("lirs"), Some(1 << 20)));
/// # Ok::<(), larder::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheSettings {
    /// Name of the replacement rule; `None` when the file does not say.
    pub policy: Option<String>,
    /// Bytes of blocks in memory; `None` when the file does not say.
    pub bytes: Option<usize>,
}

/// What the file says about the malloc: the heap behind [`Larder`](crate::heap::Larder), and the malloc that is preloaded.
///
/// That heap is made with the program's first allocation, which is before the program can read a file. So its settings come in
/// the environment.
///
/// ```
/// # use larder::settings::Settings;
/// let settings: Settings = "version = 1\n[malloc]\ndecay_ms = 300\ncache_bytes = \"auto\"\n".parse()?;
/// assert_eq!(settings.malloc().environment(), [("LARDER_MALLOC_DECAY", "300".to_owned())]);
/// # Ok::<(), larder::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MallocSettings {
    /// Which magazines serve; `None` when the file does not say.
    pub mode: Option<HeapMode>,
    /// How long free memory stays, [`Duration::MAX`] for ever; `None` when the file does not say.
    pub decay: Option<Duration>,
    /// Bytes of free memory that stay beside as much as is in use; `None` when the file does not say or says `auto`.
    pub cached_bytes: Option<usize>,
}

impl MallocSettings {
    /// The environment variables with which a program's malloc follows these settings.
    ///
    /// ```no_run
    /// # use larder::settings::Settings;
    /// let settings = Settings::read("larder.toml".as_ref())?;
    /// std::process::Command::new("server")
    ///     .env("LD_PRELOAD", "/usr/local/lib/liblarder_malloc.so")
    ///     .envs(settings.malloc().environment())
    ///     .spawn()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let decay = self.decay.map(|decay| match decay {
            Duration::MAX => "never".to_owned(),
            decay => decay.as_millis().to_string(),
        });
        [
            ("LARDER_MALLOC_MODE", self.mode.map(|m| m.name().to_owned())),
            ("LARDER_MALLOC_DECAY", decay),
            (
                "LARDER_MALLOC_CACHE",
                self.cached_bytes.map(|n| n.to_string()),
            ),
        ]
        .into_iter()
        .filter_map(|(name, word)| Some((name, word?)))
        .collect()
    }
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
    cache: CacheSettings,
    malloc: MallocSettings,
    evidence: BTreeMap<String, BTreeMap<String, Evidence>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: u32,
    #[serde(default)]
    pages: RawPages,
    #[serde(default)]
    cache: CacheSettings,
    #[serde(default)]
    malloc: RawMalloc,
    #[serde(default)]
    evidence: BTreeMap<String, BTreeMap<String, Evidence>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPages {
    cluster_pages: Option<RawNumber>,
    zeroing: Option<String>,
    #[serde(default)]
    prezero: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawMalloc {
    mode: Option<String>,
    decay_ms: Option<RawNumber>,
    cache_bytes: Option<RawNumber>,
}

impl RawMalloc {
    /// # Errors
    /// Names the key, its value and what it may be.
    fn read(self) -> Result<MallocSettings, String> {
        let Self {
            mode,
            decay_ms,
            cache_bytes: cache,
        } = self;
        let modes = [HeapMode::PerThread, HeapMode::PerCpu, HeapMode::Locked];
        let mode = mode.map(|word| {
            let named = modes.into_iter().find(|mode| mode.name() == word);
            named.ok_or_else(|| {
                format!("malloc.mode: '{word}' is none of per-thread, per-cpu, locked")
            })
        });
        let decay = decay_ms.map(|number| {
            let word = number.word();
            let is = "no number of milliseconds from 0 to 86400000, and not \"never\"";
            decay_time(&word).ok_or_else(|| format!("malloc.decay_ms: '{word}' is {is}"))
        });
        let cache = cache.map(RawNumber::word).filter(|word| word != "auto");
        let cached_bytes = cache.map(|word| {
            let is = "no number of bytes, and not \"auto\"";
            cache_bytes(&word).ok_or_else(|| format!("malloc.cache_bytes: '{word}' is {is}"))
        });
        Ok(MallocSettings {
            mode: mode.transpose()?,
            decay: decay.transpose()?,
            cached_bytes: cached_bytes.transpose()?,
        })
    }
}

/// A number, or a word in its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawNumber {
    Number(i64),
    Word(String),
}

impl RawNumber {
    /// As the environment has it.
    fn word(self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Word(word) => word,
        }
    }
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

    /// What it says about a block cache.
    ///
    /// ```
    /// # use larder::settings::Settings;
    /// let settings: Settings = "version = 1\n[cache]\npolicy = \"arc\"\n".parse()?;
    /// assert_eq!(settings.cache().policy.as_deref(), Some("arc"));
    /// # Ok::<(), larder::settings::SettingsError>(())
    /// ```
    #[must_use]
    pub fn cache(&self) -> &CacheSettings {
        &self.cache
    }

    /// What it says about the malloc.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use larder::settings::Settings;
    /// let settings: Settings = "version = 1\n[malloc]\ndecay_ms = \"never\"\n".parse()?;
    /// assert_eq!(settings.malloc().decay, Some(Duration::MAX));
    /// # Ok::<(), larder::settings::SettingsError>(())
    /// ```
    #[must_use]
    pub fn malloc(&self) -> MallocSettings {
        self.malloc
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
        let cluster_pages = raw
            .pages
            .cluster_pages
            .map(|number| {
                let word = number.word();
                let size = word.parse::<ClusterSize>();
                size.map_err(|e| invalid(format!("pages.cluster_pages '{word}': {e}")))
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
            cache: raw.cache,
            malloc: raw.malloc.read().map_err(invalid)?,
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
