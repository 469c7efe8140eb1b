//! Functions and lines of the source for addresses in modules, by their debug information and their tables of symbols.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::{Context, Location};
use gimli::{Dwarf, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

type Reader = EndianSlice<'static, RunTimeEndian>;

/// A module that was read.
struct Module {
    context: Option<Context<Reader>>,
    /// Address, size and name of its functions, by address.
    symbols: Vec<(u64, u64, String)>,
    /// Where in the file each part of the memory begins: file offset, size, address.
    segments: Vec<(u64, u64, u64)>,
}

/// The modules that were asked for. What cannot be read has no names.
#[derive(Default)]
pub(super) struct Names(HashMap<PathBuf, Option<Module>>);

impl Names {
    /// The functions that lie at a place of a file, the innermost first: those that the compiler inlined there included. Each with
    /// its line where that is known.
    pub(super) fn at(&mut self, file: &Path, offset: u64) -> Vec<String> {
        let module = self.0.entry(file.to_owned()).or_insert_with(|| read(file));
        module
            .as_ref()
            .and_then(|module| module.at(offset))
            .unwrap_or_default()
    }
}

fn read(file: &Path) -> Option<Module> {
    // Kept until this process ends, which has nothing else to do.
    let bytes: &'static [u8] = std::fs::read(file).ok()?.leak();
    let object = object::File::parse(bytes).ok()?;
    let endian = match object.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let section = |id: gimli::SectionId| {
        let data = object
            .section_by_name(id.name())
            .and_then(|s| s.data().ok());
        Ok::<_, gimli::Error>(EndianSlice::new(data.unwrap_or_default(), endian))
    };
    let dwarf = Dwarf::load(section).ok()?;
    let mut symbols: Vec<_> = object
        .symbols()
        .chain(object.dynamic_symbols())
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.address() != 0)
        .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())))
        .collect();
    symbols.sort();
    let segments = object.segments().map(|s| {
        let (offset, size) = s.file_range();
        (offset, size, s.address())
    });
    Some(Module {
        context: Context::from_dwarf(dwarf).ok(),
        symbols,
        segments: segments.collect(),
    })
}

impl Module {
    fn at(&self, offset: u64) -> Option<Vec<String>> {
        let within = |&&(from, size, _): &&(u64, u64, u64)| (from..from + size).contains(&offset);
        let &(from, _, address) = self.segments.iter().find(within)?;
        let address = address + (offset - from);
        let inlined = self.context.as_ref().and_then(|c| inlined(c, address));
        if let Some(names) = inlined.filter(|names| !names.is_empty()) {
            return Some(names);
        }
        let before = self.symbols.partition_point(|&(at, ..)| at <= address);
        let (at, size, name) = self.symbols.get(before.checked_sub(1)?)?;
        let inside = *size == 0 || address < at + size;
        inside.then(|| vec![demangled(name)])
    }
}

fn inlined(context: &Context<Reader>, address: u64) -> Option<Vec<String>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
        let name = name.map_or_else(|| "?".to_owned(), |name| demangled(&name));
        names.push(match frame.location {
            Some(Location {
                file: Some(file),
                line: Some(line),
                ..
            }) => format!("{name} at {file}:{line}"),
            _ => name,
        });
    }
    Some(names)
}

/// The name that a Rust compiler was given; names of other languages as they are.
fn demangled(name: &str) -> String {
    format!("{:#}", addr2line::demangle_auto(name.into(), None))
}
