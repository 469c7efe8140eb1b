//! Factors of all contestants here.

use anyhow::ensure;

use crate::model::Params;

/// A factor that counts at least one.
pub(super) fn counted(params: &Params, factor: &str) -> anyhow::Result<usize> {
    let count = params.count(factor)?;
    ensure!(count > 0, "factor '{factor}' is 0; ask for at least one");
    Ok(count)
}

/// The factor `pages`.
pub(super) fn pages(params: &Params) -> anyhow::Result<usize> {
    let pages = params.count("pages")?;
    ensure!(
        (1..=1 << 20).contains(&pages),
        "factor 'pages' is {pages}; it is 1 to 1048576"
    );
    Ok(pages)
}
