//! Queries of the database.

use std::collections::HashSet;

use rusqlite::{Params, Row, Transaction, TransactionBehavior};
use serde::Serialize;

use super::rows::{Fault, get, put};
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
        self.transaction(|tx| put(tx, run, false))
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
        self.rows(
            "SELECT run.id, experiment, started, seconds, depth, fingerprint, noisy,
                    (SELECT count(*) FROM sample WHERE sample.run = run.key), imported
             FROM run JOIN machine ON machine.key = run.machine
             ORDER BY started DESC, run.key DESC",
            [],
            |row| {
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
            },
        )
    }

    /// The ids of all runs that were imported.
    ///
    /// # Errors
    /// Those of the database.
    pub fn imported(&self) -> Result<HashSet<String>, StoreError> {
        let ids = self.rows("SELECT id FROM run WHERE imported", [], |row| row.get(0))?;
        Ok(ids.into_iter().collect())
    }

    /// Removes a run with its samples; false where there was none.
    ///
    /// # Errors
    /// Those of the database.
    pub fn delete(&mut self, id: &str) -> Result<bool, StoreError> {
        self.transaction(|tx| {
            let n = tx.execute("DELETE FROM run WHERE id = ?1", [id])?;
            let unused = "DELETE FROM machine WHERE key NOT IN (SELECT machine FROM run)";
            tx.execute(unused, [])?;
            Ok(n > 0)
        })
    }

    /// All machines' rows that were imported.
    ///
    /// # Errors
    /// Those of the database.
    pub fn submissions(&self) -> Result<Vec<Submission>, StoreError> {
        let sql = "SELECT record FROM submission ORDER BY hash";
        let texts: Vec<String> = self.rows(sql, [], |row| row.get(0))?;
        let read = |t: &String| serde_json::from_str(t).map_err(|e| Fault::Json(e).at(&self.path));
        texts.iter().map(read).collect()
    }

    /// All rows of a query.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let all = || -> rusqlite::Result<Vec<T>> {
            let mut statement = self.conn.prepare(sql)?;
            statement.query_map(params, read)?.collect()
        };
        all().map_err(|e| self.error(e))
    }

    /// Everything or nothing.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let all = || -> Result<T, Fault> {
            let tx = Transaction::new(&mut self.conn, TransactionBehavior::Immediate)?;
            let value = work(&tx)?;
            tx.commit()?;
            Ok(value)
        };
        all().map_err(|fault| fault.at(&self.path))
    }
}
