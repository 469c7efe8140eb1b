//! What a user asks to be run, and what a run of all experiments leaves out.

use super::*;

#[test]
fn filters_keep_the_reference() {
    let fake = Fake(vec![
        ("first", vec!["a", "b", "c"], 2, 0.0),
        ("second", vec!["a", "b", "c"], 2, 0.0),
    ]);
    let options = Options {
        groups: vec!["sec".to_owned()],
        contestants: vec!["c".to_owned()],
        ..quick(1)
    };
    let run = take(&fake, &options, &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    let cells: BTreeSet<String> = run.samples.iter().map(|s| s.cell.to_string()).collect();
    assert_eq!(
        cells.into_iter().collect::<Vec<_>>(),
        ["a", "a (twin)", "c"]
    );
    assert!(run.samples.iter().all(|s| s.group == "second"));
}

#[test]
fn a_run_of_all_experiments_takes_some_groups_and_names_the_others() {
    let fake = Fake(vec![
        ("first", vec!["a", "b"], 2, 0.0),
        ("second", vec!["a", "b"], 2, 0.0),
    ]);
    let machine = MachineRecord::default();
    let planned = |options: Options| {
        let plan = options.of(&fake).plan(&fake, &machine);
        let groups: Vec<String> = plan.groups.into_iter().map(|g| g.name).collect();
        let left_out = plan.skipped.into_iter().map(|s| (s.what, s.why));
        (groups, left_out.skip(1).collect::<Vec<_>>())
    };
    let brief = || Options {
        brief: true,
        ..quick(1)
    };
    let (groups, left_out) = planned(brief());
    assert_eq!(groups, ["second"]);
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].0, "first");
    assert!(left_out[0].1.contains("`larder measure fake`"));
    // A group that is named is planned, and an experiment that is named runs whole.
    let named = Options {
        groups: vec!["first".to_owned()],
        ..brief()
    };
    assert_eq!(planned(named), (vec!["first".to_owned()], Vec::new()));
    assert_eq!(planned(quick(1)).0, ["first", "second"]);
}

#[test]
fn a_filter_of_factors_keeps_the_reference_and_what_has_no_such_factor() {
    struct Sweep;
    impl Experiment for Sweep {
        fn plan(&self, request: &PlanRequest<'_>) -> Plan {
            let mut plan = Fake(vec![("g", vec!["a", "b"], 2, 0.0)]).plan(request);
            let sweep = (1..=4).map(|n| Cell::new("c", Params::new().with("pages", n)));
            plan.groups[0].cells.extend(sweep);
            plan
        }
        fn name(&self) -> &'static str {
            "sweep"
        }
        fn title(&self) -> &'static str {
            "sweep"
        }
        fn source(&self) -> &'static str {
            "nobody"
        }
        fn question(&self) -> &'static str {
            "which?"
        }
        fn metrics(&self) -> &'static [Metric] {
            &[]
        }
        fn contestants(&self) -> Vec<Box<dyn Contestant>> {
            Vec::new()
        }
        fn analyse(&self, _: &RunRecord) -> Analysis {
            Analysis::default()
        }
    }
    let options = Options {
        factors: vec!["pages=2,4".parse().unwrap()],
        ..quick(1)
    };
    let plan = options.plan(&Sweep, &MachineRecord::default());
    let cells: Vec<_> = plan.groups[0].cells.iter().map(Cell::to_string).collect();
    assert_eq!(cells, ["a", "b", "c pages=2", "c pages=4"]);
}

#[test]
fn a_contestant_that_cannot_run_here_is_named_with_the_reason() {
    struct Absent;
    impl Contestant for Absent {
        fn name(&self) -> &'static str {
            "absent"
        }
        fn about(&self) -> &'static str {
            "a contestant that is not here"
        }
        fn available(&self) -> Result<(), String> {
            Err("install absent".to_owned())
        }
        fn run(&self, _: &Params) -> anyhow::Result<Measures> {
            anyhow::bail!("absent")
        }
    }
    struct With(Fake);
    impl Experiment for With {
        fn name(&self) -> &'static str {
            "with"
        }
        fn title(&self) -> &'static str {
            "with"
        }
        fn source(&self) -> &'static str {
            "none"
        }
        fn question(&self) -> &'static str {
            "which?"
        }
        fn metrics(&self) -> &'static [Metric] {
            &[]
        }
        fn contestants(&self) -> Vec<Box<dyn Contestant>> {
            vec![Box::new(Absent)]
        }
        fn plan(&self, request: &PlanRequest<'_>) -> Plan {
            self.0.plan(request)
        }
        fn analyse(&self, _: &RunRecord) -> Analysis {
            Analysis::default()
        }
    }
    let select = |contestant: &str| {
        let options = Options {
            contestants: vec![contestant.to_owned()],
            ..quick(1)
        };
        let fake = Fake(vec![("g", vec!["a", "b"], 2, 0.0)]);
        options.select(vec![Box::new(With(fake))], &MachineRecord::default())
    };
    assert_eq!(select("b").map(|all| all.len()).ok(), Some(1));
    let Err(BadSelection::Missing(why)) = select("absent") else {
        panic!("absent is selected");
    };
    assert!(
        why.contains("'absent'") && why.contains("install absent"),
        "{why}"
    );
    assert!(
        matches!(select("abset"), Err(BadSelection::Word(why)) if why.contains("nearest is 'absent'"))
    );
}
