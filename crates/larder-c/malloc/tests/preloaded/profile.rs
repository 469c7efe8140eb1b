//! The heap profile by samples: what is written is read back here, and compared with what the program is known to have allocated.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Mode, Program, has, library, must};

/// Mean bytes between samples.
const INTERVAL: u64 = 4096;

/// A field of a message: its number, and what it holds.
enum Field<'a> {
    Number(u32, u64),
    Bytes(u32, &'a [u8]),
}

/// Takes a number from the front.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        n |= u64::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    n
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (number, kind) = ((key >> 3) as u32, key & 7);
        let n = varint(&mut bytes);
        all.push(match kind {
            0 => Field::Number(number, n),
            2 => {
                let (inside, rest) = bytes.split_at(n as usize);
                bytes = rest;
                Field::Bytes(number, inside)
            }
            other => panic!("there is no field of kind {other}"),
        });
    }
    all
}

fn numbers(bytes: &[u8], field: u32) -> Vec<u64> {
    let numbers = fields(bytes).into_iter();
    let numbers = numbers.filter_map(|f| match f {
        Field::Number(number, n) if number == field => Some(n),
        _ => None,
    });
    numbers.collect()
}

fn number(bytes: &[u8], field: u32) -> u64 {
    numbers(bytes, field).first().copied().unwrap_or(0)
}

/// A stack with its values.
struct Sample {
    calls: Vec<u64>,
    values: [f64; 4],
}

struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: String,
    id: String,
}

/// What a file says.
struct Profile {
    samples: Vec<Sample>,
    mappings: Vec<Mapping>,
}

impl Profile {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let all = fields(&bytes);
        let messages = |field: u32| {
            all.iter().filter_map(move |f| match f {
                Field::Bytes(number, bytes) if *number == field => Some(*bytes),
                _ => None,
            })
        };
        let strings: Vec<&str> = messages(6).map(|s| str::from_utf8(s).unwrap()).collect();
        let string = |n: u64| strings[n as usize].to_owned();
        let pair = |m: &[u8]| format!("{}/{}", string(number(m, 1)), string(number(m, 2)));
        assert_eq!(strings[0], "");
        assert_eq!(
            messages(1).map(pair).collect::<Vec<_>>().join(" "),
            "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
        );
        assert_eq!(messages(11).map(pair).collect::<Vec<_>>(), ["space/bytes"]);
        assert_eq!(number(&bytes, 12), INTERVAL);
        assert_eq!(string(number(&bytes, 14)), "inuse_space");
        assert!(number(&bytes, 9) > 1_700_000_000_000_000_000, "a time");
        let mappings: Vec<Mapping> = messages(3)
            .map(|m| Mapping {
                start: number(m, 2),
                end: number(m, 3),
                offset: number(m, 4),
                file: string(number(m, 5)),
                id: string(number(m, 6)),
            })
            .collect();
        let mut addresses = BTreeMap::new();
        for location in messages(4) {
            let (id, mapping, at) = (
                number(location, 1),
                number(location, 2),
                number(location, 3),
            );
            assert!(
                addresses.insert(id, at).is_none(),
                "a location is there once"
            );
            let mapping = &mappings[mapping as usize - 1];
            assert!((mapping.start..mapping.end).contains(&at));
        }
        let samples = messages(2)
            .map(|m| Sample {
                calls: numbers(m, 1).iter().map(|id| addresses[id]).collect(),
                values: numbers(m, 2)
                    .iter()
                    .map(|&n| n as f64)
                    .collect::<Vec<_>>()
                    .try_into()
                    .unwrap(),
            })
            .collect();
        Self { samples, mappings }
    }

    /// The values by the innermost of the program's functions.
    fn by_function(&self, program: &Path) -> BTreeMap<String, [f64; 4]> {
        let own = self.mappings.iter().find(|m| Path::new(&m.file) == program);
        let own = own.expect("the program is a module");
        assert_eq!(own.id.len(), 40, "the linker's identifier");
        let names = must(
            Command::new("nm")
                .args(["-n", "--defined-only", "-P"])
                .arg(program),
        );
        let functions: Vec<(u64, &str)> = names
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let (name, kind, at) = (words.next()?, words.next()?, words.next()?);
                let is_code = matches!(kind, "t" | "T");
                Some((u64::from_str_radix(at, 16).ok()?, name)).filter(|_| is_code)
            })
            .collect();
        let mut sums = BTreeMap::<String, [f64; 4]>::new();
        for sample in &self.samples {
            let inside = |at: &&u64| (own.start..own.end).contains(*at);
            let name = sample.calls.iter().find(inside).map_or("", |at| {
                let at = at - own.start + own.offset;
                functions[functions.partition_point(|&(from, _)| from <= at) - 1].1
            });
            let sum = sums.entry(name.to_owned()).or_default();
            for (sum, value) in sum.iter_mut().zip(sample.values) {
                *sum += value;
            }
        }
        sums
    }
}

/// Within five standard errors of the right number; `bytes` are all that could have been sampled.
fn near(got: f64, right: f64, bytes: f64, what: &str) {
    let relative = (INTERVAL as f64 / bytes.max(1.0)).sqrt();
    let off = (got / right - 1.0).abs();
    assert!(
        off < 5.0 * relative,
        "{what}: {got} for {right}, {off:.4} off, of {relative:.4}"
    );
}

fn sampled(mode: Mode, program: &Program, file: &Path) -> Command {
    let mut command = mode.command(&program.path);
    command
        .env("LARDER_HEAP_PROFILE", file)
        .env("LARDER_HEAP_PROFILE_INTERVAL", INTERVAL.to_string());
    command
}

#[test]
fn sums_are_those_of_the_program() {
    if !has("nm") {
        return;
    }
    let Some(program) = Program::compile("profile.c") else {
        return;
    };
    must(Mode::System.command(&program.path).arg("-"));
    must(Mode::PerThread.command(&program.path).arg("-"));
    // In the last of them with guarded blocks, which share the count of bytes.
    for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked] {
        let (file, early) = (
            program.dir.path().join("end"),
            program.dir.path().join("early"),
        );
        let mut command = sampled(mode, &program, &file);
        if mode == Mode::Locked {
            command.env("LARDER_GUARD_SAMPLES", "3000");
        }
        let said = mode.run(command.arg(&early), &program);
        assert!(said.contains("ok\n"), "{said}");
        let at_end = Profile::read(&file).by_function(&program.path);
        let before = Profile::read(&early).by_function(&program.path);
        for (function, objects, bytes) in [
            ("keep_small", 1e5, 1e7),
            ("keep_odd", 3e3, 4_501_500.0),
            ("churn", 1e6, 6.4e7),
            ("keep_in_thread", 8e4, 1.6e7),
        ] {
            let what = format!("{function}, {mode:?}");
            let values = at_end[function];
            near(
                values[0],
                objects,
                bytes / if objects > 1e4 { 1.0 } else { 20.0 },
                &what,
            );
            near(values[1], bytes, bytes, &what);
            assert_eq!(before[function][..2], values[..2], "nothing more came");
            let live = match function {
                "churn" => 0.0,
                "keep_small" => 1.0 - 33_334.0 / 1e5,
                _ => 1.0,
            };
            if live == 0.0 {
                assert_eq!(values[2..], [0.0, 0.0], "{what}");
            } else {
                near(values[3], bytes * live, bytes * live, &what);
                let was = before[function];
                assert_eq!(was[2..], was[..2], "nothing had gone");
            }
        }
        let grown = at_end["grow"];
        assert_eq!(
            grown[2].round(),
            1.0,
            "{mode:?}: the block as it is: {grown:?}"
        );
        assert!(
            (4e7..4.001e7).contains(&grown[3]) && grown[1] > 8e7,
            "{grown:?}"
        );
        // Nearly all blocks of this size are sampled.
        let moved = at_end["grow_once"];
        near(moved[1], 200.0 * 320_000.0, 6.4e7, "blocks that move once");
        assert_eq!(moved[2].round(), 200.0, "{mode:?}: {moved:?}");
        near(moved[3], 200.0 * 300_000.0, 6e7, "what they are then");
        // The child goes on where its parent was.
        let child = said.lines().find_map(|line| line.strip_prefix("child "));
        let file = file.with_file_name(format!("end.{}", child.unwrap()));
        let child = Profile::read(&file).by_function(&program.path);
        near(child["keep_in_child"][3], 1e7, 1e7, "the child");
        assert_eq!(child["keep_small"], at_end["keep_small"]);
        assert!(!at_end.contains_key("keep_in_child"));
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn gos_pprof_reads_it() {
    let there = Command::new("go").args(["tool", "pprof", "-h"]).output();
    if there.is_err() {
        eprintln!("skipped: there is no go");
        return;
    }
    let Some(program) = Program::compile("profile.c") else {
        return;
    };
    let file = program.dir.path().join("%p.pb");
    must(&mut sampled(Mode::PerThread, &program, &file));
    let mut files = 0;
    for entry in std::fs::read_dir(program.dir.path()).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|e| e == "pb") {
            files += 1;
            let top = must(
                Command::new("go")
                    .args(["tool", "pprof", "-top", "-sample_index=alloc_space"])
                    .args([&program.path, &file])
                    .env("PPROF_TMPDIR", program.dir.path()),
            );
            assert!(top.contains("churn") && top.contains("keep_small"), "{top}");
        }
    }
    assert_eq!(files, 2, "the program's and its child's");
}

/// What lives at the end, on a standard error that the program closes.
#[test]
fn what_lives_at_the_end_is_listed() {
    let ended = Command::new("sort")
        .arg("/etc/passwd")
        .env("LD_PRELOAD", library())
        .env("LARDER_LEAKS", "sample")
        .env("LARDER_HEAP_PROFILE_INTERVAL", "16")
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        ended.status.success() && said.contains("blocks ("),
        "{said}"
    );
    assert!(said.contains("sort+0x"), "{said}");
    assert!(
        said.lines()
            .last()
            .unwrap()
            .starts_with("larder: alive: about "),
        "{said}"
    );
}

#[test]
fn words_that_mean_nothing_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    for (name, word, said) in [
        (
            "LARDER_LEAKS",
            "all",
            "larder: LARDER_LEAKS: there is no mode \"all\"; there are sample, off; it is ignored\n",
        ),
        ("LARDER_LEAKS", "off", ""),
        (
            "LARDER_GUARD_SAMPLES",
            "1K",
            "larder: LARDER_GUARD_SAMPLES: \"1K\" is no number of bytes from 1 to 1073741824, and not \"on\" or \"off\"; it is \
             ignored\n",
        ),
        (
            "LARDER_HEAP_PROFILE_INTERVAL",
            "0",
            "larder: LARDER_HEAP_PROFILE_INTERVAL: \"0\" is no number of bytes from 1 to 1073741824; it is ignored\n",
        ),
        (
            "LARDER_HEAP_PROFILE",
            "/no/such/folder/file",
            "larder: LARDER_HEAP_PROFILE: /no/such/folder/file cannot be written: No such file or directory (os error 2)\n",
        ),
    ] {
        let ended = Command::new("true")
            .env("LD_PRELOAD", library())
            .env("LARDER_HEAP_PROFILE", dir.path().join("profile"))
            .env(name, word)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), said);
        assert!(ended.status.success());
    }
}
