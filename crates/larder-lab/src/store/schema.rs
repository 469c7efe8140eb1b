//! The tables, and how a file of an older layout is migrated.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;
use super::error::of;

/// `LARD` in the file's header, so that no other program's database is mistaken for the lab's.
const APPLICATION: i64 = 0x4c41_5244;

/// One step per layout, oldest first. A step is never changed once it has been released.
const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE machine (
        key INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,          -- of the record: a machine with other settings is another row
        fingerprint TEXT NOT NULL,          -- equal where times may be compared
        record TEXT NOT NULL                -- JSON
    ) STRICT;
    CREATE TABLE run (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,            -- hash of the content
        experiment TEXT NOT NULL,
        started TEXT NOT NULL,              -- RFC 3339, UTC
        seconds REAL NOT NULL,
        depth TEXT NOT NULL,
        seed TEXT NOT NULL,                 -- text, because SQLite's integers have a sign
        version TEXT NOT NULL,
        noisy INTEGER NOT NULL,
        machine INTEGER NOT NULL REFERENCES machine (key),
        record TEXT NOT NULL                -- JSON without machine and samples
    ) STRICT;
    CREATE INDEX run_by_start ON run (experiment, started);
    CREATE TABLE sample (
        key INTEGER PRIMARY KEY,            -- ascending in the order in which the samples were taken
        run INTEGER NOT NULL REFERENCES run (key) ON DELETE CASCADE,
        \"group\" TEXT NOT NULL,
        contestant TEXT NOT NULL,
        params TEXT NOT NULL,               -- JSON
        twin INTEGER NOT NULL,
        round INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        at_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX sample_by_run ON sample (run);
    CREATE TABLE measure (
        sample INTEGER NOT NULL REFERENCES sample (key) ON DELETE CASCADE,
        metric TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (sample, metric)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE submission (
        hash TEXT PRIMARY KEY,
        record TEXT NOT NULL                -- JSON: another machine's row
    ) STRICT;
    CREATE VIEW samples AS
        SELECT run.id AS run, run.experiment, machine.fingerprint, sample.\"group\", sample.contestant,
               sample.params, sample.twin, sample.round, sample.slot, sample.at_us,
               measure.metric, measure.value
        FROM run
        JOIN machine ON machine.key = run.machine
        JOIN sample ON sample.run = run.key
        JOIN measure ON measure.sample = sample.key;
",
    // Layout 1 kept no origin. Only a date that the lab cannot have written tells an imported run from an own one.
    "
    ALTER TABLE run ADD COLUMN imported INTEGER NOT NULL DEFAULT 0; -- 1: another database's run
    UPDATE run SET imported = 1
        WHERE started NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'
           OR julianday(started) IS NULL OR julianday(started) > julianday('now') + 1;
    DROP VIEW samples;
    CREATE VIEW samples AS
        SELECT run.id AS run, run.experiment, run.imported, machine.fingerprint, sample.\"group\", sample.contestant,
               sample.params, sample.twin, sample.round, sample.slot, sample.at_us,
               measure.metric, measure.value
        FROM run
        JOIN machine ON machine.key = run.machine
        JOIN sample ON sample.run = run.key
        JOIN measure ON measure.sample = sample.key;
",
];

/// What makes layout 1 readable as the current one on a connection that cannot write.
const OLDER_AS_CURRENT: &str =
    "PRAGMA temp_store = MEMORY; CREATE TEMP VIEW run AS SELECT *, 0 AS imported FROM main.run";

/// What a file is.
pub(super) enum State {
    /// Without any table: new.
    Empty,
    /// Ours, in an older layout.
    Older,
    /// Ours, as this program writes it.
    Current,
}

/// Looks at a file without changing it.
pub(super) fn state(conn: &Connection, path: &Path) -> Result<State, StoreError> {
    let ask = |sql: &str| {
        conn.query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|e| of(path, e))
    };
    let tables = ask("SELECT count(*) FROM sqlite_master")?;
    let application = ask("PRAGMA application_id")?;
    let version = ask("PRAGMA user_version")?;
    let known = MIGRATIONS.len() as i64;
    match (application, version) {
        (APPLICATION, v) if v > known => Err(StoreError::Newer {
            path: path.to_owned(),
            found: v,
            known,
        }),
        (APPLICATION, v) if v == known => Ok(State::Current),
        (APPLICATION, _) => Ok(State::Older),
        (0, 0) if tables == 0 => Ok(State::Empty),
        _ => Err(StoreError::Foreign {
            path: path.to_owned(),
        }),
    }
}

/// Lets a connection that cannot write read an older file.
pub(super) fn read_older(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    conn.execute_batch(OLDER_AS_CURRENT)
        .map_err(|e| of(path, e))
}

/// Brings a file to this program's layout, in one transaction.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let step = |conn: &mut Connection| -> rusqlite::Result<()> {
        // Another process may migrate at the same moment; the second one finds nothing left to do.
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let at: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        for sql in MIGRATIONS.iter().skip(usize::try_from(at).unwrap_or(0)) {
            tx.execute_batch(sql)?;
        }
        tx.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {};",
            MIGRATIONS.len()
        ))?;
        tx.commit()
    };
    step(conn).map_err(|e| of(path, e))
}
