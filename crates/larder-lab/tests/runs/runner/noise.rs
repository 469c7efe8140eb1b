//! Rounds that other programs disturbed.

use larder_lab::model::OTHERS;

use super::*;

/// Cells that take a second each and say that others took `others` percent of it in their nth run.
struct Disturbed<'a> {
    clock: &'a StdCell<Duration>,
    runs: u32,
    others: Box<dyn Fn(u32) -> f64 + 'a>,
}

impl Launcher for Disturbed<'_> {
    fn launch(
        &mut self,
        _: &dyn Experiment,
        _: &Cell,
        _: Duration,
    ) -> Result<Measures, LaunchError> {
        self.clock.set(self.clock.get() + Duration::from_secs(1));
        let n = self.runs;
        self.runs += 1;
        Ok(Measures::new()
            .with("ns", 10.0 + f64::from(n))
            .with(OTHERS, (self.others)(n)))
    }
}

/// Runs two groups of six rounds of three cells.
fn disturbed(cap: Option<u64>, others: impl Fn(u32) -> f64) -> (RunRecord, u32) {
    let fake = Fake(vec![
        ("f", vec!["a", "b"], 6, 0.0),
        ("g", vec!["a", "b"], 6, 0.0),
    ]);
    let options = Options {
        time_cap: cap.map(Duration::from_secs),
        ..quick(1)
    };
    let clock = StdCell::new(Duration::ZERO);
    let mut launcher = Disturbed {
        clock: &clock,
        runs: 0,
        others: Box::new(others),
    };
    let run = Runner::new(&mut launcher, &mut Silent, &Interrupt::new())
        .with_clock(|| clock.get())
        .run(&fake, &MachineRecord::default(), &options);
    (run, launcher.runs)
}

fn noisy_samples(run: &RunRecord) -> usize {
    run.samples.iter().filter(|s| s.is_noisy()).count()
}

/// Every round holds each cell once, as if nothing had been repeated.
fn complete(run: &RunRecord) {
    for group in ["f", "g"] {
        let orders = orders(run, group);
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|o| o.len() == 3), "{orders:?}");
    }
    // The order is that of the seed, whatever was repeated.
    let turns = |run: &RunRecord| -> Vec<(String, u32, u32, String)> {
        run.samples
            .iter()
            .map(|s| (s.group.clone(), s.round, s.slot, s.cell.to_string()))
            .collect()
    };
    let fake = Fake(vec![
        ("f", vec!["a", "b"], 6, 0.0),
        ("g", vec!["a", "b"], 6, 0.0),
    ]);
    let quiet = take(&fake, &quick(1), &Interrupt::new(), |_, _| Ok(10.0));
    assert_eq!(turns(run), turns(&quiet));
}

#[test]
fn a_disturbed_round_is_repeated_whole_and_the_quiet_one_kept() {
    // Runs 6 to 8 are the second round of f; the eleventh is in the second round of g.
    let (run, launched) = disturbed(None, |n| if n == 7 || n == 10 { 50.0 } else { 0.0 });
    assert_eq!(launched, 36 + 6);
    assert_eq!(noisy_samples(&run), 0);
    complete(&run);
    let at = |group: &str| {
        let of = |s: &&Sample| s.group == group && s.round == 1;
        let times: Vec<u64> = run.samples.iter().filter(of).map(|s| s.at_us).collect();
        times
    };
    assert_eq!(at("f"), [36_000_000, 37_000_000, 38_000_000]);
    assert_eq!(at("g"), [39_000_000, 40_000_000, 41_000_000]);
    assert!(
        run.noise
            .warnings
            .iter()
            .any(|w| w.contains("2 repeated, 0 still disturbed")),
        "{:?}",
        run.noise.warnings
    );
}

#[test]
fn without_time_a_disturbed_round_stays_and_is_marked() {
    let (run, launched) = disturbed(Some(37), |n| if n == 7 { 50.0 } else { 0.0 });
    assert_eq!((launched, noisy_samples(&run)), (36, 1));
    complete(&run);
    assert!(
        run.noise
            .warnings
            .iter()
            .any(|w| w.contains("1 still disturbed"))
    );
}

#[test]
fn repeats_end_where_the_machine_stays_busy() {
    let (run, launched) = disturbed(None, |_| 50.0);
    assert_eq!(launched, 36 + 3 * 3);
    assert_eq!(noisy_samples(&run), 36);
    complete(&run);
    assert!(run.noise_reason().is_some());
}

#[test]
fn a_quiet_run_repeats_nothing_and_says_nothing() {
    let (run, launched) = disturbed(None, |_| 4.0);
    assert_eq!((launched, noisy_samples(&run)), (36, 0));
    assert!(!run.noise.warnings.iter().any(|w| w.contains("repeated")));
}
