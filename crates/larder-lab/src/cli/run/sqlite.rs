//! SQLite's page cache, preloaded beside the malloc.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use larder::internal::heap::cache_bytes;
use larder::settings::CacheSettings;
use serde::{Deserialize, Serialize};

use super::super::failure::{Failure, Outcome};
use super::Lines;
use crate::preload::larder::SQLITE;

/// What was asked for. What the library would refuse is refused here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageCache {
    rule: Option<String>,
    bytes: Option<usize>,
}

impl FromStr for PageCache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut asked = Self {
            rule: None,
            bytes: None,
        };
        for word in text.split(',').filter(|word| !word.is_empty()) {
            if let Some(bytes) = cache_bytes(word) {
                asked.bytes = Some(bytes);
            } else {
                asked.rule = Some(known(word, "no rule and no number of bytes")?);
            }
        }
        Ok(asked)
    }
}

/// The name of a rule.
fn known(name: &str, wrong: &str) -> Result<String, String> {
    let rules = larder_policy::rules();
    if rules.iter().any(|rule| rule.name == name) {
        return Ok(name.to_owned());
    }
    let rules: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    Err(format!(
        "'{name}' is {wrong}; the rules are {}",
        rules.join(", ")
    ))
}

impl PageCache {
    /// Finds the library, or builds it. What was not asked for is as the settings say, or the library's default.
    pub(super) fn find(
        &self,
        settings: Option<&CacheSettings>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Preloaded, Failure> {
        let measured = settings.and_then(|settings| settings.policy.as_deref());
        let rule = self.rule.as_deref().or(measured).unwrap_or("adaptive");
        Ok(Preloaded {
            rule: known(rule, "no rule")
                .map_err(|why| Failure::io(format!("--settings: {why}")))?,
            bytes: self.bytes.or(settings.and_then(|settings| settings.bytes)),
            library: SQLITE.find_or_build(None, tell).map_err(Failure::refused)?,
            lines: Lines::new()?,
        })
    }
}

/// A library that was found, and the file into which it writes.
pub(super) struct Preloaded {
    rule: String,
    bytes: Option<usize>,
    library: PathBuf,
    lines: Lines,
}

impl Preloaded {
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    pub(super) fn environment(&self, command: &mut Command) {
        command
            .env("LARDER_SQLITE", &self.rule)
            .env("LARDER_SQLITE_STATS", &self.lines.0)
            .env_remove("LARDER_SQLITE_BUDGET");
        if let Some(bytes) = self.bytes {
            command.env("LARDER_SQLITE_BUDGET", bytes.to_string());
        }
    }

    /// What the caches of all processes did.
    pub(super) fn said(self) -> Result<Pages, Failure> {
        Ok(Pages::read(&self.rule, &self.lines.read()?))
    }
}

/// Numbers of the page caches of all processes together.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Pages {
    rule: String,
    processes: u64,
    hits: u64,
    misses: u64,
    evictions: u64,
}

/// What one process wrote.
#[derive(Debug, Deserialize)]
struct Line {
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl Pages {
    fn read(rule: &str, text: &str) -> Self {
        let mut all = Self {
            rule: rule.to_owned(),
            ..Self::default()
        };
        for line in text
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        {
            all.processes += 1;
            all.hits += line.hits;
            all.misses += line.misses;
            all.evictions += line.evictions;
        }
        all
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Outcome {
        let asked = self.hits + self.misses;
        if self.processes == 0 {
            writeln!(
                out,
                "larder: SQLite's page cache was not used: the program did not use libsqlite3.so, or ended by a signal or _exit"
            )?;
        } else {
            writeln!(
                out,
                "larder: SQLite's page cache, {}: {:.1} % of {asked} pages were there; {} came, and {} left to make room",
                self.rule,
                100.0 * self.hits as f64 / asked as f64,
                self.misses,
                self.evictions
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_rule_and_bytes_in_any_order() {
        let of = |text: &str| {
            text.parse::<PageCache>()
                .map(|asked| (asked.rule, asked.bytes))
        };
        assert_eq!(of(""), Ok((None, None)));
        assert_eq!(of("lru"), Ok((Some("lru".to_owned()), None)));
        assert_eq!(of("64M"), Ok((None, Some(64 << 20))));
        let both = (Some("s3-fifo".to_owned()), Some(1 << 30));
        assert_eq!(of("1G,s3-fifo"), Ok(both));
        let why = of("lru,best").unwrap_err();
        assert!(
            why.contains("'best' is no rule") && why.contains("w-tinylfu"),
            "{why}"
        );
    }

    #[test]
    fn processes_are_summed_and_garbage_is_not() {
        let text = "{\"pid\":1,\"hits\":3,\"misses\":1,\"evictions\":0}\nrubbish\n{\"hits\":1,\"misses\":0,\"evictions\":2}\n{\"hits\":";
        let pages = Pages::read("lru", text);
        let wanted = Pages {
            rule: "lru".to_owned(),
            processes: 2,
            hits: 4,
            misses: 1,
            evictions: 2,
        };
        assert_eq!(pages, wanted);
        let said = |pages: &Pages| {
            let mut out = Vec::new();
            assert!(pages.print(&mut out).is_ok());
            String::from_utf8_lossy(&out).into_owned()
        };
        assert!(said(&pages).contains("lru: 80.0 % of 5 pages were there; 1 came, and 2 left"));
        assert!(said(&Pages::read("lru", "")).contains("was not used"));
    }
}
