//! z3: formulas over bit vectors, arrays and integers.

use std::fmt::Write;

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

fn formulas(scale: usize) -> String {
    let mut text = String::new();
    for turn in 0..scale {
        // Six pigeons in five holes.
        text.push_str("(push)\n");
        for p in 0..6 {
            for h in 0..5 {
                let _ = writeln!(text, "(declare-const p{p}h{h} Bool)");
            }
            let holes: Vec<_> = (0..5).map(|h| format!("p{p}h{h}")).collect();
            let _ = writeln!(text, "(assert (or {}))", holes.join(" "));
        }
        for h in 0..5 {
            for a in 0..6 {
                for b in 0..a {
                    let _ = writeln!(text, "(assert (not (and p{a}h{h} p{b}h{h})))");
                }
            }
        }
        text.push_str("(check-sat)\n(pop)\n(push)\n");
        // A product of two numbers of 11 bits.
        let product = (1021 - 2 * turn) * 1019;
        let _ = write!(
            text,
            "(declare-const x (_ BitVec 22))\n(declare-const y (_ BitVec 22))\n\
             (assert (= (bvmul x y) (_ bv{product} 22)))\n(assert (bvult x (_ bv2048 22)))\n\
             (assert (bvult y (_ bv2048 22)))\n(assert (bvugt x (_ bv1 22)))\n(assert (bvugt y x))\n\
             (check-sat)\n(pop)\n(push)\n(declare-const a (Array Int Int))\n"
        );
        for i in 0..14 {
            let _ = writeln!(
                text,
                "(declare-const i{i} Int)\n(assert (and (>= i{i} 0) (< i{i} {})))\n(assert (> (select a i{i}) (+ i{i} {})))",
                i + 3,
                i % 7
            );
            if i > 0 {
                let _ = writeln!(text, "(assert (< (select a i{}) (select a i{i})))", i - 1);
            }
        }
        text.push_str("(check-sat)\n(pop)\n");
    }
    text
}
