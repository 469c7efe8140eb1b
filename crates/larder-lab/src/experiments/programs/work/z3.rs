//! z3: formulas over bit vectors, arrays and integers.

use super::super::process::{Program, Step, commands};
use crate::experiments::scratch::tool;

pub(super) const Z3: Program = Program {
    name: "z3",
    about: "z3: pigeons and holes, bit vectors, arrays and linear integers, one formula after the other",
    tools: &["z3"],
    lacks: || None,
    scale: 6,
    quick: true,
    run: |shop, malloc| {
        let file = shop.write("work.smt2", &formulas(shop.scale))?;
        let words = [
            "-smt2",
            "sat.random_seed=1",
            "smt.random_seed=1",
            &file.to_string_lossy(),
        ];
        commands(shop, malloc, &[Step::new(tool("z3")?, &words)])
    },
};

/// Six pigeons in five holes, a product of two numbers of 11 bits, and a sorted array, `scale` times.
fn formulas(scale: usize) -> String {
    let turn = |turn: usize| {
        let product = (1021 - 2 * turn) * 1019;
        include_str!("inputs/formulas.smt2").replace("@PRODUCT@", &product.to_string())
    };
    (0..scale).map(turn).collect()
}
