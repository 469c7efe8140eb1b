//! How a user names a run.

use std::str::FromStr;

use rusqlite::OptionalExtension;

use super::{Store, StoreError};

/// A run by the beginning of its name, or the latest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The beginning of an id.
    Prefix(String),
    /// The latest run, of one experiment or of any.
    Latest(Option<String>),
}

impl FromStr for Selector {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::BadSelector {
            asked: text.to_owned(),
        };
        match text.split_once(':') {
            Some(("latest", "")) => Err(bad()),
            Some(("latest", experiment)) => Ok(Self::Latest(Some(experiment.to_owned()))),
            Some(_) => Err(bad()),
            None if text == "latest" => Ok(Self::Latest(None)),
            None if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self::Prefix(text.to_ascii_lowercase()))
            }
            None => Err(bad()),
        }
    }
}

impl Store {
    /// The id of the run that the user means.
    ///
    /// # Errors
    /// No run fits, or several do.
    pub fn resolve(&self, selector: &Selector) -> Result<String, StoreError> {
        match selector {
            Selector::Latest(experiment) => self.latest(experiment.as_deref())?.ok_or_else(|| {
                let asked = match experiment {
                    Some(e) => format!("latest:{e}"),
                    None => "latest".to_owned(),
                };
                self.no_own_run(asked)
            }),
            Selector::Prefix(prefix) => self.by_prefix(prefix),
        }
    }

    fn by_prefix(&self, prefix: &str) -> Result<String, StoreError> {
        // Hexadecimal digits only, so there is nothing to escape in the pattern.
        let sql = "SELECT id FROM run WHERE id LIKE ?1 || '%' ORDER BY id LIMIT 6";
        let mut ids: Vec<String> = self.rows(sql, [prefix], |row| row.get(0))?;
        match (ids.pop(), ids.is_empty()) {
            (None, _) => Err(self.no_run(prefix.to_owned())),
            (Some(one), true) => Ok(one),
            (Some(last), false) => {
                ids.push(last);
                // Twelve digits tell any two apart that chance will ever bring together.
                for id in &mut ids {
                    id.truncate(prefix.len().max(12));
                }
                Err(StoreError::Ambiguous {
                    asked: prefix.to_owned(),
                    ids,
                })
            }
        }
    }

    /// Why there is no latest run: imported ones do not count as such.
    fn no_own_run(&self, asked: String) -> StoreError {
        match self.list() {
            Err(e) => e,
            Ok(all) => match all.iter().filter(|r| r.imported).count() {
                0 => self.no_run(asked),
                imported => StoreError::OnlyImported {
                    asked,
                    imported,
                    path: self.path.clone(),
                },
            },
        }
    }

    /// The id of the run that began last of those that were taken here: an imported run is never the latest.
    ///
    /// # Errors
    /// Those of the database.
    pub fn latest(&self, experiment: Option<&str>) -> Result<Option<String>, StoreError> {
        self.conn
            .query_row(
                "SELECT id FROM run WHERE NOT imported AND (?1 IS NULL OR experiment = ?1)
                 ORDER BY started DESC, key DESC LIMIT 1",
                [experiment],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.error(e))
    }
}
