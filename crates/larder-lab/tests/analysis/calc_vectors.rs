//! The calculator against the shared vectors; `browser.rs` holds the page's script to the same file.

use larder_lab::calc::{
    Field, FieldError, FittedModel, Parameter, Quantity, derive, parse_pages, parse_timings,
};
use serde_json::Value;

const VECTORS: &str = include_str!("../vectors/calc.json");

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn list<'a>(v: &'a Value, name: &str) -> &'a [Value] {
    let list = v[name].as_array().unwrap();
    assert!(!list.is_empty(), "no vectors under '{name}'");
    list
}

fn close(here: Option<f64>, expected: &Value, what: &str) {
    match (here, expected.as_f64()) {
        (Some(a), Some(b)) => {
            let bound = 1e-9 * b.abs().max(1.0);
            assert!((a - b).abs() <= bound, "{what}: {a}, expected {b}");
        }
        (None, None) => {}
        (a, b) => panic!("{what}: {a:?}, expected {b:?}"),
    }
}

#[test]
fn every_case_to_a_billionth() {
    let v = vectors();
    for case in list(&v, "cases") {
        let name = case["name"].as_str().unwrap();
        let text = |i: usize| case["input"][i].as_str().unwrap();
        let timings = parse_timings([text(0), text(1), text(2), text(3)]).unwrap();
        let pages = parse_pages(case["pages"].as_str().unwrap()).unwrap();
        let d = derive(&timings);
        let expect = &case["expect"];
        for q in Quantity::ALL {
            close(
                d.get(q, pages),
                &expect[q.key()],
                &format!("{name}: {}", q.key()),
            );
        }
        close(
            d.deallocation_as_printed(pages),
            &expect["deallocation_as_printed"],
            name,
        );
        close(
            d.zero_fill_as_printed(),
            &expect["zero_fill_as_printed"],
            name,
        );
        close(d.round_trip(pages), &expect["round_trip"], name);
    }
}

fn parse(field: &str, text: &str) -> Result<(), Vec<FieldError>> {
    if field == Field::Pages.key() {
        return parse_pages(text).map(|_| ()).map_err(|e| vec![e]);
    }
    let at = Field::TIMINGS
        .iter()
        .position(|f| f.key() == field)
        .unwrap();
    let mut texts = ["1"; 4];
    texts[at] = text;
    parse_timings(texts).map(|_| ())
}

#[test]
fn every_refusal_has_its_reason_at_its_field() {
    let v = vectors();
    for r in list(&v, "refusals") {
        let (field, text) = (r["field"].as_str().unwrap(), r["text"].as_str().unwrap());
        let errors = parse(field, text).expect_err(text);
        assert_eq!(errors.len(), 1, "{field} '{text}'");
        assert_eq!(errors[0].field.key(), field, "'{text}'");
        assert_eq!(
            errors[0].why.reason(),
            r["reason"].as_str().unwrap(),
            "{field} '{text}'"
        );
    }
    for a in list(&v, "accepted") {
        let (field, text) = (a["field"].as_str().unwrap(), a["text"].as_str().unwrap());
        assert!(parse(field, text).is_ok(), "{field} '{text}'");
    }
}

#[test]
fn every_fit_to_a_billionth() {
    let v = vectors();
    for fit in list(&v, "fits") {
        let part = |name: &str| {
            let p = &fit["model"][name];
            Parameter::new(
                p["value"].as_f64().unwrap(),
                p["lo"].as_f64().unwrap(),
                p["hi"].as_f64().unwrap(),
            )
        };
        let model = FittedModel {
            name: "vector".into(),
            call: part("call"),
            per_page: part("per_page"),
            per_table: part("per_table"),
            table_pages: fit["model"]["table_pages"].as_u64().unwrap() as u32,
            zero_fill: None,
        };
        let p = model.predict(fit["pages"].as_u64().unwrap() as u32);
        close(Some(p.value), &fit["expect"]["value"], "value");
        close(Some(p.lo), &fit["expect"]["lo"], "lo");
        close(Some(p.hi), &fit["expect"]["hi"], "hi");
    }
}
