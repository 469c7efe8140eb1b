//! Runs in and out of the tables, row by row.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::foreign::shown;
use super::{StoreError, id_of};
use crate::calc::Submission;
use crate::machine::fnv1a_wide;
use crate::model::{Cell, MachineRecord, Measures, RunRecord, Sample};

/// What goes wrong below, before the file's name is added.
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Json(serde_json::Error),
    Record(String),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(e: serde_json::Error) -> Self {
        Self::Json(e)
    }
}

impl From<StoreError> for Fault {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sql(e) => super::error::of(path, e),
            Self::Json(e) => StoreError::Damaged {
                path: path.to_owned(),
                why: format!("a stored record is not what it should be: {e}"),
            },
            Self::Record(why) => StoreError::BadRecord { why },
            Self::Store(e) => e,
        }
    }
}

/// Inserts one run; false where it is known already, and then it stays what it is, own or imported.
pub(super) fn put(tx: &Transaction<'_>, run: &RunRecord, imported: bool) -> Result<bool, Fault> {
    check(run)?;
    let known = tx
        .query_row("SELECT 1 FROM run WHERE id = ?1", [&run.id], |_| Ok(()))
        .optional()?
        .is_some();
    if known {
        return Ok(false);
    }
    let machine = serde_json::to_string(&run.machine)?;
    let hash = format!("{:032x}", fnv1a_wide(machine.as_bytes()));
    tx.execute(
        "INSERT INTO machine (hash, fingerprint, record) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![hash, run.machine.fingerprint, machine],
    )?;
    // Machine and samples have tables of their own.
    let rest = serde_json::to_string(&RunRecord {
        machine: MachineRecord::default(),
        samples: Vec::new(),
        ..run.clone()
    })?;
    tx.execute(
        "INSERT INTO run (id, experiment, started, seconds, depth, seed, version, noisy, machine, record, imported)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT key FROM machine WHERE hash = ?9), ?10, ?11)",
        params![
            run.id,
            run.experiment,
            run.started,
            run.seconds,
            run.depth,
            run.seed.to_string(),
            run.version,
            run.noise.noisy,
            hash,
            rest,
            imported
        ],
    )?;
    let key = tx.last_insert_rowid();
    let mut sample = tx.prepare(
        "INSERT INTO sample (run, \"group\", contestant, params, twin, round, slot, at_us)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut measure =
        tx.prepare("INSERT INTO measure (sample, metric, value) VALUES (?1, ?2, ?3)")?;
    for s in &run.samples {
        sample.execute(params![
            key,
            s.group,
            s.cell.contestant,
            serde_json::to_string(&s.cell.params)?,
            s.cell.twin,
            s.round,
            s.slot,
            i64::try_from(s.at_us)
                .map_err(|_| Fault::Record(format!("a sample's time is {} us", s.at_us)))?,
        ])?;
        let row = tx.last_insert_rowid();
        for (metric, value) in &s.measures.0 {
            measure.execute(params![row, metric, value])?;
        }
    }
    Ok(true)
}

/// A number that is not finite would not come back: JSON and SQLite have none.
fn check(run: &RunRecord) -> Result<(), Fault> {
    let finite = |name: &str, v: f64| {
        if v.is_finite() {
            Ok(())
        } else {
            Err(Fault::Record(format!("'{name}' is {v}")))
        }
    };
    finite("seconds", run.seconds)?;
    for s in &run.samples {
        for (metric, v) in &s.measures.0 {
            finite(metric, *v)?;
        }
    }
    if id_of(run) != run.id {
        return Err(Fault::Record(format!(
            "its name {} is not that of its content; it was changed after it was taken",
            shown(&run.id)
        )));
    }
    Ok(())
}

/// A run, `None` where there is none.
pub(super) fn get(conn: &Connection, id: &str) -> Result<Option<RunRecord>, Fault> {
    let found = conn
        .query_row(
            "SELECT run.key, run.record, machine.record
             FROM run JOIN machine ON machine.key = run.machine WHERE run.id = ?1",
            [id],
            |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                ))
            },
        )
        .optional()?;
    let Some((key, rest, machine)) = found else {
        return Ok(None);
    };
    let mut run: RunRecord = serde_json::from_str(&rest)?;
    run.machine = serde_json::from_str(&machine)?;
    run.samples = samples(conn, key)?;
    Ok(Some(run))
}

fn samples(conn: &Connection, run: i64) -> Result<Vec<Sample>, Fault> {
    let mut measures: BTreeMap<i64, Measures> = BTreeMap::new();
    let mut statement = conn.prepare(
        "SELECT sample, metric, value FROM measure
         WHERE sample IN (SELECT key FROM sample WHERE run = ?1)",
    )?;
    let mut rows = statement.query([run])?;
    while let Some(row) = rows.next()? {
        measures
            .entry(row.get(0)?)
            .or_default()
            .0
            .insert(row.get(1)?, row.get(2)?);
    }
    let mut statement = conn.prepare(
        "SELECT key, \"group\", contestant, params, twin, round, slot, at_us
         FROM sample WHERE run = ?1 ORDER BY key",
    )?;
    let mut rows = statement.query([run])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        samples.push(Sample {
            group: row.get(1)?,
            cell: Cell {
                contestant: row.get(2)?,
                params: serde_json::from_str(&row.get::<_, String>(3)?)?,
                twin: row.get(4)?,
            },
            round: row.get(5)?,
            slot: row.get(6)?,
            at_us: at_us(row.get(7)?)?,
            measures: measures.remove(&row.get(0)?).unwrap_or_default(),
        });
    }
    Ok(samples)
}

/// Negative times are nothing that the lab writes.
fn at_us(stored: i64) -> Result<u64, rusqlite::Error> {
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(7, stored))
}

/// Inserts one machine's row; false where it is known already.
pub(super) fn put_submission(tx: &Transaction<'_>, submission: &Submission) -> Result<bool, Fault> {
    let record = serde_json::to_string(submission)?;
    let n = tx.execute(
        "INSERT INTO submission (hash, record) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![format!("{:032x}", fnv1a_wide(record.as_bytes())), record],
    )?;
    Ok(n > 0)
}
