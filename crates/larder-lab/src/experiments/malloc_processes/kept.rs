//! What larder's malloc should keep: how much free memory, for how long, and whose magazines. The answers are its settings.
//!
//! The bound and the mode are measured as they are. The time is not: a program would have to be watched for many times of the
//! longest one. It follows from what it costs to return memory and to take it again, which is measured, in the worst case: a
//! program that needs its memory again each time just after it was returned.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::{THREAD_KIB, resting};
use crate::contestants::heaps::found::{LARDER, Library};
use crate::contestants::heaps::per_cpu;
use crate::contestants::timing::{ns_per_op, process_cpu_ns, resident_bytes, thread_cpu_ns};
use crate::frame::words::{ratio, short};
use crate::frame::{At, Column, Planner, Results, combined, finding, listing, median_of};
use crate::model::{
    Better, Block, Cell, Finding, Measures, Metric, Params, Recommendation, Section,
};
use crate::stats::defaults::KNEE_EPS;
use crate::stats::sweep::OptimumSet;
use crate::stats::{Estimate, Verdict};

pub(super) const BURSTS: &str = "bursts";
pub(super) const MODES: &str = "modes";

const BURST_MS: &str = "burst_ms";
const KEPT_MIB: &str = "kept_mib";
const PAIR_NS: &str = "pair_ns";

pub(super) const METRICS: [Metric; 3] = [
    Metric::cost(
        BURST_MS,
        "ms",
        "CPU time of a burst: 80 MiB in blocks of 16 KiB are taken, written and freed",
    ),
    Metric::cost(
        KEPT_MIB,
        "MiB",
        "growth of resident memory when the last burst is freed",
    ),
    Metric::cost(
        PAIR_NS,
        "ns",
        "CPU time of a block of 16 to 1023 bytes taken and another freed, while eight threads do so",
    ),
];

/// MiB of a burst: more than the malloc keeps at first, so that its bound has to adapt.
const BURST_MIB: usize = 80;
const BLOCK: usize = 16 << 10;
/// Bursts before the clock starts. The bound adapts in the second.
const WARM: usize = 2;

/// Bounds on free memory, in the order of what they keep. `auto` is the malloc's own, which begins with 64 MiB; `all` has none.
const CACHES: [&str; 4] = ["0", "16M", "auto", "all"];

/// Milliseconds that free memory may stay.
const DECAYS: [i32; 7] = [10, 30, 100, 300, 1000, 3000, 10_000];
/// MiB that the program of the worst case frees and takes again: as much as the malloc keeps at first.
const AGAIN_MIB: f64 = 64.0;

const PER_THREAD: &str = "per-thread";
const PER_CPU: &str = "per-cpu";

/// Threads of the comparison of modes, and blocks that each has.
const MODE_THREADS: i64 = 8;
const LIVE: usize = 64;
const TURNS: usize = 200_000;

/// The variables of the malloc that the factors ask for. What the user has set for it says nothing in these groups.
pub(super) fn environment(params: &Params) -> Vec<(&'static str, String)> {
    if !params
        .text("what")
        .is_ok_and(|what| [BURSTS, MODES].contains(&what))
    {
        return Vec::new();
    }
    let (decay, cache) = match params.text("cache") {
        Ok("all") => ("never", ""),
        Ok("auto") | Err(_) => ("", ""),
        Ok(bytes) => ("", bytes),
    };
    let mode = params.text("mode").unwrap_or_default();
    [
        ("LARDER_MALLOC_DECAY", decay),
        ("LARDER_MALLOC_CACHE", cache),
        ("LARDER_MALLOC_MODE", mode),
    ]
    .map(|(name, word)| (name, word.to_owned()))
    .into()
}

/// A group for the bounds and one for the modes, of larder's malloc.
pub(super) fn plan(plan: &mut Planner, library: &Library) {
    let params = |what: &str, count: i64| {
        let params = Params::new().with_text("what", what).with("count", count);
        params.with_text("library", &library.path)
    };
    let bursts = params(BURSTS, plan.either(2, 8));
    let mut cells = CACHES.map(|cache| Cell::new(LARDER, bursts.clone().with_text("cache", cache)));
    // The reference, which runs twice, is the malloc as it is.
    cells.swap(0, 2);
    plan.group(BURSTS, BURST_MS, LARDER, plan.either(0.6, 1.8), cells);
    if let Err(why) = per_cpu() {
        plan.skip("mode per-cpu of larder's malloc", why);
        return;
    }
    let threads = params(MODES, MODE_THREADS);
    let cells = [PER_THREAD, PER_CPU];
    let cells = cells.map(|mode| Cell::new(LARDER, threads.clone().with_text("mode", mode)));
    plan.group(MODES, PAIR_NS, LARDER, 0.15, cells);
}

/// Takes, writes and frees much memory, so many times.
pub(super) fn bursts(count: usize) -> anyhow::Result<Measures> {
    let before = resident_bytes();
    let mut blocks: Vec<Vec<u8>> = Vec::with_capacity((BURST_MIB << 20) / BLOCK);
    let mut begin = 0;
    for burst in 0..WARM + count {
        if burst == WARM {
            begin = process_cpu_ns();
        }
        while blocks.len() < blocks.capacity() {
            blocks.push(vec![1; BLOCK]);
        }
        std::hint::black_box(&blocks);
        blocks.clear();
    }
    let ms = (process_cpu_ns() - begin) as f64 / 1e6 / count as f64;
    let kept = resident_bytes().saturating_sub(before);
    Ok(Measures::new()
        .with(BURST_MS, ms)
        .with(KEPT_MIB, kept as f64 / f64::from(1 << 20)))
}

/// Threads replace random blocks of small sizes, and then rest.
pub(super) fn modes(count: usize) -> anyhow::Result<Measures> {
    let (kib, ns) = resting(count, churn)?;
    ensure!(ns.len() == count, "a thread ended with a panic");
    let ops = (count * TURNS) as u64;
    Ok(Measures::new()
        .with(PAIR_NS, ns_per_op(ns.iter().sum(), ops))
        .with(THREAD_KIB, kib))
}

/// CPU time in nanoseconds.
fn churn() -> u64 {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) as usize
    };
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    blocks.resize_with(LIVE, || vec![1; 64]);
    let mut begin = 0;
    for turn in 0..TURNS / 8 + TURNS {
        if turn == TURNS / 8 {
            begin = thread_cpu_ns();
        }
        let size = 16 + random() % 1008;
        let mut block = Vec::with_capacity(size);
        block.push(1);
        blocks[random() % LIVE] = block;
    }
    thread_cpu_ns() - begin
}

fn bound<'r, 'a>(results: &'r Results<'a>, cache: &str) -> Option<At<'r, 'a>> {
    let mut all = results.of(BURSTS, LARDER);
    all.find(|at| at.text("cache") == Some(cache))
}

/// The bounds that are not distinguishable from the best: the one that keeps least, and what it costs of the best.
fn cached(results: &Results<'_>) -> Option<Recommendation> {
    let settings = (0..).zip(CACHES).filter_map(|(kept, cache)| {
        let at = bound(results, cache)?;
        Some((f64::from(kept), at.cell.clone()))
    });
    let settings: Vec<(f64, Cell)> = settings.collect();
    let sweep = results
        .view
        .sweep(BURSTS, &settings, BURST_MS, Better::Lower)?;
    let set: OptimumSet = sweep.optimum(|kept, _| kept)?;
    let word = |i: usize| sweep.cells.get(i)?.params.text("cache").ok();
    let chosen = word(set.recommended)?;
    let value = match chosen {
        "auto" => "\"auto\"".to_owned(),
        // No bound is a choice that only its user can make.
        "all" => return None,
        bytes => larder::internal::heap::cache_bytes(bytes)?.to_string(),
    };
    let evidence = set.ratios.get(set.recommended).copied();
    let members: Vec<&str> = set.members.iter().filter_map(|i| word(*i)).collect();
    let cost = evidence.map_or_else(String::new, |e| {
        format!("; it costs {} of the best", ratio(&e))
    });
    Some(Recommendation {
        key: "malloc.cache_bytes".to_owned(),
        value,
        because: format!(
            "Keeps least of the bounds equal to the best. In bursts of {BURST_MIB} MiB these cost the same: {}{cost}.",
            members.join(", ")
        ),
        evidence,
    })
}

/// Milliseconds that it takes to return what the program of the worst case has and to take it again, by round.
fn again(results: &Results<'_>) -> Option<BTreeMap<u32, f64>> {
    let [none, all] = ["0", "all"].map(|cache| bound(results, cache));
    let [none, all] = [none?, all?].map(|at| at.by_round(BURST_MS));
    let share = AGAIN_MIB / BURST_MIB as f64;
    Some(combined(&none, &all, |none, all| (none - all) * share))
}

/// The shortest time after which memory may be returned, if a program that takes it again at once is to lose at most the share
/// that a knee allows.
fn decay(results: &Results<'_>) -> Option<Recommendation> {
    let again = again(results)?;
    let loss = |ms: i32| -> Option<Estimate> {
        let by_round = again
            .iter()
            .map(|(round, cost)| (*round, 1.0 + cost / f64::from(ms)));
        median_of(&by_round.collect())
    };
    let (ms, evidence) = DECAYS.into_iter().find_map(|ms| {
        let loss = loss(ms).filter(|loss| loss.hi <= 1.0 + KNEE_EPS)?;
        Some((ms, loss))
    })?;
    let cost = median_of(&again)?;
    Some(Recommendation {
        key: "malloc.decay_ms".to_owned(),
        value: ms.to_string(),
        because: format!(
            "The shortest that costs at most {:.0} % if {AGAIN_MIB} MiB are needed again each time. To return them and take them again costs {} ms, and each {ms} ms that makes {} of the time without.",
            100.0 * KNEE_EPS,
            ratio(&cost),
            ratio(&evidence)
        ),
        evidence: Some(evidence),
    })
}

/// The CPUs' magazines where they cost no more than the threads' and hold less; nothing where the run does not decide.
fn mode(results: &Results<'_>) -> Option<Recommendation> {
    let of = |mode: &str| {
        let mut all = results.of(MODES, LARDER);
        all.find(|at| at.text("mode") == Some(mode))
    };
    let (cpus, threads) = (of(PER_CPU)?, of(PER_THREAD)?);
    let time = cpus.compare(&threads, PAIR_NS);
    let held = cpus.compare(&threads, THREAD_KIB);
    let (chosen, other) = match time.verdict {
        Verdict::Faster => (cpus, threads),
        Verdict::Same { .. } if held.verdict == Verdict::Faster => (cpus, threads),
        Verdict::Same { .. } | Verdict::Slower => (threads, cpus),
        _ => return None,
    };
    let evidence = chosen.ratio(&other, PAIR_NS)?;
    let (value, instead) = (chosen.text("mode")?, other.text("mode")?);
    let kib = |at: &At<'_, '_>| short(at.middle(THREAD_KIB).unwrap_or(f64::NAN));
    Some(Recommendation {
        key: "malloc.mode".to_owned(),
        value: format!("\"{value}\""),
        because: format!(
            "A pair of malloc and free takes {} of that {instead}. A resting thread then holds {} KiB instead of {}.",
            ratio(&evidence),
            kib(&chosen),
            kib(&other)
        ),
        evidence: Some(evidence),
    })
}

/// What the samples support.
pub(super) fn recommendations(results: &Results<'_>) -> Vec<Recommendation> {
    let all = [mode(results), decay(results), cached(results)];
    all.into_iter().flatten().collect()
}

/// The settings in sentences.
pub(super) fn answer(results: &Results<'_>) -> Option<Finding> {
    let all = recommendations(results).into_iter();
    let all: Vec<String> = all
        .map(|r| format!("{} = {}: {}", r.key, r.value, r.because))
        .collect();
    let question = "Which settings of larder's malloc are best here?";
    (!all.is_empty()).then(|| finding(question, "larder", all.join(" ")))
}

pub(super) fn section(results: &Results<'_>) -> Section {
    let all = bound(results, "all");
    let bursts = listing(
        format!("Bursts of {BURST_MIB} MiB, by the bound on free memory"),
        results.all(BURSTS),
        vec![
            Column::factor("bound", "cache"),
            Column::metric("a burst", BURST_MS),
            Column::against("of all kept", all, BURST_MS),
            Column::metric("kept", KEPT_MIB),
        ],
    );
    let modes = listing(
        format!("Small blocks in {MODE_THREADS} threads, by mode"),
        results.all(MODES),
        vec![
            Column::factor("mode", "mode"),
            Column::metric("a pair", PAIR_NS),
            Column::metric("a resting thread", THREAD_KIB),
        ],
    );
    crate::frame::section(
        "Settings of larder's malloc",
        [Block::Table(bursts), Block::Table(modes)],
    )
}

#[cfg(test)]
mod tests {
    use super::super::MALLOC_PROCESSES;
    use super::*;
    use crate::measure::Experiment;
    use crate::model::{RunRecord, Sample};

    /// A run in which a burst takes so many ms with each bound, and a pair so many ns with each mode.
    fn run(bursts: [f64; 4], pairs: [f64; 2]) -> RunRecord {
        let with = |factor, word| Cell::new(LARDER, Params::new().with_text(factor, word));
        let bounds = CACHES.iter().zip(bursts);
        let bounds = bounds.map(|(cache, ms)| (BURSTS, with("cache", cache), vec![(BURST_MS, ms)]));
        let [threads, cpus] = pairs;
        let threads = vec![(PAIR_NS, threads), (THREAD_KIB, 40.0)];
        let cpus = vec![(PAIR_NS, cpus), (THREAD_KIB, 10.0)];
        let modes = [
            (MODES, with("mode", PER_THREAD), threads.clone()),
            (MODES, with("mode", PER_THREAD).as_twin(), threads),
            (MODES, with("mode", PER_CPU), cpus),
        ];
        let cells: Vec<_> = bounds.chain(modes).collect();
        let sample = |(round, slot): (u32, u32)| {
            let (group, cell, values) = &cells[slot as usize];
            let noise = 1.0 + 0.004 * f64::from((round * 7 + slot * 3) % 5);
            let values = values.iter();
            Sample {
                group: (*group).to_owned(),
                cell: cell.clone(),
                round,
                slot,
                at_us: 0,
                measures: values.fold(Measures::new(), |m, (name, v)| m.with(name, v * noise)),
            }
        };
        let slots = 0..u32::try_from(cells.len()).expect("few");
        let rounds = (0..8).flat_map(|round| slots.clone().map(move |slot| (round, slot)));
        let samples = rounds.map(sample).collect();
        RunRecord {
            experiment: "malloc-processes".to_owned(),
            depth: "quick".to_owned(),
            samples,
            ..RunRecord::default()
        }
    }

    fn set(bursts: [f64; 4], pairs: [f64; 2]) -> Vec<String> {
        let analysis = MALLOC_PROCESSES.analyse(&run(bursts, pairs));
        let all = analysis.recommendations.iter();
        all.map(|r| format!("{} = {}", r.key, r.value)).collect()
    }

    #[test]
    fn each_setting_is_the_cheapest_that_loses_nothing() {
        // 64 MiB there and back cost 24 ms, which is 2.4 % of a second.
        assert_eq!(
            set([40.0, 35.0, 10.0, 10.0], [20.0, 27.0]),
            [
                "malloc.mode = \"per-thread\"",
                "malloc.decay_ms = 1000",
                "malloc.cache_bytes = \"auto\""
            ]
        );
        // A machine on which it costs little, and on which the CPUs' magazines cost the same.
        assert_eq!(
            set([11.5, 10.0, 10.0, 10.0], [20.0, 20.0]),
            [
                "malloc.mode = \"per-cpu\"",
                "malloc.decay_ms = 100",
                "malloc.cache_bytes = 16777216"
            ]
        );
        // One on which no time up to ten seconds is long enough, and the bound does not adapt.
        assert_eq!(
            set([900.0, 800.0, 40.0, 10.0], [20.0, 15.0]),
            ["malloc.mode = \"per-cpu\""]
        );
    }

    #[test]
    fn without_samples_nothing_is_set() {
        let run = RunRecord::default();
        let analysis = MALLOC_PROCESSES.analyse(&run);
        assert!(analysis.recommendations.is_empty() && analysis.findings.is_empty());
    }

    #[test]
    fn the_work_is_measured() {
        let measures = bursts(1).expect("runs");
        assert!(measures.get(BURST_MS).is_some_and(|ms| ms > 0.0));
        let measures = modes(2).expect("runs");
        assert!(measures.get(PAIR_NS).is_some_and(|ns| ns > 0.0));
        assert!(measures.get(THREAD_KIB).is_some_and(|kib| kib >= 0.0));
    }
}
