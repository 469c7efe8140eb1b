use super::*;
use crate::model::{Axis, Point, Scale, Series};

fn series(name: &str, from: Provenance, points: &[(f64, f64)]) -> Series {
    Series {
        name: name.to_owned(),
        from,
        points: points
            .iter()
            .map(|&(x, y)| Point {
                x,
                y,
                lo: y * 0.9,
                hi: y * 1.1,
            })
            .collect(),
    }
}

fn chart(series: Vec<Series>) -> Chart {
    Chart {
        title: "cost by size".into(),
        x: Axis {
            label: "size (pages)".into(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "time (ns)".into(),
            scale: Scale::Log,
        },
        series,
        marks: vec![(8.0, "knee".into())],
        categories: Vec::new(),
    }
}

fn count(svg: &str, class: &str) -> usize {
    svg.matches(&format!("class=\"{class}\"")).count()
}

#[test]
fn each_point_has_one_mark_and_one_title() {
    let points: Vec<(f64, f64)> = (0..9).map(|i| (2f64.powi(i), 100.0)).collect();
    let c = chart(
        (0..5)
            .map(|i| series(&format!("s{i}"), Provenance::Measured, &points))
            .collect(),
    );
    let d = draw(&c, "c").unwrap();
    assert_eq!(d.marks, 45);
    assert_eq!(count(&d.svg, "mark"), 45);
    assert_eq!(d.svg.matches("<title>").count(), 45);
    assert_eq!(count(&d.svg, "ribbon"), 5);
    assert!(d.left_out.is_empty());
}

#[test]
fn published_points_are_hollow() {
    let c = chart(vec![
        series("here", Provenance::Measured, &[(1.0, 2.0), (2.0, 3.0)]),
        series(
            "2001",
            Provenance::Published,
            &[(1.0, 2.0), (2.0, 3.0), (4.0, 3.0)],
        ),
    ]);
    let d = draw(&c, "c").unwrap();
    assert_eq!(
        (count(&d.svg, "mark"), count(&d.svg, "mark hollow")),
        (2, 3)
    );
    assert!(d.legend[1].published && !d.legend[0].published);
    assert_eq!(count(&d.svg, "ribbon"), 0, "few points have error bars");
    assert!(count(&d.svg, "bar") >= 6);
}

#[test]
fn points_without_a_place_are_told() {
    let c = chart(vec![series(
        "odd",
        Provenance::Measured,
        &[
            (1.0, -2.0),
            (2.0, f64::NAN),
            (-4.0, 3.0),
            (8.0, 3.0),
            (0.0, 3.0),
        ],
    )]);
    let d = draw(&c, "c").unwrap();
    assert_eq!(d.marks, 2);
    assert_eq!(count(&d.svg, "mark"), 2);
    assert!(
        d.left_out[0].starts_with("3 of 5 points of 'odd'"),
        "{:?}",
        d.left_out
    );
}

#[test]
fn no_points_and_no_series_are_drawn_as_such() {
    for c in [
        chart(vec![]),
        chart(vec![series("none", Provenance::Measured, &[])]),
    ] {
        let d = draw(&c, "c").unwrap();
        assert_eq!(d.marks, 0);
        assert!(d.svg.contains("no points to draw"));
    }
}

#[test]
fn no_sentinel_is_left_and_names_stay_text() {
    let mut c = chart(vec![series(
        "</title><script>alert(1)</script>",
        Provenance::Published,
        &[(1.0, 2.0), (2.0, 3.0)],
    )]);
    c.marks.push((2.0, "<b>&".into()));
    c.y.label = "<i> (ns)".into();
    let d = draw(&c, "c").unwrap();
    assert!(!d.svg.contains("5A\""), "{}", d.svg);
    assert!(!d.svg.contains("<script") && !d.svg.contains("<b>") && !d.svg.contains("<i>"));
}
