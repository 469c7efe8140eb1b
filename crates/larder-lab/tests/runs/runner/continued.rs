//! An interrupted run that another one goes on with.

use super::*;

/// What does not depend on when a run was taken.
fn shape(run: &RunRecord) -> Vec<String> {
    let samples = run.samples.iter().map(|s| {
        let ns = s.measures.get("ns");
        format!("{} {} {} {} {ns:?}", s.group, s.round, s.slot, s.cell)
    });
    let groups = run.groups.iter().map(|g| format!("{g:?}"));
    let skipped = run.skipped.iter().map(|s| format!("{s:?}"));
    let mut all: Vec<String> = samples.chain(groups).chain(skipped).collect();
    all.sort();
    all
}

/// What the nth run of a cell yields; `c` fails in its second.
fn act(cell: &Cell, n: u32) -> Result<f64, LaunchError> {
    match (cell.contestant.as_str(), n) {
        ("c", 2) => Err(LaunchError::Failed("it broke".to_owned())),
        _ => Ok(noisy(cell, n)),
    }
}

/// Goes on with a run whose kept samples are the cells' runs so far.
fn resume(fake: &Fake, options: &Options, begun: RunRecord, interrupt: &Interrupt) -> RunRecord {
    let clock = StdCell::new(Duration::ZERO);
    let before = begun.samples.clone();
    let mut script = Script::new(&clock, |c, n| {
        let ran = before.iter().filter(|s| s.cell == *c).count();
        act(c, n + u32::try_from(ran).unwrap())
    });
    let mut silent = Silent;
    Runner::new(&mut script, &mut silent, interrupt)
        .with_clock(|| clock.get())
        .resume(fake, begun, options)
}

/// A run that is interrupted when the cell `b` runs for the `at`th time.
fn begin(fake: &Fake, options: &Options, at: u32) -> RunRecord {
    let interrupt = Interrupt::new();
    take(fake, options, &interrupt, |c, n| {
        if c.contestant == "b" && n == at {
            interrupt.ask();
        }
        act(c, n)
    })
}

fn two_groups() -> Fake {
    Fake(vec![
        ("short", vec!["a", "d"], 3, 0.0),
        ("long", vec!["a", "b", "c"], 12, 0.0),
    ])
}

#[test]
fn a_continued_run_is_the_run_that_was_not_interrupted() {
    let fake = two_groups();
    let whole = begin(&fake, &quick(5), u32::MAX);
    assert!(
        whole
            .groups
            .iter()
            .all(|g| g.stopped != StopReason::Interrupted)
    );
    for at in [2, 3, 5, 9, 11] {
        let part = begin(&fake, &quick(5), at);
        assert_eq!(part.groups[1].stopped, StopReason::Interrupted, "{at}");
        assert!(part.samples.len() < whole.samples.len());
        let run = resume(&fake, &quick(5), part.clone(), &Interrupt::new());
        assert_eq!(shape(&run), shape(&whole), "interrupted at {at}");
        assert_eq!((&run.started, &run.argv), (&part.started, &part.argv));
        assert_eq!(run.id, id_of(&run));
        let late = &run.samples[part.samples.len()..];
        assert!(late.iter().all(|s| s.at_us as f64 >= part.seconds * 1e6));
        assert!(run.seconds > part.seconds);
        let told = |w: &&String| w.contains("interrupted and continued");
        assert_eq!(run.noise.warnings.iter().filter(told).count(), 1);
    }
}

#[test]
fn what_runs_once_more_is_continued_like_the_plan() {
    let fake = Fake(vec![("sweep", vec!["a", "b", "d"], 4, 0.0)]);
    let slow = |c: &Cell, n| Ok(noisy(c, n) * if c.contestant == "b" { 10.0 } else { 1.0 });
    let whole = take(&fake, &quick(5), &Interrupt::new(), slow);
    assert_eq!(whole.groups.len(), 2);
    // In the plan, between it and what follows from it, and in that.
    for at in [2, 4, 5, 7] {
        let interrupt = Interrupt::new();
        let part = take(&fake, &quick(5), &interrupt, |c, n| {
            if c.contestant == "b" && n == at {
                interrupt.ask();
            }
            slow(c, n)
        });
        assert_eq!(part.groups[1].stopped, StopReason::Interrupted, "{at}");
        let ran = part.samples.clone();
        let clock = StdCell::new(Duration::ZERO);
        let mut script = Script::new(&clock, |c, n| {
            let before = ran.iter().filter(|s| s.cell == *c).count();
            slow(c, n + u32::try_from(before).unwrap())
        });
        let mut silent = Silent;
        let run = Runner::new(&mut script, &mut silent, &Interrupt::new())
            .with_clock(|| clock.get())
            .resume(&fake, part, &quick(5));
        assert_eq!(shape(&run), shape(&whole), "interrupted at {at}");
    }
}

#[test]
fn an_end_that_precision_decides_comes_after_the_same_round() {
    let fake = Fake(vec![("g", vec!["a", "b"], 75, 0.4)]);
    let whole = take(&fake, &quick(3), &Interrupt::new(), act);
    assert_eq!(whole.groups[0].stopped, StopReason::Precise);
    let part = begin(&fake, &quick(3), 4);
    let run = resume(&fake, &quick(3), part, &Interrupt::new());
    assert_eq!(shape(&run), shape(&whole));
}

#[test]
fn it_can_be_interrupted_again_and_its_time_is_what_is_left() {
    let fake = two_groups();
    let whole = begin(&fake, &quick(5), u32::MAX);
    let part = begin(&fake, &quick(5), 4);
    let again = Interrupt::new();
    again.ask();
    let same = resume(&fake, &quick(5), part.clone(), &again);
    assert_eq!(shape(&same), shape(&part));
    let run = resume(&fake, &quick(5), same, &Interrupt::new());
    assert_eq!(shape(&run), shape(&whole));

    let capped = Options {
        time_cap: Some(Duration::from_secs_f64(part.seconds)),
        ..quick(5)
    };
    let run = resume(&fake, &capped, part.clone(), &Interrupt::new());
    assert_eq!(run.samples, part.samples);
    assert_eq!(run.groups[1].stopped, StopReason::TimeCap);
}
