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
    let d = draw(&c, "c");
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
    let d = draw(&c, "c");
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
    let d = draw(&c, "c");
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
        let d = draw(&c, "c");
        assert_eq!(d.marks, 0);
        assert!(d.svg.contains("no points to draw"));
    }
}

#[test]
fn names_stay_text() {
    let mut c = chart(vec![series(
        "</title><script>alert(1)</script>",
        Provenance::Published,
        &[(1.0, 2.0), (2.0, 3.0)],
    )]);
    c.marks.push((2.0, "<b>&".into()));
    c.y.label = "<i> (ns)".into();
    for categories in [vec![], vec!["a".into(), "<u>".into(), "</svg>".into()]] {
        c.categories = categories;
        let d = draw(&c, "c");
        for bad in ["<script", "<b>", "<i>", "<u>", "&<"] {
            assert!(!d.svg.contains(bad), "{bad}: {}", d.svg);
        }
        assert_eq!(d.svg.matches("</svg>").count(), 1);
    }
}

fn attribute(tag: &str, name: &str) -> f64 {
    let from = format!(" {name}=\"");
    let rest = tag.split(&from).nth(1).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn categories_are_bars_as_long_as_their_values() {
    let mut c = chart(vec![
        series("here", Provenance::Measured, &[(0.0, 10.0), (1.0, 20.0)]),
        series(
            "2003",
            Provenance::Published,
            &[(0.0, 40.0), (2.0, 5.0), (7.0, 5.0), (0.5, 5.0)],
        ),
    ]);
    c.categories = vec!["one page".into(), "two pages".into(), "x".repeat(90)];
    c.y.scale = Scale::Linear;
    let d = draw(&c, "c");
    let bars: Vec<&str> = d.svg.lines().filter(|l| l.contains("<rect")).collect();
    assert_eq!((d.marks, bars.len()), (4, 4));
    // Grouped by category, and a length is a value: both begin at zero.
    let long: Vec<f64> = bars.iter().map(|b| attribute(b, "width")).collect();
    for (wide, value) in long.iter().zip([10.0, 40.0, 20.0, 5.0]) {
        assert!((wide / long[0] - value / 10.0).abs() < 0.02, "{long:?}");
    }
    assert!(bars[1].contains("mark hollow") && !bars[0].contains("hollow"));
    assert!(
        bars[0].contains("here: 10 ns [9 ns, 11 ns] at one page"),
        "{}",
        bars[0]
    );
    // A name that is cut stands whole in a title.
    assert!(
        d.svg
            .contains(&format!("<title>{}</title>", "x".repeat(90)))
    );
    assert!(d.left_out[0].starts_with("2 of 4 points of '2003'"));
    assert_eq!(d.legend[0].form, "bar");
    assert!(d.svg.contains("Bar chart of"));
}

#[test]
fn labels_stand_inside_the_picture_and_apart() {
    let sizes: Vec<(f64, f64)> = (0..20)
        .map(|i| (2f64.powi(i), 3e4 * f64::from(i + 1)))
        .collect();
    let c = chart(vec![series("s", Provenance::Measured, &sizes)]);
    let d = draw(&c, "c");
    let ticks: Vec<(f64, &str)> = d
        .svg
        .lines()
        .filter(|l| l.contains("class=\"tick\"") && l.contains("middle"))
        .map(|l| {
            (
                attribute(l, "x"),
                l.split('>').nth(1).unwrap().split('<').next().unwrap(),
            )
        })
        .collect();
    assert!(ticks.len() > 2, "{ticks:?}");
    let half = |t: &str| svg::width(t) / 2.0;
    for (x, t) in &ticks {
        assert!(x - half(t) >= 0.0 && x + half(t) <= svg::WIDTH, "{ticks:?}");
    }
    for w in ticks.windows(2) {
        assert!(w[0].0 + half(w[0].1) <= w[1].0 - half(w[1].1), "{ticks:?}");
    }
}
