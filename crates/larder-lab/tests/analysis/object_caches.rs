//! What the object-caches experiment concludes from samples whose truth is known.

use crate::record::{cut, record, spoiled, without};
use crate::said::{draw, finding, goal, table};
use larder_lab::experiments::object_caches::OBJECT_CACHES;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{
    Analysis, Block, Cell, Field, Goal, GoalState, Measures, Params, Sample, Value,
};

fn text<'a>(cell: &'a Cell, name: &str) -> &'a str {
    cell.params.text(name).unwrap_or_default()
}

/// The blocks of the arrays share a line of the slab, hashed-2 shares the arrays' lines too, the lock is handed over, and
/// malloc scales. rpmalloc is the best peer; the handle costs half of it.
fn truth(_: &str, cell: &Cell) -> Measures {
    let threads = cell.params.int("threads").unwrap_or(1) as f64;
    let two_cpus = text(cell, "cpus") != "one";
    let close = text(cell, "slab") == "his";
    let name = cell.contestant.as_str();
    let contended = threads > 1.0 && two_cpus;
    let slow = match name {
        "hashed-16" | "explicit-handle" if contended && close => 6.0,
        "hashed-2" if contended => 7.0,
        "hashed-mutex" | "global-locked" if contended => 9.0,
        _ => 1.0,
    };
    let share = match (threads > 1.0, two_cpus) {
        (true, true) => threads / 2.0,
        (true, false) => threads,
        _ => 1.0,
    };
    // Three threads fight half as much.
    let relief = if threads > 2.0 { 0.5 } else { 1.0 };
    let seconds = 0.1 * (1.0 + (slow - 1.0) * relief) * share;
    let sleeps = match name {
        "hashed-mutex" | "global-locked" if contended => 500.0,
        _ => 0.0,
    };
    let cost = match name {
        "object-handle" | "heap" => 3.0,
        "global" => 5.0,
        "object-cache" => 4.0,
        "rpmalloc" => 6.0,
        "mimalloc" => 7.0,
        _ => 12.0,
    };
    let constructor = if name.starts_with("object-") {
        0.0
    } else {
        100.0
    };
    Measures::new()
        .with("seconds", seconds)
        .with("mcycles_per_s", 10.0 * threads / seconds)
        .with(
            "cpu_ns_per_cycle",
            if name == "object-cache-locked" {
                20.0
            } else {
                10.0
            },
        )
        .with("sleeps_per_million", sleeps)
        .with("preemptions_per_million", 1.0)
        .with("ns_per_pair", cost)
        .with("ns_per_object", cost + constructor)
        .with("constructor_ns", 100.0)
        .with("held_bytes", 8192.0)
        .with("destroy_ns", end(cell))
        .with("drop_ns", 0.1 * end(cell))
        .with("returned_share", if name == "heap" { 0.95 } else { 0.1 })
        .with("returned_at_once", 0.05)
}

/// A private heap's objects die with it; freed one by one each takes 5 ns.
fn end(cell: &Cell) -> f64 {
    let count = |name| cell.params.int(name).unwrap_or(1) as f64;
    match cell.contestant.as_str() {
        "private-heap" | "mimalloc-heap" | "cache-handles" => 100.0 * count("classes"),
        _ => 100.0 * count("classes") + 5.0 * count("objects"),
    }
}

fn analysis() -> Analysis {
    OBJECT_CACHES.analyse(&record(&OBJECT_CACHES, Depth::Quick, 8, truth))
}

fn answer(analysis: &Analysis, begin: &str) -> String {
    analysis
        .findings
        .iter()
        .map(|f| f.answer.clone())
        .find(|a| a.starts_with(begin))
        .unwrap_or_else(|| panic!("no finding begins with '{begin}'"))
}

#[test]
fn instructions_are_held_against_their_ceiling_without_the_loop() {
    let run = |heap: f64, alone: Option<f64>, level: Option<&str>| {
        let mut run = record(&OBJECT_CACHES, Depth::Quick, 8, truth);
        if let Some(level) = level {
            let level = Field::Known(level.to_owned());
            run.machine
                .fields
                .insert("build.opt_level".to_owned(), level);
        }
        let count = |name: &str, count: f64| Sample {
            group: "instructions".to_owned(),
            cell: Cell::new("instructions", Params::new().with_text("allocator", name)),
            measures: Measures::new().with("instructions", count),
            ..run.samples[0].clone()
        };
        let mut counts = vec![count("heap", heap)];
        counts.extend(alone.map(|n| count("loop", n)));
        run.samples.retain(|s| s.group != "instructions");
        run.samples.extend(counts);
        OBJECT_CACHES.analyse(&run)
    };
    let what = "instructions of a block of 64 bytes: larder's heap and object cache, by a handle";
    let met = run(17.01, Some(3.0), None);
    assert_eq!(goal(&met, what).state, GoalState::Met);
    assert_eq!(goal(&met, what).note, "counted by callgrind; worst at heap");
    let dev = run(70.0, Some(3.0), Some("1"));
    // A dev build of the library has several times as many.
    let dev = goal(&dev, what);
    assert_eq!((dev.state, dev.measured), (GoalState::Skipped, None));
    assert!(dev.note.contains("opt-level 1"), "{}", dev.note);
    let missed = run(18.0, Some(3.0), Some("3"));
    assert_eq!(goal(&missed, what).state, GoalState::Missed);
    assert_eq!(
        goal(&missed, what).note,
        "counted by callgrind; worst at heap"
    );
    let without = run(17.0, None, None);
    assert!(without.goals.iter().all(|goal| goal.what != what));
    let counted = "Instructions of a block of 64 bytes there and back, by one thread";
    assert!(table(&without, counted).rows.len() == 1);
}

#[test]
fn goals_name_the_peers_that_did_not_run() {
    let full = record(&OBJECT_CACHES, Depth::Quick, 8, truth);
    let without = |peers: &[&str]| OBJECT_CACHES.analyse(&without(&full, peers));
    let note = |analysis: &Analysis, what| goal(analysis, what).note.clone();
    let (all, some) = (without(&["snmalloc"]), without(&["jemalloc", "snmalloc"]));
    for what in ["64 bytes: larder's heap", "takes 100 ns"] {
        assert!(note(&all, what).contains("absent: snmalloc"));
        assert!(note(&some, what).contains("absent: jemalloc, snmalloc"));
    }
    let constructed = note(&some, "takes 100 ns");
    assert!(
        constructed.contains("; the constructor alone takes 100"),
        "{constructed}"
    );
}

#[test]
fn a_path_that_was_seldom_taken_is_a_warning() {
    let warnings = |share: f64| {
        let run = record(&OBJECT_CACHES, Depth::Quick, 8, |group, cell| {
            match (&*cell.contestant, group) {
                ("object-cache", "pair-64") => truth(group, cell).with("path_share", share),
                ("object-cache" | "classes", _) => truth(group, cell).with("path_share", 0.98),
                _ => truth(group, cell),
            }
        });
        OBJECT_CACHES.analyse(&run).warnings
    };
    assert_eq!(warnings(0.98), [""; 0]);
    let low = warnings(0.25);
    assert_eq!(low.len(), 1, "{low:?}");
    assert!(low[0].starts_with("object-cache in group pair-64: only 25.0 %"));
}

#[test]
fn which_is_slowest_with_two_is_named() {
    let slow = |analysis: &Analysis| {
        let finding = analysis.findings.first().expect("the first question");
        let rows = &finding.table.as_ref().expect("a row for each").rows;
        let rows = rows.iter().map(|row| (row[0].clone(), row[1].clone()));
        (finding.answer.clone(), rows.collect::<Vec<_>>())
    };
    let word = |name: &str, word: &str| {
        let text = |text: &str| Value::Text(text.to_owned());
        (text(name), text(word))
    };
    let (answer, rows) = slow(&analysis());
    let said =
        "5 of 7 allocators show a slow second thread, global-locked most: two threads make 0.22 [";
    assert!(answer.starts_with(said), "{answer}");
    assert!(
        answer.ends_with("the cause: waiting for the lock."),
        "{answer}"
    );
    for name in ["hashed-16", "hashed-2", "explicit-handle", "global-locked"] {
        assert!(rows.contains(&word(name, "yes")), "{rows:?}");
    }
    assert!(rows.contains(&word("malloc", "no")), "{rows:?}");
    // Every second round says the opposite of one: neither yes nor no.
    let mut run = record(&OBJECT_CACHES, Depth::Quick, 8, truth);
    for sample in &mut run.samples {
        let three = sample.cell.params.int("threads").is_ok_and(|n| n == 3);
        if sample.group == "second-thread" && sample.cell.contestant == "hashed-2" && three {
            let rate = sample.measures.0.get_mut("mcycles_per_s").expect("a rate");
            *rate *= if sample.round % 2 == 0 { 0.01 } else { 100.0 };
        }
    }
    let (_, rows) = slow(&OBJECT_CACHES.analyse(&run));
    assert!(rows.contains(&word("hashed-2", "not decided")), "{rows:?}");
    // Where none is slow the sentence says so.
    let run = record(&OBJECT_CACHES, Depth::Quick, 8, |group, cell| {
        let threads = cell.params.int("threads").unwrap_or(1);
        truth(group, cell).with("mcycles_per_s", 10.0 * threads as f64)
    });
    let (answer, rows) = slow(&OBJECT_CACHES.analyse(&run));
    assert!(answer.starts_with("None of 7 allocators shows"), "{answer}");
    assert!(rows.contains(&word("hashed-2", "no")), "{rows:?}");
}

#[test]
fn the_lock_costs_what_it_costs() {
    let analysis = analysis();
    let text = answer(
        &analysis,
        "Yes: a block takes 0.50 [0.50, 0.50] of the CPU time",
    );
    let finding = analysis.findings.iter().find(|f| f.answer == text);
    let finding = finding.expect("found");
    let said = "larder's object cache without a lock is faster than the same cache with a lock";
    assert_eq!(finding.reading, said);
    let row = &finding.table.as_ref().expect("in nanoseconds").rows[0];
    let is = |value: &Value, ns: f64| matches!(value, Value::Estimate(e, _) if (e.value - ns).abs() < 0.1);
    assert!(is(&row[1], 10.0) && is(&row[2], 20.0), "{row:?}");
    let short = &analysis.answers[1];
    assert_eq!(short.question, "CPU caches without a lock?");
    assert!(short.answer.starts_with("yes: 0.50 "), "{}", short.answer);
}

#[test]
fn the_fluctuation_is_a_table_and_no_cause() {
    let analysis = analysis();
    let fluctuation = table(
        &analysis,
        "How the times fluctuate: their standard deviation, in % of the mean",
    );
    assert_eq!(fluctuation.rows.len(), 7);
    let small = |value: &Value| matches!(value, Value::Number(percent, _) if *percent < 0.1);
    assert!(
        fluctuation
            .rows
            .iter()
            .all(|row| row[1..].iter().all(small))
    );
}

#[test]
fn the_mails_numbers_stand_beside_ours_as_published() {
    let analysis = analysis();
    let tables: Vec<_> = analysis
        .sections
        .iter()
        .flat_map(|s| &s.blocks)
        .filter_map(|b| match b {
            Block::Table(t) => Some(t),
            _ => None,
        })
        .collect();
    let first = tables[0];
    assert!(first.title.contains("arrays indexed by thread"));
    let two = &first.rows[1];
    assert_eq!(two[0], Value::Count(2));
    assert!(
        matches!(&two[1], Value::Estimate(e, _) if (e.value - 0.6).abs() < 0.01),
        "{two:?}"
    );
    assert_eq!(two[2], Value::Published(8.25, "s".to_owned()));
    let shapes = tables
        .iter()
        .find(|t| t.title.starts_with("The same as ratios"))
        .expect("there");
    assert_eq!(
        shapes.rows[1][2],
        Value::Published(5.43, "x".to_owned()),
        "8.25 over 1.52"
    );
    assert!(
        tables
            .iter()
            .all(|t| t.rows.iter().all(|r| r.len() == t.columns.len()))
    );
}

#[test]
fn goals_are_against_the_best_linked_peer() {
    let analysis = analysis();
    let handle = goal(
        &analysis,
        "64 bytes: larder's heap and object cache, by a handle",
    );
    assert_eq!(
        (handle.state, handle.against.as_str()),
        (GoalState::Met, "rpmalloc")
    );
    assert!((handle.measured.expect("measured").value - 0.5).abs() < 0.01);
    assert_eq!(
        goal(&analysis, "64 bytes: larder's object cache").state,
        GoalState::Met
    );
    assert_eq!(
        goal(&analysis, "constructor takes 100 ns").state,
        GoalState::Met
    );
    let global = goal(&analysis, "16 to 8192 bytes: Rust's global allocator");
    assert_eq!(global.state, GoalState::Met);
    let slow = record(&OBJECT_CACHES, Depth::Quick, 8, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant.starts_with("object-") || ["heap", "global"].contains(&&*cell.contestant)
        {
            measures.0.insert("ns_per_pair".to_owned(), 5.9);
            measures.0.insert("ns_per_object".to_owned(), 105.0);
        }
        for (name, value) in [("destroy_ns", 1000.0), ("returned_share", 0.5)] {
            measures.0.insert(name.to_owned(), value);
        }
        measures
    });
    let slow = OBJECT_CACHES.analyse(&slow);
    // Where liblarder_malloc.so is not built it does not run.
    let ran = |goal: &&Goal| {
        // Nor is a burst of the goal's size part of the quick form.
        !goal.what.contains("malloc, preloaded") && !goal.what.contains("burst of 64 MiB")
    };
    assert!(
        slow.goals
            .iter()
            .filter(ran)
            .all(|g| g.state == GoalState::Missed)
    );
}

#[test]
fn destruction_is_cheap_where_objects_die_with_their_heap() {
    let analysis = analysis();
    let answer = answer(&analysis, "Yes, where objects die");
    // 3 us of 5.003 ms.
    assert!(answer.contains("classes go in 6.00e-4 ["), "{answer}");
    let reading = analysis.findings.iter().find(|f| f.answer == answer);
    let reading = &reading.expect("found").reading;
    let said = "dropping a heap whole is faster than freeing its objects one by one";
    assert_eq!(reading, said);
    assert_eq!(goal(&analysis, "destroyed whole").state, GoalState::Met);
    let ends = table(&analysis, "The end of one heap");
    let handles = ends.columns.iter().position(|c| c == "handles of caches");
    let three_hundred = ends.rows.iter().find(|row| row[0] == Value::Count(300));
    let cost = &three_hundred.expect("a row")[handles.expect("a column")];
    assert!(matches!(cost, Value::Estimate(e, _) if (e.value - 30_000.0).abs() < 100.0));
    let same = record(&OBJECT_CACHES, Depth::Quick, 8, |group, cell| {
        truth(group, cell).with("destroy_ns", 1000.0)
    });
    let same = OBJECT_CACHES.analyse(&same);
    assert!(same.findings.iter().any(|f| {
        f.answer
            .starts_with("No: that objects die with their heap saves nothing")
    }));
    assert_eq!(goal(&same, "destroyed whole").state, GoalState::Missed);
}

#[test]
fn a_burst_is_returned_or_not() {
    let analysis = analysis();
    // The quick form's burst is a quarter, and it waits a tenth of a second.
    let quick = goal(&analysis, "a burst of 64 MiB");
    assert_eq!((quick.state, quick.measured), (GoalState::Skipped, None));
    assert!(quick.note.contains("64 MiB and 10 s"), "{}", quick.note);
    assert!(quick.note.contains("--full --group held"), "{}", quick.note);
    let full = OBJECT_CACHES.analyse(&record(&OBJECT_CACHES, Depth::Full, 8, truth));
    let of_both = goal(&full, "a burst of 64 MiB");
    assert_eq!(of_both.state, GoalState::Missed);
    assert!(
        of_both.note.starts_with("worst at global"),
        "{}",
        of_both.note
    );
}

/// What is concluded where these were preloaded, each with its nanoseconds, beside the C library's malloc and larder's.
fn preloaded(libraries: &[(&str, f64)]) -> Analysis {
    let mut run = record(&OBJECT_CACHES, Depth::Quick, 0, truth);
    let params = Params::new().with_text("shape", "pair").with("bytes", 64);
    let with = |name: &str| params.clone().with_text("library", name);
    let mut cells = vec![
        (Cell::new("malloc", params.clone()), 9.0),
        (
            Cell::new("larder-preloaded", with("/x/liblarder_malloc.so")),
            6.0,
        ),
    ];
    cells.extend(
        libraries
            .iter()
            .map(|(name, ns)| (Cell::new("preloaded", with(name)), *ns)),
    );
    for round in 0..8 {
        for (slot, (cell, ns)) in cells.iter().enumerate() {
            run.samples.push(Sample {
                group: "preloaded-64".to_owned(),
                cell: cell.clone(),
                round,
                slot: slot as u32,
                at_us: 0,
                measures: Measures::new()
                    .with("ns_per_pair", ns * (1.0 + 0.001 * f64::from(round))),
            });
        }
    }
    OBJECT_CACHES.analyse(&run)
}

#[test]
fn the_preloaded_malloc_is_compared_with_the_best_that_is_preloaded() {
    let analysis = preloaded(&[("/x/libslow.so", 20.0), ("/x/libfast.so", 8.0)]);
    let goal = goal(&analysis, "larder's malloc, preloaded");
    assert_eq!(
        (goal.state, goal.against.as_str()),
        (GoalState::Met, "libfast.so")
    );
    assert!((goal.measured.expect("measured").value - 0.75).abs() < 0.01);
}

#[test]
fn the_goal_of_the_preloaded_malloc_names_the_mallocs_that_were_not_found() {
    let note = |libraries: &[(&str, f64)]| {
        let analysis = preloaded(libraries);
        let goal = goal(&analysis, "larder's malloc, preloaded");
        goal.note.trim_end_matches("worst at 64 bytes").to_owned()
    };
    assert_eq!(
        note(&[("/x/libmimalloc.so.2.0", 8.0), ("/x/libodd.so", 9.0)]),
        "absent: jemalloc, tcmalloc, snmalloc, rpmalloc, tbbmalloc; "
    );
    let none = note(&[]);
    assert_eq!(
        none,
        "absent: jemalloc, mimalloc, tcmalloc, snmalloc, rpmalloc, tbbmalloc; "
    );
    let all = none.trim_start_matches("absent: ").trim_end_matches("; ");
    let all = all.split(", ");
    let files: Vec<String> = all.map(|name| format!("/x/lib{name}.so")).collect();
    let all: Vec<(&str, f64)> = files.iter().map(|file| (file.as_str(), 8.0)).collect();
    assert_eq!(note(&all), "");
}

#[test]
fn partial_and_absurd_runs_are_read_without_panic() {
    let full = record(&OBJECT_CACHES, Depth::Full, 6, truth);
    for run in cut(&full, 37) {
        let _ = OBJECT_CACHES.analyse(&run);
    }
    for (i, odd) in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE]
        .into_iter()
        .enumerate()
    {
        let run = spoiled(&full, i, 3, odd);
        let analysis = draw(&OBJECT_CACHES, &run);
        assert!(analysis.findings.iter().all(|f| !f.answer.contains("NaN")));
    }
    let empty = record(&OBJECT_CACHES, Depth::Quick, 0, truth);
    let analysis = OBJECT_CACHES.analyse(&empty);
    assert!(
        analysis
            .goals
            .iter()
            .all(|g| g.state == GoalState::Skipped && !g.note.is_empty())
    );
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
}

// Why the second thread is slow, contestant by contestant.

#[test]
fn each_variant_has_its_own_reason() {
    let analysis = analysis();
    let row = |name: &str| second_thread(&analysis, name);
    let says = |name: &str, words: &str| {
        let row = row(name);
        assert_eq!(row[2], Value::Text(words.to_owned()), "{name}");
    };
    for name in ["hashed-16", "explicit-handle"] {
        says(name, "false sharing between the slab's pieces");
    }
    says("hashed-2", "false sharing in the arrays of the threads");
    for name in ["hashed-mutex", "global-locked"] {
        says(name, "waiting for the lock");
    }
    says("malloc", "no cost");
    let time = format!("{:?}", row("hashed-16")[5]);
    assert!(time.contains("value: 5.99"), "{time}");
}

/// The row of a contestant under the question why the second thread is slow.
fn second_thread(analysis: &Analysis, name: &str) -> Vec<Value> {
    let finding = finding(analysis, "Why is the second thread");
    let table = finding.table.as_ref().expect("a row for each");
    let named = |row: &&Vec<Value>| row[0] == Value::Text(name.to_owned());
    table.rows.iter().find(named).expect("it ran").clone()
}

#[test]
fn the_second_thread_is_counted() {
    let row = second_thread(&analysis(), "hashed-mutex");
    let sleeps = format!("{:?}", row[8]);
    assert!(sleeps.contains("(499.8"), "{sleeps}");
}
