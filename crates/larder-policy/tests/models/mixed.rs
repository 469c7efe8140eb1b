//! One fixed load for all rules, made here, so that it needs no trace: what each finds of it is written down, and the naive models
//! find the same.

use super::drive::{Arrival, Naive};
use larder_policy::replay::Replay;
use larder_policy::{Policy, PolicyError, Visitor, rules, with_rule};
use std::collections::HashMap;

const CAPACITY: usize = 200;
const LENGTH: usize = 40_000;

/// The load: popular blocks by Zipf's law, each in twos or threes at times; loops of 260 blocks; scans of blocks that are not
/// used again; and a popularity that moves on.
pub(crate) fn load() -> Vec<u32> {
    let mut word = 2001_u64;
    let mut below = move |bound: u64| {
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mix = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mix ^ (mix >> 31)) % bound
    };
    // Whole numbers, so that every machine makes the same load.
    let popularity: Vec<u64> = (1..=1500_u64)
        .scan(0, |sum, rank| {
            *sum += (1 << 32) / rank;
            Some(*sum)
        })
        .collect();
    let all = popularity[popularity.len() - 1];
    let (mut accesses, mut scanned) = (Vec::new(), 10_000);
    while accesses.len() < LENGTH {
        let drift = (accesses.len() / 8000 * 300) as u32;
        match below(1000) {
            0 => {
                let rounds = 2 + below(3);
                accesses.extend((0..260 * rounds as u32).map(|at| 3000 + at % 260));
            }
            1..=3 => {
                let blocks = 50 + below(400) as u32;
                accesses.extend(scanned..scanned + blocks);
                scanned += blocks;
            }
            _ => {
                let drawn = below(all);
                let rank = popularity.partition_point(|&sum| sum <= drawn) as u32;
                let times = [1, 1, 1, 1, 2, 3][below(6) as usize];
                accesses.extend([rank + drift; 3].iter().take(times));
            }
        }
    }
    accesses.truncate(LENGTH);
    accesses
}

/// Hits of a model, each access a request of its own.
pub(crate) fn hits_of_model<N: Naive>(load: &[u32]) -> u64 {
    let mut model = N::new(CAPACITY);
    let mut inside: HashMap<u64, u32> = HashMap::new();
    let mut holds: HashMap<u32, u64> = HashMap::new();
    let mut ghosts: HashMap<u64, u64> = HashMap::new();
    let mut free: Vec<u32> = (0..CAPACITY as u32).rev().collect();
    let mut hits = 0;
    for (&block, request) in load.iter().zip(0..) {
        let block = u64::from(block);
        if let Some(&frame) = inside.get(&block) {
            hits += 1;
            model.touch(frame, request);
            continue;
        }
        let decision = model.miss(block, ghosts.remove(&block), false);
        let frame = free.pop().unwrap_or_else(|| {
            let (frame, ghost) = model.evict(&|_| true).unwrap();
            let gone = holds.remove(&frame).unwrap();
            inside.remove(&gone);
            ghosts.extend(ghost.map(|ghost| (gone, ghost)));
            frame
        });
        model.insert(
            frame,
            Arrival {
                block,
                decision,
                ahead: false,
                request,
            },
        );
        inside.insert(block, frame);
        holds.insert(frame, block);
    }
    hits
}

struct Hits<'l>(&'l [u32]);

impl Visitor for Hits<'_> {
    type Out = Result<u64, PolicyError>;
    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Self::Out {
        let mut cache = Replay::new(rule)?;
        cache.run(self.0, 0);
        assert_eq!(cache.lost(), 0);
        Ok(cache.hits())
    }
}

/// Belady's rule: the block that is used last, if ever, leaves.
fn best_possible(load: &[u32]) -> u64 {
    let mut next = vec![usize::MAX; load.len()];
    let mut later = HashMap::new();
    for (at, &block) in load.iter().enumerate().rev() {
        next[at] = later.insert(block, at).unwrap_or(usize::MAX);
    }
    let mut inside: HashMap<u32, usize> = HashMap::new();
    let mut hits = 0;
    for (at, &block) in load.iter().enumerate() {
        if inside.insert(block, next[at]).is_some() {
            hits += 1;
        } else if inside.len() > CAPACITY {
            let others = inside.iter().filter(|(other, _)| **other != block);
            let last = *others.max_by_key(|(_, next)| **next).unwrap().0;
            inside.remove(&last);
        }
    }
    hits
}

/// Hits of 40000.
const GOLDEN: &[(&str, u64)] = &[
    ("fifo", 11604),
    ("lru", 11751),
    ("adaptive", 16345),
    ("clock", 11929),
    ("gclock", 12086),
    ("lru-2", 13185),
    ("2q", 14384),
    ("mq", 12820),
    ("lfu-da", 12534),
    ("arc", 13521),
    ("car", 13519),
    ("lirs", 16438),
    ("clock-pro", 13781),
    ("w-tinylfu", 16604),
    ("w-tinylfu-climbing", 15715),
    ("hyperbolic", 12336),
    ("lecar", 13816),
    ("cacheus", 14016),
    ("s3-fifo", 13461),
    ("s3-fifo-1bit", 13523),
    ("clock2q+", 13320),
    ("sieve", 13363),
    ("linux-2.4.7", 11910),
    ("linux-2.4.7-use-once", 13333),
    ("linux-2.4.8", 13324),
    ("linux-2.4.16", 12326),
    ("linux-two-list", 12799),
    ("mglru", 11928),
];

#[test]
fn every_rule_finds_what_it_found_and_what_its_model_finds() {
    let load = load();
    let best = best_possible(&load);
    let mut wrong = Vec::new();
    let mut expect = |name: &str, of: &str, hits: u64| {
        let golden = GOLDEN.iter().find(|at| at.0 == name).map_or(0, |at| at.1);
        if hits != golden {
            wrong.push(format!("{name}, {of}: {hits}, not {golden}"));
        }
        assert!(hits <= best, "{name}, {of}: more than {best}");
    };
    for rule in rules() {
        let hits = with_rule(rule.name, CAPACITY, Hits(&load))
            .unwrap()
            .unwrap();
        expect(rule.name, "the rule", hits);
    }
    for &(name, model) in super::MODELS {
        expect(name, "the model", model(&load));
    }
    assert!(wrong.is_empty(), "best {best}\n{}", wrong.join("\n"));
}
