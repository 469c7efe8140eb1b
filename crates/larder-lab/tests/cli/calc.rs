//! `larder calc` from outside.

use serde_json::Value;

use crate::home::Home;

fn calc(args: &[&str]) -> (i32, String, String) {
    Home::new().run(&[&["calc"], args].concat())
}

#[test]
fn four_numbers_give_the_published_costs() {
    let (code, out, _) = calc(&["11.2", "24.0", "11.5", "33.6"]);
    assert_eq!(code, 0);
    for (label, value) in [
        ("page extra cost", "0.3"),
        ("allocation cost", "5.45"),
        ("page fault extra cost", "12.8"),
        ("object cost", "3.5"),
        ("fault + zerofill cost", "9.3"),
        ("deallocation cost, 1 page", "7.5"),
        ("zerofill cost", "6.15"),
    ] {
        let line = out
            .lines()
            .find(|l| l.trim_start().starts_with(label))
            .unwrap_or_else(|| panic!("{label}: {out}"));
        assert!(line.split_whitespace().any(|w| w == value), "{line}");
    }
    assert!(out.contains("deallocation 7.35, zerofill 6.1875"), "{out}");
}

#[test]
fn a_machine_is_found_by_a_part_of_its_name() {
    let (code, out, _) = calc(&["--machine", "IMAC", "--pages", "64", "--json"]);
    assert_eq!(code, 0);
    let v: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&v["machine"], &v["pages"]),
        (&"800 MHz G4 (iMac)".into(), &64.into())
    );
    let free = v["derived"]["deallocation"].as_f64().unwrap();
    let expected = 16.4 / 2.0 + 1.4 / 2.0 * 64.0 + (2.0 * 31.3 - 53.6) / 2.0;
    assert!(
        (free - expected).abs() < 1e-9,
        "{free}, expected {expected}"
    );
}

#[test]
fn unknown_and_ambiguous_machines_list_the_names() {
    for (name, words) in [
        ("cray", "no machine is called 'cray'"),
        ("G4", "more than one"),
    ] {
        let (code, out, err) = calc(&["--machine", name]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(
            err.contains(words) && err.contains("867 MHz G4 (Powerbook)"),
            "{err}"
        );
    }
    let (code, out, _) = calc(&["--list"]);
    assert_eq!(code, 0);
    assert!(out.contains("vm_allocate, 450 MHz Cube") && out.contains("500 MHz G3 (IBook)"));
}

#[test]
fn nonsense_is_refused_by_field_and_all_at_once() {
    let (code, out, err) = calc(&["-1", "x", "inf", "77,3"]);
    assert_eq!((code, out.as_str()), (2, ""));
    for part in [
        "1p alloc '-1' refused: negative",
        "1p alloc + fault 'x' refused: not a number",
        "2p alloc 'inf' refused: infinite",
        "2p alloc + fault '77,3' refused: not a number: write the decimals after a point",
    ] {
        assert!(err.contains(part), "{err}");
    }
    for bad in ["0", "-3", "1.5", "many"] {
        let (code, _, err) = calc(&["1", "2", "3", "4", "--pages", bad]);
        assert_eq!(code, 2, "{bad}");
        assert!(err.contains("whole number of pages"), "{err}");
    }
    assert_eq!(calc(&["1", "2", "3"]).0, 2);
    assert_eq!(calc(&[]).0, 2);
}

#[test]
fn absent_and_negative_costs_are_told() {
    let (code, out, _) = calc(&["9.03", "18.13", "-", "24.58"]);
    assert_eq!(code, 0);
    assert_eq!(out.matches("needs 2p alloc").count(), 6, "{out}");
    assert!(out.contains("9.1"));
    let (_, out, _) = calc(&["10", "9", "8", "40"]);
    assert!(
        out.contains("The assumptions of 2003 do not hold here"),
        "{out}"
    );
    assert!(out.contains("object cost is negative"), "{out}");
}
