//! The program and the libraries of the process, as the loader knows them at a moment.

use core::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use crate::os::{MetaSlice, OsError, System, ZeroIsValid};

/// Bytes of a build identifier that are kept: those of SHA-1.
const ID: usize = 20;
/// Modules that may come between two looks.
const MORE: usize = 16;
/// Bytes of their names.
const MORE_NAMES: usize = 4096;

/// A range of code in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Module {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where in the file it begins.
    pub(super) offset: usize,
    id: [u8; ID],
    id_len: usize,
    name: (usize, usize),
}

// SAFETY: numbers.
unsafe impl ZeroIsValid for Module {}
// SAFETY: a number.
unsafe impl ZeroIsValid for u8 {}

pub(super) struct Modules {
    modules: MetaSlice<Module>,
    names: MetaSlice<u8>,
    len: usize,
    names_len: usize,
}

impl Modules {
    /// Those of now. The loader's lock is taken, so the caller holds none.
    ///
    /// # Errors
    /// The system's refusal of memory.
    pub(super) fn now(system: &Arc<dyn System>) -> Result<Self, OsError> {
        let (mut modules, mut names) = (MORE, MORE_NAMES);
        each(&mut |info, _| {
            modules += info.headers().len();
            names += info.name().len();
        });
        let mut this = Self {
            modules: MetaSlice::new(system.clone(), modules)?,
            names: MetaSlice::new(system.clone(), names)?,
            len: 0,
            names_len: 0,
        };
        each(&mut |info, first| this.add(info, first));
        Ok(this)
    }

    fn add(&mut self, info: &Info<'_>, first: bool) {
        let id = info.build_id();
        let from = self.names_len;
        let room = &mut self.names[from..];
        self.names_len += match info.name() {
            // The program itself.
            [] if first => {
                let exe = c"/proc/self/exe".as_ptr();
                // SAFETY: a path that ends, and a buffer of this length.
                let n = unsafe { libc::readlink(exe, room.as_mut_ptr().cast(), room.len()) };
                usize::try_from(n).unwrap_or(0)
            }
            name if name.len() <= room.len() => {
                room[..name.len()].copy_from_slice(name);
                name.len()
            }
            _ => 0,
        };
        for header in info.headers() {
            if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_X == 0 {
                continue;
            }
            let Some(place) = self.modules.get_mut(self.len) else {
                return;
            };
            let start = info.base() + header.p_vaddr as usize;
            let page = start % crate::os::page_size();
            let mut module = Module {
                start: start - page,
                end: start + header.p_memsz as usize,
                offset: (header.p_offset as usize).saturating_sub(page),
                id: [0; ID],
                id_len: id.len(),
                name: (from, self.names_len),
            };
            module.id[..id.len()].copy_from_slice(id);
            *place = module;
            self.len += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[Module] {
        &self.modules[..self.len]
    }

    /// The place of the module that an address lies in.
    pub(super) fn find(&self, at: usize) -> Option<usize> {
        let has = |module: &Module| (module.start..module.end).contains(&at);
        self.as_slice().iter().position(has)
    }

    pub(super) fn name(&self, module: &Module) -> &[u8] {
        &self.names[module.name.0..module.name.1]
    }
}

impl Module {
    pub(super) fn id(&self) -> &[u8] {
        &self.id[..self.id_len]
    }
}

/// A module as the loader describes it.
struct Info<'a>(&'a libc::dl_phdr_info);

impl Info<'_> {
    fn base(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the loader says how many headers there are.
        unsafe { core::slice::from_raw_parts(self.0.dlpi_phdr, usize::from(self.0.dlpi_phnum)) }
    }

    fn name(&self) -> &[u8] {
        if self.0.dlpi_name.is_null() {
            return &[];
        }
        // SAFETY: a name of the loader's.
        unsafe { CStr::from_ptr(self.0.dlpi_name) }.to_bytes()
    }

    /// The identifier that the linker gave it; none if there is none, or it is longer than any that is known.
    fn build_id(&self) -> &[u8] {
        let load = |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_R != 0;
        for note in self.headers().iter().filter(|h| h.p_type == libc::PT_NOTE) {
            let (from, to) = (note.p_vaddr, note.p_vaddr + note.p_filesz);
            let holds = |h: &libc::Elf64_Phdr| h.p_vaddr <= from && to <= h.p_vaddr + h.p_filesz;
            if !self.headers().iter().filter(load).any(holds) {
                continue;
            }
            // SAFETY: it lies in a part of the module that is in memory and readable.
            let notes = unsafe {
                let at = (self.base() + from as usize) as *const u8;
                core::slice::from_raw_parts(at, note.p_filesz as usize)
            };
            if let Some(id) = build_id(notes) {
                return id;
            }
        }
        &[]
    }
}

/// The build identifier among notes, each of which has two lengths, a type, a name and a description.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const GNU_BUILD_ID: usize = 3;
    loop {
        let word = |i: usize| {
            let bytes = notes.get(4 * i..4 * i + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?) as usize)
        };
        let (name, description, kind) = (word(0)?, word(1)?, word(2)?);
        let body = 12 + name.next_multiple_of(4);
        if kind == GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            return notes
                .get(body..body + description)
                .filter(|id| id.len() <= ID);
        }
        notes = notes.get(body + description.next_multiple_of(4)..)?;
    }
}

/// Calls `f` for each module; true for the first one, which is the program.
fn each(f: &mut dyn FnMut(&Info<'_>, bool)) {
    struct Visit<'a> {
        f: &'a mut dyn FnMut(&Info<'_>, bool),
        first: bool,
    }
    unsafe extern "C" fn one(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of a module, and what `each` passed.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<Visit<'_>>()) };
        (visit.f)(&Info(info), visit.first);
        visit.first = false;
        0
    }
    let mut visit = Visit { f, first: true };
    // SAFETY: the function keeps to what the loader wants, and the argument lives until it returns.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut visit).cast()) };
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn this_code_lies_in_the_program() {
        let modules = Modules::now(&system()).unwrap();
        let place = modules.find(build_id as *const () as usize).unwrap();
        let module = &modules.as_slice()[place];
        let exe = std::env::current_exe().unwrap();
        assert_eq!(modules.name(module), exe.as_os_str().as_encoded_bytes());
        assert_eq!(modules.find(0), None);
        assert!(modules.as_slice().len() > 1, "the C library");
    }

    #[test]
    fn the_identifier_is_found_behind_other_notes() {
        let word = u32::to_ne_bytes;
        let other = [word(4), word(3), word(1), *b"GNU\0", *b"abc\0"].concat();
        let own = [word(4), word(4), word(3), *b"GNU\0", *b"0123"].concat();
        assert_eq!(build_id(&[&other[..], &own].concat()), Some(&b"0123"[..]));
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&own[..own.len() - 1]), None);
        assert_eq!(build_id(&[]), None);
    }
}
