//! What lies at an address of code: function and offset as far as the loader knows them, module and offset always.

use core::ffi::CStr;
use core::fmt::{self, Write};

use super::stacks::Frames;

/// One line per frame: `function+0x12 (file+0x1234)`. `addr2line -e FILE 0x1234` names the line of the source.
pub(super) fn write(frames: &Frames, out: &mut dyn Write) -> fmt::Result {
    for &ip in frames.as_slice() {
        line(ip, out)?;
    }
    Ok(())
}

fn line(ip: usize, out: &mut dyn Write) -> fmt::Result {
    // A return address may lie behind the end of its function; the call does not.
    let call = ip.wrapping_sub(1);
    // SAFETY: all zeroes is a value; the loader fills it, and what it points to stays while the module is loaded.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    let found = unsafe { libc::dladdr(call as *const _, &raw mut info) } != 0;
    write!(out, "    ")?;
    if !found || info.dli_fname.is_null() {
        return writeln!(out, "{call:#x}");
    }
    if !info.dli_sname.is_null() {
        // SAFETY: a name of the loader's.
        let name = unsafe { CStr::from_ptr(info.dli_sname) };
        text(name, out)?;
        write!(out, "+{:#x} (", call - info.dli_saddr as usize)?;
    } else {
        write!(out, "(")?;
    }
    // SAFETY: as above.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    text(file, out)?;
    writeln!(out, "+{:#x})", call - info.dli_fbase as usize)
}

/// A name, of which only what is text.
fn text(name: &CStr, out: &mut dyn Write) -> fmt::Result {
    for chunk in name.to_bytes().utf8_chunks() {
        out.write_str(chunk.valid())?;
        if !chunk.invalid().is_empty() {
            out.write_char('?')?;
        }
    }
    Ok(())
}

/// The range of code and data of the shared library that this is in; nothing when it is the program itself, whose
/// frames are of interest.
pub(super) fn own_module() -> (usize, usize) {
    struct Find {
        inside: usize,
        range: (usize, usize),
    }
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        find: *mut core::ffi::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader's description of a module, and what `own_module` passed.
        let (info, find) = unsafe { (&*info, &mut *find.cast::<Find>()) };
        // SAFETY: the loader says how many headers there are.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let (mut low, mut high) = (usize::MAX, 0);
        for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
            let from = (info.dlpi_addr + header.p_vaddr) as usize;
            low = low.min(from);
            high = high.max(from + header.p_memsz as usize);
        }
        if !(low..high).contains(&find.inside) {
            return 0;
        }
        // SAFETY: a name of the loader's, or null. The program itself has an empty one.
        let named = !info.dlpi_name.is_null() && unsafe { *info.dlpi_name } != 0;
        if named {
            find.range = (low, high);
        }
        1
    }
    let mut find = Find {
        inside: own_module as *const () as usize,
        range: (0, 0),
    };
    // SAFETY: the function keeps to what the loader wants, and the argument lives until it returns.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut find).cast()) };
    find.range
}
