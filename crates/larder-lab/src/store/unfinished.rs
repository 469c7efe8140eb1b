//! Interrupted measurements: their options, and the parts that are stored.
//!
//! The table came after the others and has no layout of its own: a program that does not know it can use the file.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::rows::{Fault, put};
use super::{Store, StoreError};
use crate::model::{MachineRecord, RunRecord};

/// A measurement of several experiments on its way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The command line, with the seed and the time that it got.
    pub argv: Vec<String>,
    /// Hash of the program.
    pub program: String,
    /// The machine.
    pub machine: MachineRecord,
    /// Seconds that it took so far.
    pub seconds: f64,
    /// The experiments that ended, each with its run where one was stored.
    pub done: Vec<(String, Option<String>)>,
    /// The run that was interrupted, where it has a complete round.
    pub broken: Option<Broken>,
}

/// A run that was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Its id.
    pub run: String,
    /// Hash of its plan.
    pub plan: String,
}

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS unfinished (key INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT";

impl Store {
    /// The last measurement that did not come to its end, with its key.
    ///
    /// # Errors
    /// Those of the database.
    pub fn unfinished(&self) -> Result<Option<(i64, Unfinished)>, StoreError> {
        let last = || -> Result<Option<(i64, Unfinished)>, Fault> {
            let there = "SELECT 1 FROM sqlite_master WHERE name = 'unfinished'";
            if self
                .conn
                .query_row(there, [], |_| Ok(()))
                .optional()?
                .is_none()
            {
                return Ok(None);
            }
            let newest = "SELECT key, record FROM unfinished ORDER BY key DESC LIMIT 1";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
            match self.conn.query_row(newest, [], row).optional()? {
                Some((key, text)) => Ok(Some((key, serde_json::from_str(&text)?))),
                None => Ok(None),
            }
        };
        last().map_err(|fault| fault.at(&self.path))
    }

    /// Stores a run, in the place of its interrupted beginning `instead` where there is one, together with what its
    /// measurement still lacks under `key`; `None` is nothing. All of it or nothing.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub fn put_part(
        &mut self,
        run: Option<&RunRecord>,
        instead: Option<&str>,
        key: Option<i64>,
        left: Option<&Unfinished>,
    ) -> Result<Option<i64>, StoreError> {
        self.transaction(|tx| {
            if let Some(run) = run {
                put(tx, run, false)?;
                tx.execute(
                    "DELETE FROM run WHERE id = ?1 AND id <> ?2",
                    params![instead, run.id],
                )?;
            }
            if key.is_none() && left.is_none() {
                return Ok(None);
            }
            tx.execute(TABLE, [])?;
            let Some(left) = left else {
                tx.execute("DELETE FROM unfinished WHERE key = ?1", [key])?;
                return Ok(None);
            };
            // Without a key SQLite chooses the next one.
            tx.execute(
                "INSERT OR REPLACE INTO unfinished (key, record) VALUES (?1, ?2)",
                params![key, serde_json::to_string(left)?],
            )?;
            Ok(Some(tx.last_insert_rowid()))
        })
    }
}
