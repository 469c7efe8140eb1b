//! OPT in three ways, curves against simulations, streams against loads, parts against wholes.

use larder_sim::machine::{Drive, Machine, Setup};
use larder_sim::{
    Cell, Header, Job, Kind, Line, Loaded, Merger, NextUse, Opt, OptHeap, Plan, ReadOptions,
    Record, Row, SimError, SpillTo, Tally, Trace, Watch, difference, fixed_rate, fixed_size,
    lru_curve, make, on_disk, sample, stream, sweep, write_part,
};
use std::sync::Arc;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Uses with some skew, loops and, if asked for, removals, readahead and states, of which OPT wants to know nothing.
fn trace(uses: usize, blocks: u64, seed: u64, all_kinds: bool) -> Loaded {
    let mut dice = Dice(seed);
    let mut records = Vec::new();
    for n in 0..uses {
        let block = match dice.below(4) {
            0 => n as u64 % blocks,
            1 => dice.below(blocks),
            _ => {
                let top = 1 + dice.below(blocks);
                dice.below(top)
            }
        };
        let kind = match dice.below(20) {
            0 if all_kinds => Kind::Remove,
            1 if all_kinds => Kind::Readahead,
            2 if all_kinds => Kind::Write,
            3 if all_kinds => Kind::Dirty,
            4 if all_kinds => Kind::Held,
            5 if all_kinds => Kind::Tick,
            _ => Kind::Read,
        };
        records.push(Record {
            block,
            request: n as u32,
            kind,
            ..Record::default()
        });
    }
    Loaded::from_records("made", &records).unwrap()
}

fn run(mut cell: impl Cell, trace: &Loaded) -> Tally {
    for chunk in trace.chunks() {
        cell.run(&chunk.unwrap()).unwrap();
    }
    cell.tally()
}

/// OPT by its definition: looks ahead at every eviction.
fn by_definition(trace: &Loaded, size: usize) -> u64 {
    let mut all = Vec::new();
    for chunk in trace.chunks() {
        chunk.unwrap().for_each(|block, _, kind| {
            if !kind.is_state() {
                all.push((block, kind));
            }
        });
    }
    let (mut cache, mut hits) = (Vec::new(), 0);
    for (n, (block, kind)) in all.iter().enumerate() {
        if *kind == Kind::Remove {
            cache.retain(|b| b != block);
            continue;
        }
        if cache.contains(block) {
            hits += u64::from(*kind != Kind::Readahead);
            continue;
        }
        if cache.len() == size {
            let next = |b: &u32| match all[n + 1..].iter().position(|(other, _)| other == b) {
                Some(k) if all[n + 1 + k].1 != Kind::Remove => k,
                _ => usize::MAX,
            };
            let (at, _) = cache
                .iter()
                .enumerate()
                .max_by_key(|(_, b)| next(b))
                .unwrap();
            cache.swap_remove(at);
        }
        cache.push(*block);
    }
    hits
}

#[test]
fn opt_is_equal_in_three_ways() {
    for seed in 0..30 {
        let trace = trace(700, 60, seed, seed % 2 == 1);
        let next = Arc::new(NextUse::of(&trace).unwrap());
        for size in [1, 2, 3, 7, 20, 59, 60, 100] {
            let bits = run(Opt::new(size, next.clone()).unwrap(), &trace);
            let heap = run(OptHeap::new(size, &trace).unwrap(), &trace);
            assert_eq!(bits, heap, "seed {seed}, size {size}");
            assert_eq!(
                bits.hits,
                by_definition(&trace, size),
                "seed {seed}, size {size}"
            );
            assert_eq!(bits.hits + bits.misses, trace.counts.uses);
        }
    }
}

#[test]
fn opt_is_equal_over_many_levels_of_its_set() {
    let trace = trace(300_000, 40_000, 5, true);
    let next = Arc::new(NextUse::of(&trace).unwrap());
    for size in [1, 100, 4000, 39_000] {
        let bits = run(Opt::new(size, next.clone()).unwrap(), &trace);
        assert_eq!(bits, run(OptHeap::new(size, &trace).unwrap(), &trace));
        let lru = run_boxed("lru", size, &trace);
        assert!(bits.hits >= lru.hits);
    }
}

fn run_boxed(policy: &str, size: usize, trace: &Loaded) -> Tally {
    let jobs = [Job {
        policy: policy.to_owned(),
        size,
    }];
    sweep(trace, &jobs, 1, &Watch::default()).unwrap()[0].tally
}

#[test]
fn opt_of_nothing_is_refused() {
    let trace = trace(10, 5, 1, false);
    assert!(Opt::new(0, Arc::new(NextUse::of(&trace).unwrap())).is_err());
    assert!(OptHeap::new(0, &trace).is_err());
    assert!(make("lru", 0).is_err());
}

#[test]
fn the_curve_of_one_pass_is_lru_at_every_size() {
    for seed in 0..6 {
        // Removals, but no readahead: see lru_curve.
        let mut dice = Dice(seed);
        let records: Vec<Record> = (0..20_000)
            .map(|n| {
                let kind = if seed % 2 == 1 && dice.below(15) == 0 {
                    Kind::Remove
                } else {
                    Kind::Read
                };
                let top = 1 + dice.below(900);
                Record {
                    block: dice.below(top),
                    request: n,
                    kind,
                    ..Record::default()
                }
            })
            .collect();
        let trace = Loaded::from_records("made", &records).unwrap();
        let curve = lru_curve(&trace).unwrap();
        for size in [1, 2, 10, 77, 300, 600, 900, 5000] {
            let lru = run_boxed("lru", size, &trace);
            assert_eq!(
                curve.hit_ratio(size),
                lru.hit_ratio(),
                "seed {seed}, size {size}"
            );
        }
    }
}

#[test]
fn samples_come_near_the_curve_and_a_whole_sample_is_it() {
    let trace = trace(400_000, 60_000, 11, false);
    let sizes = [500, 2000, 6000, 12_000, 25_000, 50_000];
    let exact = lru_curve(&trace).unwrap().hit_ratios(&sizes);
    assert_eq!(
        fixed_rate(&trace, 1.0, 3).unwrap().hit_ratios(&sizes),
        exact
    );
    let near = |estimate: &[f64]| difference(estimate, &exact);
    assert!(near(&fixed_rate(&trace, 0.1, 3).unwrap().hit_ratios(&sizes)).most < 0.02);
    let (curve, rate) = fixed_size(&trace, 4096, 3).unwrap();
    assert!(rate > 0.04 && rate < 0.1, "{rate}");
    assert!(near(&curve.hit_ratios(&sizes)).most < 0.03);
    let whole = sample(&trace, 1.0, 3).unwrap();
    assert_eq!(whole.trace.counts.uses, trace.counts.uses);
    let small = sample(&trace, 0.1, 3).unwrap();
    assert!(small.trace.counts.blocks > 5000 && small.trace.counts.blocks < 7000);
    for policy in ["lru", "fifo", "opt"] {
        let jobs = |size: &dyn Fn(usize) -> usize| -> Vec<Job> {
            sizes
                .iter()
                .map(|s| Job {
                    policy: policy.to_owned(),
                    size: size(*s),
                })
                .collect()
        };
        let run = |trace: &Loaded, jobs: &[Job]| sweep(trace, jobs, 2, &Watch::default()).unwrap();
        let exact: Vec<f64> = run(&trace, &jobs(&|s| s))
            .iter()
            .map(|o| o.tally.hit_ratio())
            .collect();
        let mini = run(&small.trace, &jobs(&|s| small.size(s)));
        let mini: Vec<f64> = mini.iter().map(|o| small.hit_ratio(&o.tally)).collect();
        assert!(
            difference(&mini, &exact).most < 0.03,
            "{policy}: {mini:?} {exact:?}"
        );
    }
}

#[test]
fn threads_and_streams_change_nothing() {
    let mut text = String::new();
    let mut dice = Dice(9);
    for _ in 0..50_000 {
        let top = 1 + dice.below(2000);
        text.push_str(&format!("{}\n", dice.below(top)));
    }
    let open = || {
        Trace::over(
            "t",
            std::io::Cursor::new(text.clone()),
            &ReadOptions::default(),
        )
        .unwrap()
    };
    let jobs: Vec<Job> = [1, 10, 500, 1900]
        .into_iter()
        .flat_map(|size| {
            ["lru", "fifo"].map(|p| Job {
                policy: p.to_owned(),
                size,
            })
        })
        .collect();
    let loaded = Loaded::from_trace(open(), |_| {}).unwrap();
    let tallies = |outcomes: Vec<larder_sim::Outcome>| {
        outcomes
            .into_iter()
            .map(|o| (o.job, o.tally))
            .collect::<Vec<_>>()
    };
    let one = tallies(sweep(&loaded, &jobs, 1, &Watch::default()).unwrap());
    assert_eq!(one.iter().map(|(j, _)| j.clone()).collect::<Vec<_>>(), jobs);
    assert_eq!(
        tallies(sweep(&loaded, &jobs, 3, &Watch::default()).unwrap()),
        one
    );
    for threads in [1, 3] {
        let (streamed, counts) = stream(open(), &jobs, threads, |_, _| {}).unwrap();
        assert_eq!(tallies(streamed), one);
        assert_eq!(counts, loaded.counts);
    }
    let future = [Job {
        policy: "opt".to_owned(),
        size: 3,
    }];
    assert!(stream(open(), &future, 1, |_, _| {}).is_err());
}

#[test]
fn a_trace_that_memory_does_not_hold_is_the_same_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let spilling = |dir: &std::path::Path, memory, most| ReadOptions {
        max_memory: memory,
        spill: Some(SpillTo {
            dir: dir.to_owned(),
            most,
        }),
        ..ReadOptions::default()
    };
    let read = |name: &str, options: &ReadOptions| Loaded::read(name.as_ref(), options, |_| {});
    let tallies = |trace: &Loaded| {
        let jobs = ["opt", "lru"].map(|policy| Job {
            policy: policy.to_owned(),
            size: 20_000,
        });
        let outcomes = sweep(trace, &jobs, 2, &Watch::default()).unwrap();
        outcomes.iter().map(|o| o.tally).collect::<Vec<_>>()
    };
    // Requests of several blocks, writes and removals; and enough that the next uses do not fit, either.
    for (name, memory, long) in [
        ("dbench-like:clients=4,turns=50", 11 << 20, false),
        ("build-like:units=4000", 10 << 20, true),
    ] {
        let whole = read(name, &ReadOptions::default()).unwrap();
        let spilled = read(name, &spilling(dir.path(), memory, 1 << 30)).unwrap();
        assert_eq!((whole.spilled(), whole.counts), (0, spilled.counts));
        let before = spilled.spilled();
        assert!(before > 4 << 20 && whole.chunks().len() > 1, "{before}");
        for (a, b) in whole.chunks().zip(spilled.chunks()) {
            let (a, b) = (a.unwrap(), b.unwrap());
            assert!(a.blocks == b.blocks && a.requests == b.requests && a.kinds == b.kinds);
            assert_eq!(
                (a.first_request, a.bound, a.originals.of(9)),
                (b.first_request, b.bound, b.originals.of(9))
            );
        }
        assert_eq!(tallies(&whole), tallies(&spilled));
        assert_eq!(spilled.spilled() > before, long, "next uses are in it");
        assert_eq!(lru_curve(&whole).unwrap(), lru_curve(&spilled).unwrap());
        // What does not fit or cannot be made is an error.
        let full = read(name, &spilling(dir.path(), memory, 3 << 20)).unwrap_err();
        let said = full.to_string();
        assert!(
            said.contains("3 MiB") && said.contains("--max-spill"),
            "{said}"
        );
    }
    // Nothing has a name there.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let none = spilling(&dir.path().join("none"), 10 << 20, 1 << 30);
    let none = read("build-like:units=4000", &none).unwrap_err();
    assert!(matches!(none, SimError::Spill { .. }), "{none}");
}

#[test]
fn a_disk_takes_what_its_commands_take() {
    // A loop of twenty blocks in a cache of ten: under LRU every use misses. Neighbours are one long command but for the way back.
    let open = || {
        Trace::open(
            "loop:blocks=20,requests=200".as_ref(),
            &ReadOptions::default(),
        )
    };
    let jobs = ["lru", "fifo", "lirs"].map(|policy| Job {
        policy: policy.to_owned(),
        size: 10,
    });
    let mut setup = Setup::new(1);
    setup.drive = Drive {
        seek: 0.01,
        rate: 4096e3,
        block: 4096.0,
    };
    let on = |threads| on_disk(open().unwrap(), &jobs, threads, setup, |_, _| {}).unwrap();
    let (outcomes, counts) = on(2);
    let (streamed, same) = stream(open().unwrap(), &jobs, 2, |_, _| {}).unwrap();
    assert_eq!(counts, same);
    for (disk, bare) in outcomes.iter().zip(&streamed) {
        assert_eq!((&disk.job, disk.tally), (&bare.job, bare.tally));
    }
    let disk = outcomes[0].disk.unwrap();
    assert_eq!((disk.read, disk.written, disk.commands), (200, 0, 200));
    // The head begins at block 0.
    let seconds = 9.0 * 0.01 + 200.0 * 1e-3;
    assert!((disk.total_s - seconds).abs() < 1e-9, "{disk:?}");
    let alone: Vec<_> = on(1).0.iter().map(|o| o.disk).collect();
    assert_eq!(alone, outcomes.iter().map(|o| o.disk).collect::<Vec<_>>());
}

#[test]
fn on_a_disk_that_takes_no_time_every_rule_has_its_hits() {
    let mut dice = Dice(3);
    let records: Vec<Record> = (0..20_000)
        .map(|n| {
            let top = 1 + dice.below(300);
            Record {
                block: dice.below(top),
                request: n,
                kind: [Kind::Write, Kind::Read][dice.below(3).min(1) as usize],
                ..Record::default()
            }
        })
        .collect();
    let trace = Loaded::from_records("made", &records).unwrap();
    let mut setup = Setup::new(60);
    // What is dirty is written at once.
    setup.dirty = 0.0;
    setup.drive = Drive {
        seek: 0.0,
        rate: f64::INFINITY,
        block: 4096.0,
    };
    for rule in larder_policy::rules() {
        let mut machine = Machine::new(rule.name, setup).unwrap();
        records.iter().for_each(|r| machine.step(r).unwrap());
        let bare = run_boxed(rule.name, setup.blocks, &trace);
        assert_eq!(machine.counted().tally, bare, "{}", rule.name);
    }
}

#[test]
fn parts_make_the_whole_or_say_what_is_missing() {
    let plan = Plan {
        traces: vec!["a".into(), "b".into()],
        policies: vec!["lru".into(), "fifo".into(), "opt".into()],
        sizes: vec!["1".into(), "2".into()],
        reading: String::new(),
    };
    let row = |cell: usize| Row {
        trace: plan.traces[cell / 6].clone(),
        format: "txt".into(),
        counts: larder_sim::Counts {
            uses: 20,
            ..Default::default()
        },
        policy: plan.policies[cell % 3].clone(),
        size: cell / 3 % 2 + 1,
        asked: plan.sizes[cell / 3 % 2].clone(),
        tally: Tally {
            hits: cell as u64,
            misses: 20 - cell as u64,
            ..Tally::default()
        },
        disk: None,
    };
    let whole: Vec<Row> = (0..12).map(row).collect();
    let parts: Vec<String> = (1..=5)
        .map(|shard| {
            let lines: Vec<Line> = plan
                .shard(shard, 5)
                .map(|c| Line {
                    cell: c.cell,
                    row: row(c.cell),
                })
                .collect();
            let header = Header {
                larder_sim_part: 1,
                plan: plan.fingerprint(),
                shard,
                shards: 5,
                cells: 12,
            };
            write_part(&header, &lines).unwrap()
        })
        .collect();
    let merge = |parts: &[&str]| -> Result<Vec<Row>, String> {
        let mut merger = Merger::default();
        for (n, part) in parts.iter().enumerate() {
            merger.add(&format!("part{n}"), part.as_bytes())?;
        }
        merger.finish()
    };
    let all: Vec<&str> = [3, 0, 4, 1, 2, 0]
        .iter()
        .map(|n| parts[*n].as_str())
        .collect();
    assert_eq!(merge(&all).unwrap(), whole);
    assert!(merge(&all[..4]).unwrap_err().contains("missing"));
    let cut = &parts[0][..parts[0].trim_end().rfind('\n').unwrap() + 1];
    assert!(merge(&[cut]).unwrap_err().contains("cut off"));
    let half = &parts[0][..parts[0].len() - 9];
    assert!(merge(&[half]).unwrap_err().contains("line "));
    let wrong = parts[1].replace("\"lost\":0", "\"lost\":1");
    assert_ne!(wrong, parts[1]);
    assert!(
        merge(&[&parts[1], &wrong])
            .unwrap_err()
            .contains("another result")
    );
    let other = Plan {
        reading: "x".into(),
        ..plan.clone()
    };
    let foreign = parts[2].replace(
        &plan.fingerprint().to_string(),
        &other.fingerprint().to_string(),
    );
    assert!(
        merge(&[&parts[0], &foreign])
            .unwrap_err()
            .contains("another sweep")
    );
    assert!(merge(&["nonsense"]).unwrap_err().contains("no part"));
    assert!(merge(&[""]).unwrap_err().contains("no part"));
    let elsewhere = parts[4].replace("\"writes\":0", "\"writes\":1");
    let mixed: Vec<&str> = parts[..4]
        .iter()
        .map(String::as_str)
        .chain([elsewhere.as_str()])
        .collect();
    assert!(merge(&mixed).unwrap_err().contains("contents differ"));
}
