//! What SQLite is given to do.

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use rusqlite::{Connection, Params as Bound, Statement, ffi};

use super::super::scratch::Scratch;
use super::{GIVEN, HITS, LOCKED, MEMORY, MISSES, MIXED, MS, NS, PAGES, TRANSACTION};
use crate::contestants::timing::{ns_per_op, resident_bytes, thread_cpu_ns};
use crate::model::{Measures, Params};

// Lookups of the group of misses.
pub(super) const POINT: &str = "by primary key";
pub(super) const INDEX: &str = "by an index";
pub(super) const SCAN: &str = "and scans of all";
pub(super) const SMALL: &str = "and scans of a small table";
pub(super) const ORDER: &str = "and sorts of a range";
pub(super) const LOOP: &str = "scans of a small table alone";

/// Rows of the tables at full size: 480 MB with the index, and 21 MB.
const ROWS: i64 = 2_000_000;
const SMALL_ROWS: i64 = 100_000;
/// Lookups at full size, and steps of the transaction.
const TURNS: i64 = 200_000;
const STEPS: i64 = 50_000;
/// Rows of the group of hits: 5 MB.
const HIT_ROWS: i64 = 20_000;
/// Connections of the group of memory.
const CONNECTIONS: usize = 16;
/// A prime above the rows of an index's key, and another number.
const KEYS: i64 = 1_000_003;
const SPREAD: i64 = 7919;

pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    match params.text("load")? {
        HITS => hits(params.count("threads")?, params.int("lookups")?),
        MIXED => mixed(params.int("rows")?),
        TRANSACTION => transaction(&Size::of(params)?),
        MISSES => misses(params.text("lookups")?, &Size::of(params)?),
        MEMORY => memory(params.int("mb")?),
        other => {
            bail!("load '{other}' is none of {HITS}, {MIXED}, {TRANSACTION}, {MISSES} and {MEMORY}")
        }
    }
}

/// A cache, and the divisor of everything.
struct Size {
    kib: i64,
    scale: i64,
}

impl Size {
    fn of(params: &Params) -> anyhow::Result<Self> {
        let (mb, scale) = (params.int("mb")?, params.int("scale")?);
        ensure!(
            (1..=4096).contains(&mb) && (1..=1000).contains(&scale),
            "{mb} MB divided by {scale} were asked for; MB are 1 to 4096 and the divisor 1 to 1000"
        );
        let kib = mb * 1024 / scale;
        Ok(Self { kib, scale })
    }

    fn part(&self, of: i64) -> i64 {
        (of / self.scale).max(10)
    }
}

/// Numbers (Knuth's MMIX generator, high bits).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64 * end) >> 31
    }

    fn unit(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}

/// Numbers from 1 on, few of them often.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(numbers: i64, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut all: Vec<f64> = (1..=numbers)
            .map(|n| {
                sum += (n as f64).powf(-skew);
                sum
            })
            .collect();
        all.iter_mut().for_each(|x| *x /= sum);
        Self(all)
    }

    /// Those that are drawn often do not lie side by side.
    fn draw(&self, draw: &mut Draw) -> i64 {
        let unit = draw.unit();
        let rank = self.0.partition_point(|&x| x < unit) as u64;
        (rank.wrapping_mul(2_654_435_761) % self.0.len() as u64) as i64 + 1
    }
}

/// A connection with a cache of so many KiB. What it writes need not survive the system.
fn open(path: &Path, kib: i64) -> rusqlite::Result<Connection> {
    let db = Connection::open(path)?;
    db.execute_batch(&format!(
        "PRAGMA cache_size = -{kib}; PRAGMA synchronous = OFF"
    ))?;
    Ok(db)
}

/// A database of `rows` rows of some 200 bytes in `t` and as many as asked for in `small`; with an index by `k`.
fn make(path: &Path, rows: i64, small: i64, index: bool) -> rusqlite::Result<()> {
    let db = open(path, 65_536)?;
    db.execute_batch(
        "PRAGMA journal_mode = OFF; BEGIN;
         CREATE TABLE t (id INTEGER PRIMARY KEY, k INT, s TEXT); CREATE TABLE small (id INTEGER PRIMARY KEY, s TEXT)",
    )?;
    db.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
           INSERT INTO t SELECT i, i * ?2 % ?3, ?4 FROM n",
        (rows, SPREAD, KEYS, "x".repeat(180)),
    )?;
    db.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) INSERT INTO small SELECT i, ?2 FROM n",
        (small, "y".repeat(200)),
    )?;
    if index {
        db.execute_batch("CREATE INDEX tk ON t (k)")?;
    }
    db.execute_batch("COMMIT")
}

/// Reads all rows of an answer.
fn ask(statement: &mut Statement<'_>, bound: impl Bound) -> rusqlite::Result<()> {
    let mut rows = statement.query(bound)?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Pages that a connection did not find in its cache.
pub(super) fn missed(db: &Connection) -> f64 {
    let (mut now, mut most) = (0, 0);
    // SAFETY: the connection is open, and both numbers can be written.
    unsafe {
        ffi::sqlite3_db_status(
            db.handle(),
            ffi::SQLITE_DBSTATUS_CACHE_MISS,
            &raw mut now,
            &raw mut most,
            0,
        );
    }
    f64::from(now)
}

/// Whether SQLite's own cache takes a lock of the process for each page.
fn locked() -> f64 {
    // SAFETY: a text that ends with a zero byte.
    f64::from(unsafe { ffi::sqlite3_compileoption_used(c"ENABLE_MEMORY_MANAGEMENT".as_ptr()) })
}

/// Threads with connections of their own look up rows whose pages are all there.
fn hits(threads: usize, lookups: i64) -> anyhow::Result<Measures> {
    ensure!(
        (1..=64).contains(&threads) && lookups > 0,
        "{lookups} lookups by {threads} threads were asked for"
    );
    let scratch = Scratch::open("sqlite")?;
    let path = scratch.path("db");
    make(&path, 1, HIT_ROWS, false)?;
    let barrier = Barrier::new(threads);
    let look = |number: usize| -> anyhow::Result<u64> {
        let prepared = || -> anyhow::Result<Connection> {
            let db = open(&path, 65_536)?;
            // One lock of the file, held to the end.
            db.execute_batch("BEGIN")?;
            let mut get = db.prepare("SELECT s FROM small WHERE id = ?1")?;
            (1..=HIT_ROWS).try_for_each(|id| ask(&mut get, [id]))?;
            drop(get);
            Ok(db)
        };
        let db = prepared();
        // Reached by each thread, also by one that failed.
        barrier.wait();
        let db = db?;
        let mut get = db.prepare("SELECT s FROM small WHERE id = ?1")?;
        let (before, mut draw) = (missed(&db), Draw(number as u64));
        let start = Instant::now();
        for _ in 0..lookups {
            ask(&mut get, [1 + draw.below(HIT_ROWS)])?;
        }
        let spent = start.elapsed().as_nanos() as u64;
        let missed = missed(&db) - before;
        ensure!(missed == 0.0, "{missed} pages were not in the cache");
        Ok(spent)
    };
    let spent: anyhow::Result<Vec<u64>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || look(number)))
            .collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<u64>>| {
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        all.into_iter().map(ended).collect()
    });
    let most = spent?.into_iter().max().unwrap_or(0);
    Ok(Measures::new()
        .with(NS, ns_per_op(most, lookups as u64))
        .with(LOCKED, locked()))
}

/// Statements of all kinds over two tables, in a cache of SQLite's default size. They stand in for SQLite's `speedtest1`, which is a
/// program in C.
fn mixed(rows: i64) -> anyhow::Result<Measures> {
    ensure!(
        (10..=10_000_000).contains(&rows),
        "{rows} rows were asked for"
    );
    let scratch = Scratch::open("sqlite")?;
    let (db, spent) = run_statements(&scratch.path("db"), rows)?;
    // Before the check, which reads every page.
    let missed = missed(&db);
    let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    ensure!(check == "ok", "the database is damaged: {check}");
    Ok(Measures::new()
        .with(MS, spent as f64 / 1e6)
        .with(PAGES, missed))
}

/// Runs the statements in a new database. Returns its connection, and the CPU time.
pub(super) fn run_statements(path: &Path, rows: i64) -> rusqlite::Result<(Connection, u64)> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA synchronous = OFF")?;
    let start = thread_cpu_ns();
    statements(&db, rows)?;
    Ok((db, thread_cpu_ns() - start))
}

fn statements(db: &Connection, rows: i64) -> rusqlite::Result<()> {
    let mut draw = Draw(1);
    let text = |draw: &mut Draw| {
        let n = draw.below(1 << 30);
        format!("{:012} {n:x} {:x}", n * SPREAD % KEYS, n * SPREAD)
    };
    db.execute_batch(
        "CREATE TABLE one (a INT, b INT, c TEXT); CREATE TABLE two (a INTEGER PRIMARY KEY, b INT, c TEXT); BEGIN",
    )?;
    for sql in [
        "INSERT INTO one VALUES (?1, ?2, ?3)",
        "INSERT INTO two VALUES (?1, ?2, ?3)",
    ] {
        let mut insert = db.prepare(sql)?;
        for row in 1..=rows {
            insert.execute((row, draw.below(rows), text(&mut draw)))?;
        }
    }
    db.execute_batch("COMMIT")?;
    let mut many = |times: i64, sql: &str| -> rusqlite::Result<()> {
        let mut statement = db.prepare(sql)?;
        (0..times).try_for_each(|_| ask(&mut statement, [draw.below(rows)]))
    };
    many(
        20,
        "SELECT count(*), avg(b), sum(length(c)) FROM one WHERE b BETWEEN ?1 AND ?1 + 100",
    )?;
    many(10, "SELECT count(*) FROM two WHERE c LIKE '%' || ?1 || '%'")?;
    many(
        10,
        "SELECT a, c FROM one WHERE c > ?1 || '' ORDER BY c LIMIT 10",
    )?;
    db.execute_batch("CREATE INDEX one_b ON one (b); CREATE INDEX one_c ON one (c)")?;
    many(
        rows / 5,
        "SELECT count(*), avg(b), sum(length(c)) FROM one WHERE b BETWEEN ?1 AND ?1 + 10",
    )?;
    db.execute_batch("BEGIN")?;
    many(
        rows / 10,
        "UPDATE one SET b = b * 2 % 1000000 WHERE b BETWEEN ?1 AND ?1 + 2",
    )?;
    many(rows, "UPDATE two SET b = b + 1 WHERE a = ?1")?;
    db.execute_batch("COMMIT")?;
    many(100, "UPDATE two SET c = c || 'x' WHERE a = ?1")?;
    many(
        rows / 10,
        "SELECT count(*), sum(length(two.c)) FROM one, two WHERE one.b BETWEEN ?1 AND ?1 + 10 AND two.a = one.a",
    )?;
    many(
        1,
        "INSERT INTO two SELECT a + 100000000, b, c FROM one WHERE a <> ?1",
    )?;
    db.execute_batch("BEGIN")?;
    many(rows / 5, "DELETE FROM two WHERE a = ?1")?;
    many(rows / 5, "DELETE FROM one WHERE rowid = ?1")?;
    db.execute_batch("COMMIT")?;
    many(
        3,
        "SELECT b % 100 AS rest, count(*), min(c) FROM one WHERE a <> ?1 GROUP BY rest ORDER BY 2",
    )?;
    db.execute_batch("VACUUM; ANALYZE")
}

/// One transaction that dirties more pages than the cache has, and reads four times as many.
fn transaction(size: &Size) -> anyhow::Result<Measures> {
    let (rows, scratch) = (size.part(ROWS), Scratch::open("sqlite")?);
    let path = scratch.path("db");
    make(&path, rows, 1, false)?;
    let db = open(&path, size.kib)?;
    db.execute_batch("PRAGMA journal_mode = OFF; BEGIN")?;
    let (zipf, mut draw) = (Zipf::new(rows, 0.6), Draw(9));
    let mut read = db.prepare("SELECT s FROM t WHERE id = ?1")?;
    let mut write = db.prepare("UPDATE t SET s = ?1 WHERE id = ?2")?;
    let other = "z".repeat(180);
    let start = thread_cpu_ns();
    for step in 0..size.part(STEPS) {
        let id = zipf.draw(&mut draw);
        if step % 5 == 0 {
            write.execute((&other, id))?;
        } else {
            ask(&mut read, [id])?;
        }
    }
    let spent = thread_cpu_ns() - start;
    Ok(Measures::new()
        .with(MS, spent as f64 / 1e6)
        .with(PAGES, missed(&db)))
}

/// Lookups of rows of which few are asked for often, alone or with something else between them.
fn misses(lookups: &str, size: &Size) -> anyhow::Result<Measures> {
    let (rows, scratch) = (size.part(ROWS), Scratch::open("sqlite")?);
    let path = scratch.path("db");
    make(&path, rows, size.part(SMALL_ROWS), lookups == INDEX)?;
    let db = open(&path, size.kib)?;
    let small = "SELECT count(s) FROM small WHERE id > ?1 - ?1";
    let (sql, turns) = match lookups {
        INDEX => ("SELECT s FROM t WHERE k = ?1", size.part(TURNS)),
        LOOP => (small, 30),
        _ => ("SELECT s FROM t WHERE id = ?1", size.part(TURNS)),
    };
    let (every, between) = match lookups {
        POINT | INDEX | LOOP => (i64::MAX, "SELECT ?1"),
        SCAN => (turns / 8, "SELECT count(s) FROM t WHERE id > ?1 - ?1"),
        SMALL => (turns / 40, small),
        ORDER => (
            turns / 100,
            "SELECT count(*) FROM (SELECT s FROM t WHERE id BETWEEN ?1 AND ?1 + ?2 ORDER BY s, id)",
        ),
        other => bail!("lookups '{other}' are unknown"),
    };
    let sorted = size.part(40_000);
    let (zipf, mut draw) = (Zipf::new(rows, 0.9), Draw(7));
    let mut get = db.prepare(sql)?;
    let mut between = db.prepare(between)?;
    for turn in 1..=turns {
        let id = zipf.draw(&mut draw);
        ask(
            &mut get,
            [if lookups == INDEX {
                id * SPREAD % KEYS
            } else {
                id
            }],
        )?;
        if turn % every == 0 {
            match lookups {
                ORDER => ask(&mut between, [id, sorted])?,
                _ => ask(&mut between, [id])?,
            }
        }
    }
    Ok(Measures::new().with(PAGES, missed(&db)))
}

/// Connections fill their caches, and all but one release them.
fn memory(mb: i64) -> anyhow::Result<Measures> {
    ensure!((1..=1024).contains(&mb), "{mb} MB were asked for");
    let scratch = Scratch::open("sqlite")?;
    let path = scratch.path("db");
    // Some 18 rows are on a page.
    let rows = mb * 1024 / 4 * 18;
    make(&path, rows, 1, false)?;
    let all: rusqlite::Result<Vec<Connection>> =
        (0..CONNECTIONS).map(|_| open(&path, mb * 1024)).collect();
    let (all, before) = (all?, resident_bytes());
    // In turns, so that the pages of one lie between those of the others.
    for from in (1..=rows).step_by(900) {
        for db in &all {
            let mut count =
                db.prepare_cached("SELECT count(s) FROM t WHERE id BETWEEN ?1 AND ?1 + 899")?;
            ask(&mut count, [from])?;
        }
    }
    let full = resident_bytes();
    for db in &all[1..] {
        // SAFETY: the connection is open, and no statement of it runs.
        unsafe { ffi::sqlite3_db_release_memory(db.handle()) };
    }
    let after = resident_bytes();
    let took = full.saturating_sub(before);
    ensure!(took > 0, "the caches took no memory");
    let back = full.saturating_sub(after);
    Ok(Measures::new().with(GIVEN, 100.0 * back as f64 / took as f64))
}
