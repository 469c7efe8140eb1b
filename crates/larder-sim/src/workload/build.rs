//! A compilation beside a search through a large tree: the test by which Daniel Phillips judged use-once.

use super::super::{Kind, Record, block_of};
use super::clients::interleave;
use super::draw::Draw;
use super::zipf::Zipf;

/// The shape of a build and of the search beside it.
///
/// ```
/// use larder_sim::workload::BuildShape;
/// assert_eq!(BuildShape::default().grep_pages, 40_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildShape {
    /// Seed of all random draws.
    pub seed: u64,
    /// Compilations.
    pub units: u32,
    /// Headers that there are, and those that a compilation includes; popular ones in most.
    pub headers: u32,
    /// Headers of one compilation.
    pub includes: u32,
    /// Pages of the compiler and its libraries, all read for each compilation.
    pub compiler_pages: u64,
    /// Pages of the tree that is searched meanwhile, once, file by file; 0 for no search.
    pub grep_pages: u64,
}

impl Default for BuildShape {
    fn default() -> Self {
        Self {
            seed: 1,
            units: 400,
            headers: 1_500,
            includes: 60,
            compiler_pages: 700,
            grep_pages: 40_000,
        }
    }
}

const COMPILER: u32 = 0;
const HEADERS: u32 = 1;
const SOURCES: u32 = 1 << 18;
const OBJECTS: u32 = 1 << 19;
const TREE: u32 = 1 << 20;
/// Pages of one file of the tree.
const TREE_FILE: u64 = 5;

/// Records of a build (tenant 0) and of the search (tenant 1), interleaved at random until one ends, then the rest. Headers have 1
/// to 4 pages, sources 2 to 9, objects 3 to 10; the linker reads every object at the end.
///
/// ```
/// use larder_sim::workload::{BuildShape, build_like};
/// let shape = BuildShape { units: 3, grep_pages: 100, ..BuildShape::default() };
/// let searched = build_like(&shape).filter(|record| record.tenant == 1).count();
/// assert_eq!(searched, 100);
/// ```
pub fn build_like(shape: &BuildShape) -> impl Iterator<Item = Record> + Send + use<> {
    let build: Box<dyn Iterator<Item = Record> + Send> = Box::new(build(*shape));
    let grep: Box<dyn Iterator<Item = Record> + Send> = Box::new(grep(*shape));
    interleave(vec![build, grep], shape.seed)
}

fn pages(kind: Kind, file: u32, pages: u64, request: u32) -> impl Iterator<Item = Record> + Send {
    (0..pages).filter_map(move |page| {
        Some(Record {
            block: block_of(file, page)?,
            request: request.wrapping_add(page as u32),
            bytes: 4096,
            file,
            kind,
            ..Record::default()
        })
    })
}

/// The fixed size of a file.
fn size(file: u32, from: u64, to: u64) -> u64 {
    from + Draw::new(u64::from(file), 9).below(to - from + 1)
}

fn build(shape: BuildShape) -> impl Iterator<Item = Record> + Send {
    let mut draw = Draw::new(shape.seed, 5);
    let law = Zipf::new(u64::from(shape.headers), 0.8);
    let mut request = 0_u32;
    let unit = move |unit: u32| {
        let mut records = Vec::new();
        let mut add = |kind, file, count| {
            records.extend(pages(kind, file, count, request));
            request = request.wrapping_add(count as u32);
        };
        add(Kind::Read, COMPILER, shape.compiler_pages);
        add(Kind::Read, SOURCES + unit, size(SOURCES + unit, 2, 9));
        for _ in 0..shape.includes {
            let header = HEADERS + law.draw(&mut draw) as u32;
            add(Kind::Read, header, size(header, 1, 4));
        }
        add(Kind::Write, OBJECTS + unit, size(OBJECTS + unit, 3, 10));
        records
    };
    let link = (0..shape.units).flat_map(|unit| {
        let file = OBJECTS + unit;
        pages(
            Kind::Read,
            file,
            size(file, 3, 10),
            u32::MAX / 2 + unit * 16,
        )
    });
    (0..shape.units).flat_map(unit).chain(link)
}

fn grep(shape: BuildShape) -> impl Iterator<Item = Record> + Send {
    (0..shape.grep_pages).filter_map(|at| {
        let file = TREE + (at / TREE_FILE) as u32;
        Some(Record {
            block: block_of(file, at % TREE_FILE)?,
            request: at as u32,
            bytes: 4096,
            file,
            ..Record::default()
        })
    })
}
