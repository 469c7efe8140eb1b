//! One thread: pairs, deep takes and pages of zeros.

use std::ptr::NonNull;

use anyhow::ensure;

use crate::contestants::supply::{ArrayStack, Supplier, Supply, page_size};
use crate::contestants::timing::{Stopwatch, ns_per_op, resident_bytes};
use crate::model::{Measures, Params};

use super::loops;

/// Turns before the clock starts, as a share of those that are timed: caches, predictors and the supplier's own
/// stocks are then those of a busy program.
pub(super) const WARM_SHARE: u64 = 8;

/// Pages in all, how many are out at a time, and how often that is.
fn turns(params: &Params, depth: usize) -> anyhow::Result<u64> {
    let total = params.count("pages")? as u64;
    ensure!(
        depth > 0 && total > 0,
        "{total} pages, {depth} at a time, were asked for; both must be at least 1"
    );
    Ok(total.div_ceil(depth as u64))
}

/// Runs a shape: `pages` get-and-put pairs in all, `depth` pages out at a time. `pair` gets a page, writes 8 bytes and puts it;
/// `deep` gets and writes many, then puts all; `zeroed` does so with pages of zeros. `before` is resident memory before the supply
/// was made, in bytes.
///
/// # Errors
/// Missing factors, a supplier without pages, and one whose pages are wrong.
pub(super) fn run<S: Supply>(
    supply: &S,
    shape: &str,
    before: u64,
    params: &Params,
) -> anyhow::Result<Measures> {
    let depth = match shape {
        "pair" => 1,
        _ => params.count("depth")?,
    };
    let turns = turns(params, depth)?;
    let mut local = supply.local()?;
    let mut pages = vec![NonNull::<u8>::dangling(); depth];
    let mut go = |turns: u64| match shape {
        "pair" => loops::pair(&mut local, turns),
        "zeroed" => loops::deep::<_, true>(&mut local, turns, &mut pages),
        _ => loops::deep::<_, false>(&mut local, turns, &mut pages),
    };
    let mut ok = go(turns.div_ceil(WARM_SHARE));
    let watch = Stopwatch::start();
    ok &= go(turns);
    let spent = watch.stop();
    ensure!(
        ok,
        "the supplier ran out of pages: {}",
        std::io::Error::last_os_error()
    );
    let held = resident_bytes().saturating_sub(before);
    check(&mut local, depth.min(64), shape == "zeroed")?;
    let done = turns * depth as u64;
    Ok(Measures::new()
        .with("ns_per_page", ns_per_op(spent.cpu_ns, done))
        .with("faults_per_page", ns_per_op(spent.usage.minor_faults, done))
        .with("held_bytes", held as f64))
}

/// The floor of zeroing: `depth` warm pages filled by the C library's memset, in the order of the zeroed shape.
///
/// # Errors
/// Missing factors and no memory.
pub(super) fn memset(params: &Params) -> anyhow::Result<Measures> {
    let depth = params.count("depth")?;
    let turns = turns(params, depth)?;
    let before = resident_bytes();
    let mut stack = ArrayStack::new(depth)?;
    let pages: Vec<_> = (0..depth).filter_map(|_| stack.get()).collect();
    loops::fill(&pages, turns.div_ceil(WARM_SHARE), page_size());
    let watch = Stopwatch::start();
    loops::fill(&pages, turns, page_size());
    let spent = watch.stop();
    let held = resident_bytes().saturating_sub(before);
    Ok(Measures::new()
        .with("ns_per_page", ns_per_op(spent.cpu_ns, turns * depth as u64))
        .with("held_bytes", held as f64))
}

/// Looks once, untimed, whether what was measured were pages: aligned, distinct, and zero where zeros were asked for.
pub(super) fn check<S: Supplier>(
    supplier: &mut S,
    count: usize,
    zeroed: bool,
) -> anyhow::Result<()> {
    let bytes = page_size();
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let page = if zeroed {
            supplier.get_zeroed()
        } else {
            supplier.get()
        };
        taken.push(page.ok_or_else(|| anyhow::anyhow!("the supplier ran out of pages"))?);
    }
    let mut wrong = None;
    for (i, page) in taken.iter().enumerate() {
        if !(page.as_ptr() as usize).is_multiple_of(bytes) {
            wrong = Some(format!("page {page:p} is not aligned to {bytes} bytes"));
        }
        if taken[..i].contains(page) {
            wrong = Some(format!("page {page:p} was handed out twice"));
        }
        // SAFETY: a page that is ours until it is put back below.
        let text = unsafe { std::slice::from_raw_parts(page.as_ptr(), bytes) };
        if zeroed && text.iter().any(|&byte| byte != 0) {
            wrong = Some(format!("page {page:p} was asked for zeroed and is not"));
        }
    }
    for page in taken {
        // SAFETY: taken above and put back once.
        unsafe { supplier.put(page) };
    }
    wrong.map_or(Ok(()), |text| Err(anyhow::anyhow!(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{ArrayStacks, SamePages};

    #[test]
    fn a_run_reports_finite_measures() {
        let params = Params::new().with("pages", 1000).with("depth", 16);
        for shape in ["pair", "deep", "zeroed"] {
            let measures = run(&ArrayStacks { pages: 64 }, shape, 0, &params).expect("runs");
            assert!(measures.get("ns_per_page").expect("timed") > 0.0);
            assert!(measures.0.values().all(|value| value.is_finite()));
        }
        assert!(
            memset(&params)
                .expect("runs")
                .get("ns_per_page")
                .expect("timed")
                > 0.0
        );
    }

    #[test]
    fn a_page_that_is_handed_out_twice_or_dirty_is_found() {
        let mut same = SamePages.local().expect("a page");
        assert!(check(&mut same, 1, false).is_ok());
        let twice = check(&mut same, 2, false).expect_err("one page only");
        assert!(twice.to_string().contains("twice"), "{twice}");
        let page = same.get().expect("the page");
        // SAFETY: the only page, mapped and ours.
        unsafe { page.as_ptr().write(1) };
        assert!(check(&mut same, 1, true).is_err());
    }

    #[test]
    fn too_few_pages_and_no_pages_are_errors() {
        let deep = Params::new().with("pages", 10).with("depth", 10);
        assert!(run(&ArrayStacks { pages: 9 }, "deep", 0, &deep).is_err());
        let none = Params::new().with("pages", 0).with("depth", 1);
        assert!(run(&ArrayStacks { pages: 9 }, "deep", 0, &none).is_err());
        assert!(memset(&none).is_err());
    }
}
