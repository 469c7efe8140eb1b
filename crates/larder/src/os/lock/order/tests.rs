//! The check sees what it is for, and the table of docs/design.md has all locks and waits.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::{Condvar, Lock, Mutex, RawLock};
use super::{Rank, Ranked, calls, sleeps};

const ROLE: &str = "LARDER_TEST_LOCKS";

struct Outer;

impl Ranked for Outer {
    const RANK: Rank = Rank::FileSync;
}

struct Middle;

impl Ranked for Middle {
    const RANK: Rank = Rank::BlockCache;
}

struct Parked;

impl Ranked for Parked {
    const RANK: Rank = Rank::LatchPark;
}

struct Last;

impl Ranked for Last {
    const RANK: Rank = Rank::PoolPages;
}

/// What a thread must not do, and what is said of it.
const BREACHES: [(&str, fn()); 7] = [
    ("holds PoolPages takes FileSync", || {
        let (last, outer) = (Lock::new(Last), Mutex::new(Outer));
        let _last = last.lock();
        let _outer = outer.lock();
    }),
    ("holds PoolPages takes PoolPages", || {
        let (one, other) = (Lock::new(Last), Lock::new(Last));
        let _one = one.lock();
        let _other = other.lock();
    }),
    ("holds PoolPages takes Slabs", || {
        let (last, slabs) = (Lock::new(Last), RawLock::new(Rank::Slabs));
        let _last = last.try_lock().unwrap();
        slabs.lock();
    }),
    ("holds BlockCache waits for a condition", || {
        let (middle, park) = (Mutex::new(Middle), Mutex::new(Parked));
        let _middle = middle.lock();
        drop(Condvar::new().wait(park.lock().unwrap()));
    }),
    ("holds PoolPages waits for another thread", || {
        let last = Lock::new(Last);
        let _last = last.lock();
        crate::os::wait_turn(0);
    }),
    ("holds BlockCache calls a storage", || {
        let middle = Mutex::new(Middle);
        let _middle = middle.lock();
        let _outside = calls("a storage", Rank::BlockCache);
    }),
    ("holds FileSync takes FileSync", || {
        let (one, other) = (Mutex::new(Outer), Mutex::new(Outer));
        let _one = one.lock();
        // What was called is over.
        drop(calls("a storage", Rank::BlockCache));
        let _other = other.lock();
    }),
];

#[test]
#[cfg_attr(miri, ignore = "the interpreter starts no process")]
fn a_breach_ends_the_process_and_names_both_locks() {
    if let Ok(number) = std::env::var(ROLE) {
        BREACHES[number.parse::<usize>().unwrap()].1();
        return;
    }
    let name = "os::lock::order::tests::a_breach_ends_the_process_and_names_both_locks";
    for (number, (text, _)) in BREACHES.iter().enumerate() {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(ROLE, number.to_string())
            .output()
            .unwrap();
        assert!(!ended.status.success(), "{text}: {ended:?}");
        let said = format!("larder: locks: a thread that {text};");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(stderr.contains(&said), "{said} is not in {stderr}");
    }
}

#[test]
fn what_the_order_allows_passes() {
    let (outer, middle, last) = (Mutex::new(Outer), Mutex::new(Middle), Lock::new(Last));
    {
        let _outer = outer.lock();
        let middle = middle.lock();
        let last = last.lock();
        // Not in the order in which they were taken.
        drop(middle);
        drop(last);
        // A thread may sleep with this one, and the user's code has a fresh beginning.
        sleeps("a storage");
        let _outside = calls("a storage", Rank::BlockCache);
        drop(Mutex::new(Outer).lock());
    }
    // A lock that is only tried may be of any rank, and around a fork all are taken.
    let _last = last.lock();
    assert!(outer.try_lock().is_ok());
    let other = RawLock::new(Rank::ForkList);
    other.lock_around_fork();
    other.unlock();
}

/// A row of the table: its cells.
fn table() -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design.md");
    let text = fs::read_to_string(path).unwrap();
    let section = text.split("\n## Locks and waits\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|')
            .split('|')
            .map(|c| c.trim().to_owned())
            .collect()
    };
    // Behind the heads and the rule.
    let rows: Vec<Vec<String>> = rows.map(cells).skip(2).collect();
    assert!(rows.iter().all(|row| row.len() == 7), "{rows:?}");
    rows
}

#[test]
#[cfg_attr(miri, ignore = "the interpreter has no files")]
fn the_table_has_every_rank_in_its_order() {
    let rows = table();
    let ranked = rows.iter().filter(|row| row[3] != "none");
    let said: Vec<(String, bool)> = ranked
        .map(|row| (row[3].clone(), row[4].starts_with("yes")))
        .collect();
    let all: Vec<(String, bool)> = (1..)
        .zip(Rank::ALL)
        .map(|(number, rank)| (format!("{number} `{rank:?}`"), rank.may_sleep()))
        .collect();
    assert_eq!(said, all);
    assert!(Rank::ALL.is_sorted());
}

/// What a lock or a wait looks like in the code.
const SIGNS: [&str; 18] = [
    "Lock::new(",
    "Lock>::new(",
    "Mutex::new(",
    "Mutex<",
    "Condvar::new(",
    "RwLock",
    "LazyLock",
    "OnceLock",
    "Ranked for",
    "futex::wait",
    "pthread_join",
    ".join();",
    "thread::park()",
    "park_timeout(",
    "yield_now()",
    "wait_turn(",
    "thread::sleep(",
    "file.try_lock()",
];

/// What the signs are made of, and the names under which models of threads stand for it.
const MADE_OF: [&str; 5] = [
    "internal.rs",
    "os/lock",
    "os/sched.rs",
    "os/forked.rs",
    "ids/space/model.rs",
];

/// Source files in which a line that is no comment has one of the signs, without tests.
fn files_with_signs(folder: &Path, base: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path
            .strip_prefix(base)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let made_of = MADE_OF.iter().any(|part| name.starts_with(part));
        if name.contains("tests") || name.contains("loom") || made_of {
            continue;
        }
        if path.is_dir() {
            files_with_signs(&path, base, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        let mut lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        if lines.any(|line| SIGNS.iter().any(|sign| line.contains(sign))) {
            found.insert(name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "the interpreter has no files")]
fn the_table_has_every_file_with_a_lock_or_a_wait() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    let library = crates.join("larder/src");
    files_with_signs(&library, &library, &mut found);
    for folder in ["larder-c/src", "larder-c/malloc/src", "larder-cache/src"] {
        files_with_signs(&crates.join(folder), crates, &mut found);
    }
    let rows = table();
    let files = rows
        .iter()
        .flat_map(|row| row[1].split('`').skip(1).step_by(2));
    let said: BTreeSet<String> = files.map(str::to_owned).collect();
    assert_eq!(
        said, found,
        "left: the table's files; right: those of the code"
    );
}
