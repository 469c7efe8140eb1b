//! The report's page in headless Chromium. Without one each test is skipped with one line.

#![allow(
    clippy::unwrap_used,
    reason = "a failing helper of a test should fail the test"
)]

#[path = "../common/document.rs"]
mod document;
mod driver;

use std::path::Path;

use document::{HOSTILE, charted, document};
use driver::{browser, visit, with_probe};
use larder_lab::calc::{Quantity, Refusal, derive, parse_timings};
use larder_lab::model::{Block, Chart, Scale};
use larder_lab::report::{Document, html};
use serde_json::{Value, json};

const DESK: (u32, u32) = (1200, 900);

/// Helpers of the probes: find a calculator's parts, type into a field.
const HELPERS: &str = "
  var all = function (s, n) { return Array.prototype.slice.call((n || document).querySelectorAll(s)); };
  var cards = function () { return all('.calc'); };
  var field = function (card, key) { return card.querySelector('[data-field=\"' + key + '\"]'); };
  var type = function (card, key, text) {
    var f = field(card, key); f.value = text; f.dispatchEvent(new Event('input', { bubbles: true })); };
  var costs = function (card) { var o = {}; all('dd[data-q]', card).forEach(function (d) {
    o[d.dataset.q] = d.hasAttribute('data-value') ? Number(d.getAttribute('data-value')) : null; }); return o; };
  var choose = function (card, id) { var s = card.querySelector('select'); s.value = id;
    s.dispatchEvent(new Event('change', { bubbles: true })); };
";

/// Every chart of the document, in the order of the page.
fn charts(doc: &Document) -> Vec<&Chart> {
    let mut all = Vec::new();
    for (_, a) in &doc.runs {
        all.extend(a.findings.iter().filter_map(|f| f.chart.as_ref()));
        for block in a.sections.iter().flat_map(|s| &s.blocks) {
            if let Block::Chart(c) = block {
                all.push(c);
            }
        }
    }
    all
}

fn page() -> String {
    html(&charted()).unwrap()
}

fn probe_at(browser: &Path, script: &str, fragment: &str, size: (u32, u32)) -> Value {
    let page = with_probe(&page(), &format!("{HELPERS}{script}"));
    let seen = visit(browser, &page, fragment, size, &[]);
    assert!(seen.console.is_empty(), "console: {:?}", seen.console);
    assert!(!seen.probe.is_null(), "the probe did not run");
    seen.probe
}

fn probe(browser: &Path, script: &str) -> Value {
    probe_at(browser, script, "", DESK)
}

fn close(here: &Value, expected: Option<f64>, what: &str) {
    match (here.as_f64(), expected) {
        (Some(a), Some(b)) => {
            assert!(
                (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                "{what}: {a}, expected {b}"
            );
        }
        (None, None) => {}
        (a, b) => panic!("{what}: {a:?}, expected {b:?}"),
    }
}

#[test]
fn the_untouched_page_runs_under_its_policy() {
    let Some(browser) = browser() else { return };
    let page = page();
    let seen = visit(&browser, &page, "", DESK, &[]);
    assert!(seen.console.is_empty(), "console: {:?}", seen.console);
    // The scripts ran: the policy's hashes are those of the file.
    assert_eq!(seen.dom.matches("<article class=\"calc\"").count(), 2);
    assert!(seen.dom.contains("default-src 'none'"));
    assert!(
        !seen.dom.contains("<img"),
        "a hostile name became an element"
    );
    assert_eq!(seen.dom.matches("<script").count(), 3);
    // And they ran only because of the hashes: the same page with one more blank in a script does not.
    let changed = page.replace("var larderCalc =", "var  larderCalc =");
    let seen = visit(&browser, &changed, "", DESK, &[]);
    assert!(!seen.console.is_empty(), "the policy refused nothing");
    assert_eq!(seen.dom.matches("<article class=\"calc\"").count(), 0);
}

#[test]
fn nothing_is_fetched_and_no_name_breaks_out() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "return {
           outside: all('[src], link, img, iframe, object, embed, base, form, [style]').length,
           links: all('[href]').filter(function (a) { return a.getAttribute('href')[0] !== '#'; }).length,
           handlers: all('*').filter(function (e) { return Array.prototype.some.call(e.attributes, function (a) { return a.name.slice(0, 2) === 'on'; }); }).length,
           requests: performance.getEntriesByType('resource').length,
           pwned: window.pwned === undefined ? null : window.pwned,
           options: all('option').map(function (o) { return o.textContent; }),
           ids: all('[id]').length - new Set(all('[id]').map(function (e) { return e.id; })).size,
           dead: all('a[href^=\"#\"]').filter(function (a) { return !document.getElementById(a.getAttribute('href').slice(1)); }).length };",
    );
    for name in ["outside", "links", "handlers", "requests", "ids", "dead"] {
        assert_eq!(seen[name], 0, "{name}");
    }
    assert_eq!(seen["pwned"], Value::Null);
    // The name itself is still there, as text.
    let options: Vec<&str> = seen["options"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let shown = HOSTILE.replace(['\u{1b}', '\u{202e}'], "\u{fffd}");
    assert!(options.contains(&shown.as_str()), "{options:?}");
}

/// Points that the axes of a chart can show, counted without the chart's code.
fn drawable(c: &Chart) -> usize {
    let fits = |v: f64, scale: Scale, zero: bool| {
        v.is_finite() && (scale == Scale::Linear || v > 0.0 || (zero && v == 0.0))
    };
    c.series
        .iter()
        .flat_map(|s| &s.points)
        .filter(|p| fits(p.x, c.x.scale, true) && fits(p.y, c.y.scale, false))
        .count()
}

#[test]
fn each_chart_has_a_mark_for_each_of_its_numbers() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "all('details').forEach(function (d) { d.open = true; });
         return all('figure').map(function (f) {
           var marks = all('svg.chart .mark', f), box = f.querySelector('svg.chart').getBoundingClientRect();
           return { marks: marks.length, said: Number(f.dataset.rows),
             titles: marks.filter(function (m) { return m.querySelector('title'); }).length,
             inside: marks.filter(function (m) { var b = m.getBoundingClientRect();
               return b.left >= box.left && b.right <= box.right && b.top >= box.top && b.bottom <= box.bottom; }).length,
             named: f.querySelector('svg.chart').getAttribute('role') === 'img' && document.getElementById(f.querySelector('svg.chart').getAttribute('aria-labelledby')) !== null,
             cells: all('details tbody td:not(:first-child)', f).filter(function (c) { return c.textContent.trim() !== '' && c.textContent !== 'no number'; }).length };
         });",
    );
    let doc = charted();
    let figures = seen.as_array().unwrap();
    let charts = charts(&doc);
    assert_eq!(figures.len(), charts.len());
    for (f, c) in figures.iter().zip(charts) {
        let expected = drawable(c);
        assert!(
            expected > 5,
            "the fixture's chart is too small to say anything"
        );
        for name in ["marks", "said", "titles", "inside", "cells"] {
            assert_eq!(f[name], expected, "{name} of '{}'", c.title);
        }
        assert_eq!(f["named"], true);
    }
}

#[test]
fn the_pages_script_agrees_with_the_vectors() {
    let Some(browser) = browser() else { return };
    let vectors = include_str!("../vectors/calc.json").replace('<', "\\u003c");
    let script = format!("var v = {vectors};")
        + "
        var worst = 0, bad = [], n = 0;
        function near(here, expected, what) {
          n++;
          if (here === null || expected === null) { if (here !== expected) bad.push(what + ': ' + here + ', expected ' + expected); return; }
          var off = Math.abs(here - expected) / Math.max(1, Math.abs(expected));
          worst = Math.max(worst, off);
          if (!(off <= v.tolerance)) bad.push(what + ': ' + here + ', expected ' + expected);
        }
        function read(field, text) { return field === 'pages' ? larderCalc.parsePages(text) : larderCalc.parseTiming(field, text); }
        v.cases.forEach(function (c) {
          var t = {};
          larderCalc.FIELDS.forEach(function (f, i) { t[f] = larderCalc.parseTiming(f, c.input[i]).value; });
          var d = larderCalc.derive(t, larderCalc.parsePages(c.pages).value);
          Object.keys(c.expect).forEach(function (k) { near(d[k], c.expect[k], c.name + ' ' + k); });
        });
        v.refusals.forEach(function (r) { n++; var why = read(r.field, r.text).why;
          if (why !== r.why || larderCalc.REASONS[why] !== r.reason) bad.push(r.field + ' ' + JSON.stringify(r.text) + ': ' + why); });
        v.accepted.forEach(function (a) { n++; if (read(a.field, a.text).why) bad.push('refused ' + JSON.stringify(a)); });
        v.fits.forEach(function (f) { var p = larderCalc.predict(f.model, f.pages);
          ['value', 'lo', 'hi'].forEach(function (k) { near(p[k], f.expect[k], 'fit ' + f.pages + ' ' + k); }); });
        return { n: n, bad: bad, worst: worst };";
    let seen = probe(&browser, &script);
    assert_eq!(seen["bad"], json!([]));
    assert!(seen["n"].as_u64().unwrap() > 300, "{seen}");
}

#[test]
fn typing_computes_what_the_program_computes() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "var c = cards()[1], out = {};
         out.published = costs(c);
         type(c, 'alloc1_fault', '25.75'); type(c, 'pages', '64');
         out.typed = costs(c);
         out.sources = all('.src span', c).map(function (s) { return s.textContent; });
         type(c, 'alloc2', ''); out.absent = costs(c);
         all('.src button', c)[1].click(); all('.src button', c)[2].click(); all('.src button', c)[4].click();
         out.reset = costs(c);
         choose(c, ''); type(c, 'alloc1', '10'); type(c, 'alloc1_fault', '9'); type(c, 'alloc2', '8'); type(c, 'alloc2_fault', '40');
         out.negative = costs(c);
         out.flags = all('.calc-flags li', c).map(function (l) { return l.textContent; });
         type(cards()[0], 'pages', '600');
         out.fitted = Number(cards()[0].querySelector('[data-fit=total]').getAttribute('data-value'));
         out.hidden = c.querySelector('.calc-better').hidden;
         return out;",
    );
    let expect = |key: &str, texts: [&str; 4], pages: u32| {
        let d = derive(&parse_timings(texts).unwrap());
        for q in Quantity::ALL {
            close(
                &seen[key][q.key()],
                d.get(q, pages),
                &format!("{key} {}", q.key()),
            );
        }
    };
    expect("published", ["11.2", "24.0", "11.5", "33.6"], 1);
    expect("typed", ["11.2", "25.75", "11.5", "33.6"], 64);
    expect("absent", ["11.2", "25.75", "", "33.6"], 64);
    expect("reset", ["11.2", "24.0", "11.5", "33.6"], 1);
    expect("negative", ["10", "9", "8", "40"], 1);
    assert_eq!(
        seen["sources"],
        json!(["published", "typed", "published", "published", "typed"])
    );
    let flags = seen["flags"].as_array().unwrap();
    assert_eq!(flags.len(), 4, "{flags:?}");
    assert!(
        flags[0]
            .as_str()
            .unwrap()
            .starts_with("The assumptions of 2003 do not hold here: page extra cost")
    );
    let doc = document();
    let model = doc.runs[1].1.calculator[0].fitted.as_ref().unwrap();
    close(&seen["fitted"], Some(model.predict(600).value), "fitted");
    assert_eq!(seen["hidden"], true, "typed numbers have no fit");
}

#[test]
fn nonsense_is_refused_at_its_field() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "var c = cards()[1];
         return [['alloc1', '-1'], ['alloc1_fault', ''], ['alloc2', 'x'], ['alloc2_fault', '1e999'], ['pages', '1.5'], ['alloc1', '<img src=x onerror=window.pwned=1>']].map(function (t) {
           var before = field(c, t[0]).value;
           type(c, t[0], t[1]);
           var f = field(c, t[0]), r = { error: document.getElementById(f.getAttribute('aria-describedby').split(' ')[0]).textContent,
             invalid: f.getAttribute('aria-invalid'), others: all('[aria-invalid=true]', c).length,
             left: Object.keys(costs(c)).filter(function (k) { return costs(c)[k] !== null; }).length };
           type(c, t[0], before);
           return r;
         });",
    );
    let expected = [
        (Refusal::Negative, 0),
        (Refusal::Empty, 0),
        (Refusal::Text, 0),
        (Refusal::Infinite, 0),
        // A bad number of pages takes away the deallocation only.
        (Refusal::Pages, 6),
        (Refusal::Text, 0),
    ];
    for (r, (why, left)) in seen.as_array().unwrap().iter().zip(expected) {
        assert_eq!(r["error"], why.reason());
        assert_eq!(r["invalid"], "true");
        assert_eq!(r["others"], 1, "{why:?}: only this field is marked");
        assert_eq!(r["left"], left, "{why:?}");
    }
}

#[test]
fn calculators_are_added_closed_and_kept_in_the_link() {
    let Some(browser) = browser() else { return };
    let script = "
        var state = function () { return cards().map(function (c) { return { machine: c.querySelector('select').value,
          texts: all('input', c).map(function (i) { return i.value; }), costs: costs(c) }; }); };";
    let first = probe(
        &browser,
        &format!("{script}
         var out = {{ start: cards().length }};
         document.getElementById('calc-add').click(); document.getElementById('calc-add').click();
         out.added = cards().length;
         cards()[0].querySelector('.calc-close').click();
         out.closed = cards().length;
         type(cards()[0], 'alloc1', '12.5'); type(cards()[1], 'pages', '64'); choose(cards()[2], '');
         type(cards()[2], 'alloc2', 'x & \"<y>');
         out.hash = location.hash; out.state = state();
         return out;"),
    );
    assert_eq!(
        (
            first["start"].as_u64(),
            first["added"].as_u64(),
            first["closed"].as_u64()
        ),
        (Some(2), Some(4), Some(3))
    );
    let hash = first["hash"].as_str().unwrap();
    assert!(hash.starts_with("#calc="), "{hash}");
    let again = probe_at(
        &browser,
        &format!(
            "{script} return {{ state: state(), hash: location.hash, message: document.getElementById('calc-message').textContent }};"
        ),
        hash,
        DESK,
    );
    assert_eq!(again["state"], first["state"]);
    assert_eq!(again["message"], "");
    let none = probe(
        &browser,
        "cards().forEach(function (c) { c.querySelector('.calc-close').click(); });
         var closed = cards().length; document.getElementById('calc-add').click();
         return [closed, cards().length];",
    );
    assert_eq!(none, json!([0, 1]));
}

#[test]
fn broken_links_give_the_usual_calculators() {
    let Some(browser) = browser() else { return };
    let look = "return [cards().length, document.getElementById('calc-message').textContent];";
    for bad in ["#calc=%E0%A4%A", "#calc={", "#calc=7"] {
        let seen = probe_at(&browser, look, bad, DESK);
        assert_eq!(seen[0], 2, "{bad}");
        assert!(
            seen[1].as_str().unwrap().contains("could not be read"),
            "{bad}: {seen}"
        );
    }
    let seen = probe_at(
        &browser,
        look,
        "#calc=[null,{\"m\":\"published:Cray\",\"v\":[5,\"1\"]}]",
        DESK,
    );
    assert_eq!(seen[0], 1);
    assert!(
        seen[1].as_str().unwrap().contains("does not have"),
        "{seen}"
    );
}

#[test]
fn themes_differ_and_a_narrow_window_does_not_scroll_sideways() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "var b = document.getElementById('theme'), out = [];
         var mark = document.querySelector('svg.chart .mark');
         for (var i = 0; i < 3; i++) { out.push([b.textContent, getComputedStyle(document.body).backgroundColor, getComputedStyle(mark).fill]); b.click(); }
         return out;",
    );
    assert_eq!(seen[0][0], "Theme: system");
    assert_eq!(seen[1][0], "Theme: light");
    assert_eq!(seen[2][0], "Theme: dark");
    assert_eq!(seen[0][1], seen[1][1], "headless Chromium prefers light");
    assert_ne!(seen[1][1], seen[2][1], "page");
    assert_ne!(seen[1][2], seen[2][2], "marks");
    // Half of a common window is the same window at 200 %.
    let seen = probe_at(
        &browser,
        "return [document.documentElement.scrollWidth, window.innerWidth];",
        "",
        (600, 900),
    );
    assert!(seen[0].as_u64() <= seen[1].as_u64(), "{seen}");
}

#[test]
fn a_fold_is_closed_until_a_link_leads_into_it_and_no_heading_hides_under_the_bar() {
    let Some(browser) = browser() else { return };
    let seen = probe(
        &browser,
        "var bar = document.querySelector('nav').getBoundingClientRect().height, out = { bar: bar };
         out.open = all('details[open]').length;
         out.padding = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
         out.smooth = getComputedStyle(document.documentElement).scrollBehavior;
         out.hidden = all('nav a').filter(function (a) {
           var target = document.getElementById(a.getAttribute('href').slice(1));
           target.scrollIntoView();
           var head = target.querySelector('h2, summary').getBoundingClientRect();
           return head.top < bar; }).map(function (a) { return a.textContent; });
         var fold = document.getElementById('manifest-run-3');
         document.querySelector('a[href=\"#manifest-run-3\"]').click();
         window.dispatchEvent(new Event('hashchange'));
         out.reached = fold.open;
         return out;",
    );
    assert_eq!(seen["open"], 0, "{seen}");
    assert!(seen["bar"].as_f64().unwrap() <= 48.0, "{seen}");
    assert_eq!(seen["bar"], seen["padding"]);
    assert_eq!(seen["smooth"], "auto");
    assert_eq!(seen["hidden"], json!([]));
    assert_eq!(seen["reached"], true);
}

#[test]
fn a_phone_shows_axis_text_that_can_be_read() {
    let Some(browser) = browser() else { return };
    // No window of the browser is narrower than 500 pixels, so the body is.
    let seen = probe_at(
        &browser,
        "document.body.style.width = '390px';
         all('details').forEach(function (d) { d.open = true; });
         return all('svg.chart').map(function (s) {
           var box = s.getBoundingClientRect(), scale = box.width / s.viewBox.baseVal.width;
           return { width: box.width,
             least: Math.min.apply(null, all('text', s).map(function (t) { return parseFloat(getComputedStyle(t).fontSize) * scale; })),
             outside: all('text', s).filter(function (t) { var b = t.getBoundingClientRect();
               return b.left < box.left - 1 || b.right > box.right + 1; }).map(function (t) { return t.textContent; }) };
         });",
        "",
        (500, 900),
    );
    let charts = seen.as_array().unwrap();
    assert_eq!(charts.len(), 3);
    for c in charts {
        assert!(c["width"].as_f64().unwrap() <= 390.0, "{c}");
        assert!(c["least"].as_f64().unwrap() >= 11.0, "{c}");
        assert_eq!(c["outside"], json!([]), "{c}");
    }
}
