//! SQLite on the cache. The page cache is one for the process, so one test runs at a time, each from SQLite's start on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Error, ErrorCode, ffi};

use crate::methods::PROCESS;
use crate::{Config, InstallError, install, stats, trim};

static ONE: Mutex<()> = Mutex::new(());

fn shutdown() {
    // SAFETY: no connection is open, and no other thread uses SQLite: tests take turns.
    assert_eq!(unsafe { ffi::sqlite3_shutdown() }, 0);
}

fn put(config: &Config) -> Result<(), InstallError> {
    // SAFETY: as above.
    unsafe { install(config) }
}

/// SQLite that has not begun, with its own cache.
fn fresh() -> MutexGuard<'static, ()> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    shutdown();
    // Methods of null are SQLite's own.
    let own = [0_u8; size_of::<crate::ffi::Methods>()];
    // SAFETY: SQLite copies as many bytes as its structure has.
    let code = unsafe { ffi::sqlite3_config(crate::ffi::CONFIG_PCACHE2, own.as_ptr()) };
    assert_eq!(code, 0);
    one
}

/// Tables, an index, transactions that are larger than the cache, a rollback, deletions and a vacuum; a hash of all that is in it.
fn work(db: &Connection) -> rusqlite::Result<(i64, String)> {
    db.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k INT, s TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
           INSERT INTO t SELECT i, i * 7919 % 3001, hex(zeroblob(i % 90)) || i FROM n;
         CREATE INDEX k ON t (k);
         BEGIN; UPDATE t SET s = s || k WHERE id % 3 = 0; SAVEPOINT one; DELETE FROM t; ROLLBACK TO one; COMMIT;
         BEGIN; UPDATE t SET k = k + 1; ROLLBACK;
         CREATE TEMP TABLE u AS SELECT k, count(*) c FROM t GROUP BY k % 100;
         DELETE FROM t WHERE id % 5 = 0;
         PRAGMA incremental_vacuum; VACUUM;",
    )?;
    for id in (0..3000).map(|at| at * 7919 % 3000) {
        db.query_row("SELECT count(s) FROM t WHERE k = ?", [id], |row| {
            row.get::<_, i64>(0)
        })?;
    }
    db.query_row(
        "SELECT (SELECT sum(id * 31 + k * 17 + length(s)) FROM (SELECT * FROM t ORDER BY k)) + (SELECT sum(c) FROM u),
                (SELECT group_concat(integrity_check) FROM pragma_integrity_check)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Page size and journal mode, in a cache of 12 pages.
fn run(page: usize, journal: &str) -> rusqlite::Result<(i64, String)> {
    let dir = tempfile::tempdir().unwrap();
    let db = Connection::open(dir.path().join("db"))?;
    db.execute_batch(&format!(
        "PRAGMA page_size = {page}; PRAGMA journal_mode = {journal}; PRAGMA cache_size = 12; PRAGMA auto_vacuum = 2;"
    ))?;
    let got = work(&db)?;
    db.execute_batch("PRAGMA shrink_memory")?;
    Ok(got)
}

const SETTINGS: [(usize, &str); 3] = [(512, "wal"), (4096, "delete"), (65_536, "memory")];

#[test]
fn every_rule_answers_as_sqlites_own_cache() {
    let _one = fresh();
    let before = stats().misses;
    let own = SETTINGS.map(|(page, journal)| run(page, journal).unwrap());
    assert_eq!((own[0].1.as_str(), stats().misses), ("ok", before));
    for rule in larder_policy::rules() {
        shutdown();
        put(&Config::new().rule(rule.name).budget_bytes(1 << 20)).unwrap();
        let before = stats();
        let got = SETTINGS.map(|(page, journal)| run(page, journal).unwrap());
        assert_eq!(got, own, "{}", rule.name);
        let after = stats();
        assert!(after.misses > before.misses + 5000, "{}", rule.name);
        assert_eq!((after.bytes, after.caches.len()), (0, 0), "{}", rule.name);
        assert_eq!(PROCESS.used(), 0, "{}", rule.name);
    }
    trim();
    assert_eq!(stats().held_bytes, 0);
    shutdown();
}

#[test]
fn refused_memory_is_sqlites_error() {
    let _one = fresh();
    put(&Config::new()).unwrap();
    let pool = PROCESS.family().unwrap().pool();
    let (mut refused, mut done) = (0, false);
    for pages in (0..).step_by(3) {
        trim();
        pool.set_limit_bytes(pages * pool.page_size());
        match run(4096, "delete") {
            Ok((_, check)) => {
                assert_eq!(check, "ok");
                done = true;
                break;
            }
            Err(Error::SqliteFailure(why, _)) => {
                assert_eq!(why.code, ErrorCode::OutOfMemory, "{why}");
                refused += 1;
            }
            Err(why) => panic!("{why}"),
        }
    }
    pool.set_limit_bytes(usize::MAX);
    assert!(refused > 5 && done, "{refused}");
    shutdown();
}

#[test]
fn connections_of_many_threads_share_a_budget() {
    let _one = fresh();
    put(&Config::new().budget_bytes(1 << 20)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA journal_mode = wal").unwrap();
    let expected = work(&db).unwrap();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let db = Connection::open(path).unwrap();
                db.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                for round in 0..20 {
                    let sum: i64 = db
                        .query_row(
                            "SELECT sum(id * 31 + k * 17 + length(s)) FROM t",
                            [],
                            |row| row.get(0),
                        )
                        .unwrap();
                    assert!(sum > 0);
                    // Others' caches are stale from here on.
                    db.execute("UPDATE t SET s = s WHERE id = ?", [at * 20 + round])
                        .unwrap();
                    let now = stats();
                    assert!(
                        now.caches.len() <= 9 + 8 && now.bytes <= (1 << 20) + 9 * 16 * 4096,
                        "{now:?}"
                    );
                    if round % 8 == 0 {
                        db.execute_batch("PRAGMA shrink_memory").unwrap();
                        trim();
                    }
                }
            });
        }
    });
    let sum = "SELECT sum(id * 31 + k * 17 + length(s)) + (SELECT sum(c) FROM u) FROM t";
    let after: i64 = db.query_row(sum, [], |row| row.get(0)).unwrap();
    assert_eq!(after, expected.0);
    drop(db);
    assert_eq!(PROCESS.used(), 0);
    shutdown();
}

#[test]
fn it_is_installed_once_and_before_sqlite_begins() {
    let _one = fresh();
    let db = Connection::open_in_memory().unwrap();
    let late = put(&Config::new()).unwrap_err();
    assert!(matches!(late, InstallError::TooLate), "{late}");
    assert!(late.to_string().contains("first of all in main"));
    drop(db);
    shutdown();
    put(&Config::new()).unwrap();
    let twice = put(&Config::new()).unwrap_err();
    assert!(matches!(twice, InstallError::Twice), "{twice}");
    // What the message says helps also where SQLite has not begun.
    assert!(
        twice
            .to_string()
            .contains("sqlite3_initialize and sqlite3_shutdown")
    );
    // SAFETY: as in `shutdown`.
    assert_eq!(unsafe { ffi::sqlite3_initialize() }, 0);
    shutdown();
    put(&Config::new().rule("s3-fifo")).unwrap();
    let db = Connection::open_in_memory().unwrap();
    let twice = put(&Config::new().rule("lru")).unwrap_err();
    assert!(matches!(twice, InstallError::Twice), "{twice}");
    assert!(!stats().caches.is_empty());
    drop(db);
    shutdown();
    let unknown = put(&Config::new().rule("best")).unwrap_err();
    assert!(unknown.to_string().contains("adaptive"), "{unknown}");
    put(&Config::new().rule("lru")).unwrap();
    drop(Connection::open_in_memory().unwrap());
    shutdown();
}
