//! The simple patterns.

use super::super::Record;
use super::Shape;
use super::draw::Draw;
use super::zipf::Zipf;

fn read(block: u64, request: u64) -> Record {
    Record {
        block,
        request: request as u32,
        bytes: 4096,
        ..Record::default()
    }
}

/// Spreads ranks over block numbers, so that neighbours in rank are none on the disk: an odd factor modulo the number.
fn spread(rank: u64, blocks: u64) -> u64 {
    let mut factor = (blocks / 2 + blocks / 9) | 1;
    while gcd(factor, blocks) != 1 {
        factor += 2;
    }
    ((u128::from(rank) * u128::from(factor)) % u128::from(blocks)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Blocks by Zipf's law, each a request of its own.
pub(super) fn zipf(shape: &Shape) -> impl Iterator<Item = Record> + Send + use<> {
    let blocks = shape.blocks.max(1);
    let (law, mut draw) = (Zipf::new(blocks, shape.skew), Draw::new(shape.seed, 1));
    (0..shape.records).map(move |at| read(spread(law.draw(&mut draw), blocks), at))
}

/// Every record a block that was never seen.
pub(super) fn scan(shape: &Shape) -> impl Iterator<Item = Record> + Send + use<> {
    (0..shape.records).map(|at| read(at, at))
}

/// All blocks in turn, again and again. A rule that evicts what was used longest ago has no hit while one block does not fit.
pub(super) fn cycle(shape: &Shape) -> impl Iterator<Item = Record> + Send + use<> {
    let blocks = shape.blocks.max(1);
    (0..shape.records).map(move |at| read(at % blocks, at))
}

/// Zipf's law; after every 9 records of it for each block of a twentieth of all, a scan of a tenth of the blocks, always new.
pub(super) fn mixed(shape: &Shape) -> impl Iterator<Item = Record> + Send + use<> {
    let blocks = shape.blocks.max(1);
    let (law, mut draw) = (Zipf::new(blocks, shape.skew), Draw::new(shape.seed, 2));
    let (calm, storm) = (9 * (blocks / 20).max(1), (blocks / 10).max(1));
    let mut fresh = blocks;
    (0..shape.records).map(move |at| {
        if at % (calm + storm) < calm {
            read(spread(law.draw(&mut draw), blocks), at)
        } else {
            fresh += 1;
            read(fresh - 1, at)
        }
    })
}

/// Zipf's law, each block touched [`touches`](Shape::touches) times by requests that follow one another: a program that reads
/// a page in small pieces.
///
/// ```
/// use larder_sim::workload::{Shape, correlated};
/// let shape = Shape { touches: 3, records: 9, ..Shape::default() };
/// let blocks: Vec<u64> = correlated(&shape).map(|record| record.block).collect();
/// assert!(blocks.chunks(3).all(|three| three == [three[0]; 3]));
/// ```
pub fn correlated(shape: &Shape) -> impl Iterator<Item = Record> + Send + use<> {
    let blocks = shape.blocks.max(1);
    let touches = u64::from(shape.touches.max(1));
    let (law, mut draw) = (Zipf::new(blocks, shape.skew), Draw::new(shape.seed, 3));
    let mut block = 0;
    (0..shape.records).map(move |at| {
        if at % touches == 0 {
            block = spread(law.draw(&mut draw), blocks);
        }
        Record {
            bytes: (4096 / touches) as u32,
            ..read(block, at)
        }
    })
}
