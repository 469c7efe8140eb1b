//! The number fields of the calculator: four timings, one a line, a number of pages, and a machine's name.

#![no_main]

use larder_fuzz::mutate_from;
use larder_lab::calc::{
    MAX_PAGES, MAX_US, Quantity, Timings, derive, find_preset, parse_pages, parse_timings,
    published_presets,
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const GOOD: [&str; 4] = [
    "11.2\n24.0\n11.5\n33.6\n1\ncube",
    "0\n1e12\n-\n.5\n1073741824\npowerbook",
    " 5. \n+3\nN/A\n77,3\n64\nmmap",
    "nan\ninf\n-0.1\n1e999\n0\n",
];

fn seeds() -> Vec<String> {
    GOOD.map(str::to_owned).to_vec()
}

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let fields = [next(), next(), next(), next()];
    match parse_timings(fields) {
        Ok(timings) => {
            for value in [
                Some(timings.alloc1()),
                Some(timings.alloc1_fault()),
                timings.alloc2(),
                Some(timings.alloc2_fault()),
            ]
            .into_iter()
            .flatten()
            {
                assert!((0.0..=MAX_US).contains(&value), "{value} was accepted");
            }
            let costs = derive(&timings);
            for quantity in Quantity::ALL {
                let value = costs.get(quantity, MAX_PAGES);
                assert!(
                    value.is_none_or(f64::is_finite),
                    "{quantity:?} is {value:?}"
                );
            }
            if let Some(whole) = costs.round_trip(2) {
                // His formulas put his own timing together again.
                let given = timings.alloc2_fault();
                let most = [timings.alloc1(), timings.alloc1_fault(), given]
                    .into_iter()
                    .fold(1.0, f64::max)
                    + timings.alloc2().unwrap_or_default();
                assert!((whole - given).abs() <= 1e-12 * most, "{whole} for {given}");
            }
            let json = serde_json::to_string(&timings).expect("timings are plain data");
            assert!(serde_json::from_str::<Timings>(&json).is_ok(), "{json}");
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    if let Ok(pages) = parse_pages(next()) {
        assert!((1..=MAX_PAGES).contains(&pages));
    }
    let _ = find_preset(&published_presets(), next()).map_err(|e| e.to_string());
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_from(&seeds(), data, size, max_size, seed)
});
