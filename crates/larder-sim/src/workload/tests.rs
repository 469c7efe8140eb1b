//! What the workloads promise.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Kind, ReadOptions, Record, block_of};
use super::patterns::{mixed, zipf};
use super::*;

fn named(text: &str) -> Vec<Record> {
    let spec = Spec::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let spec = spec.unwrap_or_else(|| panic!("{text} is no workload"));
    let records = spec.records(&ReadOptions::default());
    records.unwrap_or_else(|error| panic!("{error}")).collect()
}

fn small(name: &str, seed: u64) -> Vec<Record> {
    let small = [
        ("blocks", 1_000),
        ("requests", 20_000),
        ("clients", 3),
        ("turns", 3),
        ("units", 3),
        ("grep-pages", 500),
    ];
    let made = made(name);
    let given = small
        .into_iter()
        .chain([("seed", seed)])
        .filter(|(name, _)| made.parameters.iter().any(|p| p.name == *name))
        .map(|(name, value)| format!("{name}={value}"));
    named(&format!("{name}:{}", given.collect::<Vec<_>>().join(",")))
}

fn made(name: &str) -> &'static Made {
    let made = MADE.iter().find(|made| made.name == name);
    made.unwrap_or_else(|| panic!("no {name}"))
}

/// All but the one that reads a file.
fn of_its_own() -> impl Iterator<Item = &'static Made> {
    MADE.iter().filter(|made| made.name != "dbench")
}

#[test]
fn every_workload_repeats_itself_and_its_seed_matters_where_something_is_drawn() {
    for Made { name, .. } in of_its_own() {
        assert_eq!(small(name, 1), small(name, 1), "{name}");
        let drawn = !["scan", "loop"].contains(name);
        assert_eq!(small(name, 1) != small(name, 2), drawn, "{name}");
        assert!(!small(name, 1).is_empty());
    }
}

#[test]
fn parameters_reach_the_workload_and_defaults_are_allowed() {
    for made in &MADE {
        for p in made.parameters {
            let text = format!("{}:{}={}", made.name, p.name, p.default);
            assert!(
                Spec::parse(&text).is_ok_and(|spec| spec.is_some()),
                "{text}"
            );
        }
    }
    let blocks = |text: &str| named(text).iter().map(|r| r.block).max();
    assert_eq!(blocks("loop: blocks = 7 , requests=2e1,"), Some(6));
    assert_eq!(named("scan:requests=2e1").len(), 20);
    // at 0 all blocks are alike, at 10 the first is nearly all
    let top = |alpha: &str| {
        let mut uses = BTreeMap::new();
        for record in named(&format!("zipf:blocks=10,requests=1000,alpha={alpha}")) {
            *uses.entry(record.block).or_insert(0) += 1;
        }
        uses.values().copied().max().unwrap_or(0)
    };
    assert!(top("0") < 200 && top("10") > 950);
    assert_eq!(
        named("correlated:touches=5,requests=10")[4].block,
        named("correlated:touches=5,requests=10")[0].block
    );
    let tenants: BTreeSet<u16> = named("dbench-like:clients=3,turns=0")
        .iter()
        .map(|r| r.tenant)
        .collect();
    assert_eq!(tenants.len(), 3);
    let build = named("build-like:units=2,headers=5,includes=3,compiler-pages=11,grep-pages=13");
    let of = |file| build.iter().filter(|r| r.file == file).count();
    assert_eq!(
        (of(0), build.iter().filter(|r| r.tenant == 1).count()),
        (22, 13)
    );
    assert!(
        build
            .iter()
            .filter(|r| r.tenant == 0)
            .all(|r| r.file < 6 || r.file >= 1 << 18)
    );
}

#[test]
fn what_a_workload_cannot_be_is_said_with_what_is_allowed() {
    for (text, what) in [
        (
            "zipf:blocks=0",
            "workload zipf: blocks is '0'; it is a whole number from 1 to",
        ),
        ("zipf:blocks=-1", "whole number"),
        ("zipf:blocks=1.5", "whole number"),
        ("zipf:blocks=1e99", "whole number"),
        ("zipf:blocks=inf", "whole number"),
        (
            "zipf:alpha=nan",
            "alpha is 'nan'; it is a number from 0 to 10",
        ),
        ("zipf:alpha=-0.1", "from 0 to 10"),
        ("zipf:alpha=", "alpha is ''"),
        ("zipf:seed=x", "seed is 'x'"),
        (
            "zipf:block=5",
            "no parameter 'block'; there are blocks, requests, alpha, seed",
        ),
        ("zipf:5", "no parameter '5'"),
        (
            "loop:alpha=1",
            "no parameter 'alpha'; there are blocks, requests",
        ),
        ("loop:blocks=1,blocks=2", "blocks is given twice"),
        ("dbench-like:clients=1025", "from 1 to 1024"),
        ("dbench:file=", "the name of a file"),
    ] {
        let error = Spec::parse(text).map(|_| ()).map_err(|e| e.to_string());
        assert!(
            error.as_ref().is_err_and(|e| e.contains(what)),
            "{text}: {error:?}"
        );
    }
    for file in [
        "zipf",
        "./zipf:blocks=0",
        "a.txt",
        "zpf:blocks=0",
        "/x:y",
        "",
    ] {
        assert!(Spec::parse(file).is_ok_and(|spec| spec.is_none()), "{file}");
    }
}

#[test]
fn extreme_shapes_do_not_panic() {
    for Made {
        name, parameters, ..
    } in of_its_own()
    {
        for p in *parameters {
            let Range::Whole(least, most) = p.range else {
                continue;
            };
            for value in [least, most] {
                let spec = Spec::parse(&format!("{name}:{}={value}", p.name));
                let spec = spec
                    .ok()
                    .flatten()
                    .map(|s| s.records(&ReadOptions::default()));
                let count = spec.map(|records| records.map(|r| r.take(1000).count()));
                assert!(
                    count.is_some_and(|c| c.is_ok_and(|c| c > 0)),
                    "{name} {} {value}",
                    p.name
                );
            }
        }
    }
    for skew in [0.0, 3.0, f64::NAN, -1.0] {
        let shape = Shape {
            seed: 0,
            blocks: 0,
            records: 3,
            skew,
            touches: 0,
        };
        assert_eq!(
            zipf(&shape).count() + mixed(&shape).count() + correlated(&shape).count(),
            9
        );
    }
}

#[test]
fn zipf_uses_all_blocks_and_a_few_of_them_often() {
    let mut uses = BTreeMap::new();
    for record in small("zipf", 1) {
        *uses.entry(record.block).or_insert(0) += 1;
    }
    let mut counts: Vec<u32> = uses.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    assert!(uses.len() > 850 && uses.keys().all(|&block| block < 1_000));
    // 1 / H(1000) = 13.4 % and half of it
    assert!(
        (2_400..2_950).contains(&counts[0]) && (1_150..1_530).contains(&counts[1]),
        "{:?}",
        &counts[..2]
    );
}

#[test]
fn a_mixed_workload_scans_blocks_that_come_once() {
    let mut uses = BTreeMap::new();
    for record in small("mixed", 1) {
        *uses.entry(record.block).or_insert(0) += 1;
    }
    let fresh: Vec<u32> = uses.range(1_000..).map(|(_, &count)| count).collect();
    assert!(fresh.len() > 3_000 && fresh.iter().all(|&count| count == 1));
}

#[test]
fn interleaving_keeps_each_clients_order_and_whole_requests() {
    let client = |tenant: u16| {
        (0..50_u32).flat_map(move |request| {
            (0..3).map(move |page| Record {
                block: u64::from(tenant) * 1_000 + u64::from(request) * 3 + page,
                request,
                ..Record::default()
            })
        })
    };
    let all: Vec<Record> = interleave(vec![client(0), client(1)], 3).collect();
    assert_eq!(all.len(), 300);
    for (number, three) in all.chunks(3).enumerate() {
        assert!(three.iter().all(|record| record.request == number as u32));
        assert!(three.iter().all(|record| record.tenant == three[0].tenant));
    }
    for tenant in 0..2 {
        let of_one: Vec<u64> = all
            .iter()
            .filter(|r| r.tenant == tenant)
            .map(|r| r.block)
            .collect();
        assert!(of_one.is_sorted());
    }
    let changes = all
        .windows(2)
        .filter(|two| two[0].tenant != two[1].tenant)
        .count();
    assert!(changes > 25, "both go on at once: {changes}");
}

#[test]
fn dbench_clients_share_no_file_and_a_turn_has_the_loadfiles_volume() {
    let files = |client| -> BTreeSet<u32> {
        dbench_client(1, client, 2)
            .map(|record| record.file)
            .collect()
    };
    assert!(files(0).is_disjoint(&files(1)));
    let count = |turns, kind| {
        dbench_client(1, 0, turns)
            .filter(|record| record.kind == kind)
            .count() as f64
    };
    let a_turn = |kind| (count(40, kind) - count(0, kind)) / 40.0;
    // the loadfile: 394,718 reads, 259,661 writes and 117,411 pages unlinked in 129 turns
    for (kind, of_all) in [
        (Kind::Read, 394_718.0),
        (Kind::Write, 259_661.0),
        (Kind::Remove, 117_411.0),
    ] {
        let ratio = a_turn(kind) / (of_all / 129.0);
        assert!(
            (0.5..1.5).contains(&ratio),
            "{kind:?}: {} a turn, {ratio}",
            a_turn(kind)
        );
    }
}

#[test]
fn a_removed_dbench_file_was_written_and_is_not_used_until_written_again() {
    let mut alive = BTreeSet::new();
    for record in dbench_client(5, 0, 6) {
        match record.kind {
            Kind::Write => drop(alive.insert(record.block)),
            Kind::Remove => assert!(alive.remove(&record.block)),
            _ => assert!(alive.contains(&record.block), "{record:?}"),
        }
    }
}

#[test]
fn a_build_reads_its_compiler_each_time_and_the_tree_once() {
    let shape = BuildShape {
        units: 5,
        compiler_pages: 10,
        grep_pages: 203,
        ..BuildShape::default()
    };
    let records: Vec<Record> = build_like(&shape).collect();
    let compiler = block_of(0, 0).unwrap_or_default();
    assert_eq!(
        records
            .iter()
            .filter(|record| record.block == compiler)
            .count(),
        5
    );
    let tree: Vec<u64> = records
        .iter()
        .filter(|r| r.tenant == 1)
        .map(|r| r.block)
        .collect();
    assert_eq!(tree.iter().collect::<BTreeSet<_>>().len(), 203);
    assert_eq!(tree.len(), 203);
}
