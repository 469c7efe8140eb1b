//! What a user of the database asks of it.

use std::collections::HashSet;

use rusqlite::{Transaction, TransactionBehavior};
use serde::Serialize;

use super::rows::{Fault, get, put, put_submission};
use super::{Store, StoreError};
use crate::calc::Submission;
use crate::model::RunRecord;

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Identifier.
    pub id: String,
    /// Experiment.
    pub experiment: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// `quick` or `full`.
    pub depth: String,
    /// Fingerprint of the machine.
    pub machine: String,
    /// Whether the machine was disturbed.
    pub noisy: bool,
    /// Number of samples.
    pub samples: u64,
    /// Whether it came by [`Store::import`]: another machine's, or taken with another database.
    pub imported: bool,
}

impl Store {
    /// Stores a run. Storing it again changes nothing and returns false.
    ///
    /// # Errors
    /// A record with numbers that are not finite, and those of the database.
    pub fn put(&mut self, run: &RunRecord) -> Result<bool, StoreError> {
        let path = self.path.clone();
        self.transaction(|tx| put(tx, run, false).map_err(|e| e.at(&path)))
    }

    /// A stored run, exactly as it was put.
    ///
    /// # Errors
    /// [`StoreError::NoRun`], and those of the database.
    pub fn get(&self, id: &str) -> Result<RunRecord, StoreError> {
        get(&self.conn, id)
            .map_err(|e| e.at(&self.path))?
            .ok_or_else(|| self.no_run(id.to_owned()))
    }

    /// All runs, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let list = || -> rusqlite::Result<Vec<RunSummary>> {
            let mut statement = self.conn.prepare(
                "SELECT run.id, experiment, started, seconds, depth, fingerprint, noisy,
                        (SELECT count(*) FROM sample WHERE sample.run = run.key), imported
                 FROM run JOIN machine ON machine.key = run.machine
                 ORDER BY started DESC, run.key DESC",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(RunSummary {
                    id: row.get(0)?,
                    experiment: row.get(1)?,
                    started: row.get(2)?,
                    seconds: row.get(3)?,
                    depth: row.get(4)?,
                    machine: row.get(5)?,
                    noisy: row.get(6)?,
                    samples: row.get::<_, i64>(7)?.unsigned_abs(),
                    imported: row.get(8)?,
                })
            })?;
            rows.collect()
        };
        list().map_err(|e| self.error(e))
    }

    /// The ids of all runs that were imported.
    ///
    /// # Errors
    /// Those of the database.
    pub fn imported(&self) -> Result<HashSet<String>, StoreError> {
        let ids = || -> rusqlite::Result<HashSet<String>> {
            let mut statement = self.conn.prepare("SELECT id FROM run WHERE imported")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        ids().map_err(|e| self.error(e))
    }

    /// Removes a run with its samples; false where there was none.
    ///
    /// # Errors
    /// Those of the database.
    pub fn delete(&mut self, id: &str) -> Result<bool, StoreError> {
        let path = self.path.clone();
        self.transaction(|tx| {
            let delete = || -> rusqlite::Result<bool> {
                let n = tx.execute("DELETE FROM run WHERE id = ?1", [id])?;
                tx.execute(
                    "DELETE FROM machine WHERE key NOT IN (SELECT machine FROM run)",
                    [],
                )?;
                Ok(n > 0)
            };
            delete().map_err(|e| super::error::of(&path, e))
        })
    }

    /// Stores another machine's row; false where it is known already.
    ///
    /// # Errors
    /// Those of the database.
    pub fn put_submission(&mut self, submission: &Submission) -> Result<bool, StoreError> {
        let path = self.path.clone();
        self.transaction(|tx| put_submission(tx, submission).map_err(|e| e.at(&path)))
    }

    /// All machines' rows that were imported.
    ///
    /// # Errors
    /// Those of the database.
    pub fn submissions(&self) -> Result<Vec<Submission>, StoreError> {
        let texts = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self
                .conn
                .prepare("SELECT record FROM submission ORDER BY hash")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        texts()
            .map_err(|e| self.error(e))?
            .iter()
            .map(|t| serde_json::from_str(t).map_err(|e| Fault::Json(e).at(&self.path)))
            .collect()
    }

    /// Everything or nothing.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| super::error::of(&path, e))?;
        let value = work(&tx)?;
        tx.commit().map_err(|e| super::error::of(&path, e))?;
        Ok(value)
    }
}
