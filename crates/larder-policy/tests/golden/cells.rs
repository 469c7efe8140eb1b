//! Cells that others computed, and those of `adaptive`: trace, capacity, and hit ratios in percent.
//!
//! The values for all rules but ARC on OLTP come from a simulator that was written apart from this one, in another language, and
//! agrees with libCacheSim on the rules whose definition leaves nothing open. ARC's on OLTP are Megiddo and Modha's table.
//! Cacheus' are those of its authors' program (github.com/sylab/cacheus, 1eec63c) when it is given the draws of ours and double
//! precision for its weights; with its own draws it has up to 0.9 points more or less.
//!
//! `adaptive` is larder's own, and has no other program: its values are what it had when they were noted. A change that means to change
//! them notes the new ones.

/// One trace and capacity.
pub(crate) struct Cells {
    pub(crate) file: &'static str,
    pub(crate) capacity: usize,
    pub(crate) hits: &'static [(&'static str, f64)],
}

const fn cells(file: &'static str, capacity: usize, hits: &'static [(&'static str, f64)]) -> Cells {
    Cells {
        file,
        capacity,
        hits,
    }
}

const OLTP: &str = "arc-OLTP.lis.zst";
const P3: &str = "arc-P3.lis.zst";
const W106: &str = "cloudphysics-w106.u32be.xz";
const CLOUD: &str = "cloudPhysicsIO.oracleGeneral.bin";
const SPRITE: &str = "lirs-sprite.txt.gz";
const LOOP: &str = "lirs-loop.txt.gz";

/// LIRS is left out at P3 32768 and CLOUD 4000: there the stack grows long, the other simulator bounds it, and has 16.10 and 24.67
/// where the unbounded stack of the paper has 15.67 and 21.62.
///
/// All cells, those of one trace together.
#[rustfmt::skip]
pub(crate) const CELLS: &[Cells] = &[
    cells(OLTP, 1000, &[("adaptive", 41.21), ("cacheus", 38.33), ("lirs", 34.82), ("lru", 32.83), ("2q", 40.52), ("arc", 38.93), ("s3-fifo", 40.86), ("clock2q+", 40.20), ("sieve", 32.56)]),
    cells(OLTP, 5000, &[("adaptive", 56.13), ("cacheus", 53.85), ("lirs", 52.80), ("lru", 53.65), ("2q", 55.73), ("arc", 55.25), ("s3-fifo", 55.88), ("clock2q+", 55.08), ("sieve", 51.89)]),
    cells(OLTP, 15000, &[("adaptive", 66.70), ("cacheus", 64.38), ("lirs", 63.99), ("lru", 64.63), ("2q", 65.72), ("arc", 65.40), ("s3-fifo", 66.04), ("clock2q+", 66.22), ("sieve", 65.10)]),
    cells(P3, 32768, &[("adaptive", 18.38), ("lru", 3.57), ("2q", 13.11), ("arc", 17.11), ("s3-fifo", 16.94), ("clock2q+", 17.44), ("sieve", 10.02)]),
    cells(P3, 131_072, &[("adaptive", 49.45), ("lirs", 51.20), ("lru", 44.79), ("2q", 46.21), ("arc", 50.63), ("s3-fifo", 49.20), ("clock2q+", 49.79), ("sieve", 43.98)]),
    cells(W106, 1000, &[("adaptive", 77.69), ("lirs", 71.15), ("lru", 74.51), ("2q", 75.91), ("arc", 74.14), ("s3-fifo", 76.60), ("clock2q+", 77.85), ("sieve", 74.15)]),
    cells(W106, 10000, &[("adaptive", 86.64), ("lirs", 84.60), ("lru", 83.81), ("2q", 86.17), ("arc", 84.16), ("s3-fifo", 85.69), ("clock2q+", 86.02), ("sieve", 85.25)]),
    cells(W106, 33764, &[("adaptive", 93.22), ("lirs", 92.54), ("lru", 92.55), ("2q", 92.82), ("arc", 92.55), ("s3-fifo", 92.63), ("clock2q+", 93.13), ("sieve", 92.48)]),
    cells(CLOUD, 4000, &[("adaptive", 25.83), ("cacheus", 22.37), ("lru", 18.49), ("2q", 21.47), ("arc", 20.82), ("s3-fifo", 23.03), ("clock2q+", 23.81), ("sieve", 19.61)]),
    cells(CLOUD, 10000, &[("adaptive", 36.79), ("cacheus", 32.49), ("lirs", 35.92), ("lru", 30.24), ("2q", 30.77), ("arc", 30.26), ("s3-fifo", 33.07), ("clock2q+", 37.23), ("sieve", 28.82)]),
    cells(SPRITE, 400, &[("adaptive", 70.97), ("cacheus", 71.40), ("lirs", 69.63), ("lru", 70.77), ("2q", 70.88), ("arc", 70.03), ("s3-fifo", 71.42), ("clock2q+", 70.39), ("sieve", 64.43)]),
    // clock2q+: 75.94 there; it depends on how the half of a small FIFO of 90 is rounded.
    cells(LOOP, 900, &[("adaptive", 87.90), ("cacheus", 77.83), ("lirs", 87.95), ("lru", 0.0), ("2q", 79.77), ("arc", 0.0), ("s3-fifo", 78.60), ("sieve", 0.0)]),
];
