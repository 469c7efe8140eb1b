//! Runs with missing cells, zeroes, negative and huge numbers: every experiment reads them, every format draws them.

#![no_main]

use larder_fuzz::records::MadeUp;
use larder_lab::experiments;
use larder_lab::report::{self, Document, Style};
use libfuzzer_sys::fuzz_target;

fn no_broken_number(text: &str) {
    assert!(
        !text.contains("NaN"),
        "a number that is none reached a report"
    );
}

fuzz_target!(|run: MadeUp| {
    let run = run.0;
    let experiment = experiments::find(&run.experiment).expect("a known experiment");
    let analysis = experiment.analyse(&run);
    assert_eq!(
        analysis,
        experiment.analyse(&run),
        "an analysis is a function of the record"
    );
    let document = Document {
        runs: vec![(run, analysis)],
        submissions: Vec::new(),
    };
    no_broken_number(&report::markdown(&document));
    let _ = report::json(&document).to_string();
    let page = report::html(&document).expect("every analysis can be drawn");
    for part in page.split("</script>") {
        // The scripts may speak of such numbers.
        no_broken_number(part.split("<script").next().unwrap_or_default());
    }
    report::terminal(&document, &Style::plain(), &mut Vec::new())
        .expect("a vector takes everything");
});
