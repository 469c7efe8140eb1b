//! Routines that zero a page, and the choice among them by measurement.
//!
//! Which store loop is fastest differs between machines and between warm and cold pages (`rep stosb` pays a start-up
//! per page, wide stores may lower the clock), so the routine is measured once per process. The loops are written in
//! assembler because the compiler turns any loop of zero stores back into a call of `memset`.

use core::fmt;
use core::str::FromStr;
use std::time::Instant;

use super::decided::Decided;
use super::page_size;

/// A way to zero a page.
///
/// ```
/// use larder::os::zero::Zeroing;
/// assert_eq!("avx2".parse(), Ok(Zeroing::Avx2));
/// for zeroing in Zeroing::ALL.into_iter().filter(|zeroing| zeroing.is_available()) {
///     println!("this CPU can {zeroing}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Zeroing {
    /// The compiler's and libc's `memset`.
    Portable,
    /// 16-byte stores.
    Sse2,
    /// 32-byte stores.
    Avx2,
    /// 64-byte stores.
    Avx512,
    /// `rep stosb`.
    Stosb,
}

impl Zeroing {
    /// Every routine, portable first.
    pub const ALL: [Self; 5] = [
        Self::Portable,
        Self::Sse2,
        Self::Avx2,
        Self::Avx512,
        Self::Stosb,
    ];

    /// Its name in settings: `portable`, `sse2`, `avx2`, `avx512` or `stosb`.
    ///
    /// ```
    /// # use larder::os::zero::Zeroing;
    /// assert_eq!(Zeroing::Stosb.name(), "stosb");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Stosb => "stosb",
        }
    }

    /// Whether this CPU can run it.
    ///
    /// ```
    /// # use larder::os::zero::Zeroing;
    /// assert!(Zeroing::Portable.is_available());
    /// ```
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return match self {
            Self::Portable | Self::Sse2 => true,
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            Self::Stosb => std::arch::is_x86_feature_detected!("ermsb"),
        };
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        return self == Self::Portable;
    }

    /// The routine itself; the portable one where this CPU cannot run it.
    ///
    /// ```
    /// # use larder::os::zero::Zeroing;
    /// let mut page = larder::pages::PagePool::new()?.get()?;
    /// page.fill(7);
    /// Zeroing::Sse2.routine().zero_slice(&mut page);
    /// assert!(page.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn routine(self) -> Routine {
        if !self.is_available() {
            return Routine(portable);
        }
        match self {
            Self::Portable => Routine(portable),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Sse2 => Routine(x86::sse2),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => Routine(x86::avx2),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => Routine(x86::avx512),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Stosb => Routine(x86::stosb),
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            _ => Routine(portable),
        }
    }

    /// The fastest available routine for a warm page on this machine: measured at the first call (about a
    /// millisecond), remembered for the life of the process.
    ///
    /// ```
    /// let best = larder::os::zero::Zeroing::fastest();
    /// assert!(best.is_available());
    /// assert_eq!(best, larder::os::zero::Zeroing::fastest());
    /// ```
    #[must_use]
    pub fn fastest() -> Self {
        static FASTEST: Decided<Zeroing> = Decided::new();
        FASTEST.get_or_decide(measure)
    }
}

impl fmt::Display for Zeroing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no routine.
///
/// ```
/// # use larder::os::zero::Zeroing;
/// let error = "avx".parse::<Zeroing>().unwrap_err();
/// assert!(error.to_string().contains("choose portable, sse2"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a zeroing routine; choose portable, sse2, avx2, avx512 or stosb")]
pub struct UnknownZeroing(String);

impl FromStr for Zeroing {
    type Err = UnknownZeroing;
    fn from_str(s: &str) -> Result<Self, UnknownZeroing> {
        Self::ALL
            .into_iter()
            .find(|z| z.name() == s)
            .ok_or_else(|| UnknownZeroing(s.to_owned()))
    }
}

/// A routine that was checked to run on this CPU.
///
/// [`Zeroing::routine`] shows one at work.
#[derive(Debug, Clone, Copy)]
pub struct Routine(unsafe fn(*mut u8, usize));

impl Routine {
    /// Zeroes `len` bytes at `at`.
    ///
    /// ```
    /// # use larder::os::zero::Zeroing;
    /// let page = larder::pages::PagePool::new()?.get_raw()?;
    /// // SAFETY: a page of ours.
    /// unsafe {
    ///     page.write(7);
    ///     Zeroing::fastest().routine().zero(page.as_ptr(), larder::os::page_size());
    ///     assert_eq!(page.read(), 0);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The bytes are writable, `at` is aligned to 64 and `len` is a multiple of 256 and not 0.
    #[inline]
    pub unsafe fn zero(self, at: *mut u8, len: usize) {
        debug_assert!((at as usize).is_multiple_of(64) && len.is_multiple_of(256));
        // SAFETY: the caller's promise; `Routine` is only made for routines that this CPU can run.
        unsafe { (self.0)(at, len) };
    }

    /// Zeroes a slice of whole, aligned blocks with a safe signature.
    ///
    /// [`Zeroing::routine`] shows it.
    ///
    /// # Panics
    /// When the slice is not aligned to 64 bytes or its length is no multiple of 256.
    pub fn zero_slice(self, bytes: &mut [u8]) {
        // The loops store first and count afterwards.
        if bytes.is_empty() {
            return;
        }
        assert!((bytes.as_ptr() as usize).is_multiple_of(64) && bytes.len().is_multiple_of(256));
        // SAFETY: checked above; the slice is writable.
        unsafe { self.zero(bytes.as_mut_ptr(), bytes.len()) };
    }
}

unsafe fn portable(at: *mut u8, len: usize) {
    // SAFETY: the contract of `Routine::zero`.
    unsafe { at.write_bytes(0, len) };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use core::arch::asm;

    /// One loop for the three widths: four aligned stores per turn.
    macro_rules! store_loop {
        ($name:ident, $zero:literal, $store:literal, $reg:literal, $width:literal, $end:literal) => {
            pub(super) unsafe fn $name(at: *mut u8, len: usize) {
                // SAFETY: the contract of `Routine::zero`; `Zeroing::routine` checked that the CPU has the stores.
                unsafe {
                    asm!(
                        $zero,
                        "2:",
                        concat!($store, " [{at}], ", $reg),
                        concat!($store, " [{at} + ", $width, "], ", $reg),
                        concat!($store, " [{at} + 2*", $width, "], ", $reg),
                        concat!($store, " [{at} + 3*", $width, "], ", $reg),
                        concat!("add {at}, 4*", $width),
                        concat!("sub {len}, 4*", $width),
                        "jnz 2b",
                        $end,
                        at = inout(reg) at => _,
                        len = inout(reg) len => _,
                        // `vzeroupper` clears the upper halves of all of them.
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                        options(nostack),
                    );
                }
            }
        };
    }
    store_loop!(sse2, "xorps xmm0, xmm0", "movaps", "xmm0", "16", "");
    store_loop!(
        avx2,
        "vpxor xmm0, xmm0, xmm0",
        "vmovdqa",
        "ymm0",
        "32",
        "vzeroupper"
    );
    store_loop!(
        avx512,
        "vpxor xmm0, xmm0, xmm0",
        "vmovdqa64",
        "zmm0",
        "64",
        "vzeroupper"
    );

    pub(super) unsafe fn stosb(at: *mut u8, len: usize) {
        // SAFETY: the contract of `Routine::zero`; the direction flag is clear by the ABI.
        unsafe {
            asm!("rep stosb", inout("rdi") at => _, inout("rcx") len => _, in("al") 0_u8, options(nostack, preserves_flags));
        }
    }
}

/// Times every available routine over a working set of a few warm pages, in turns, and takes the smallest minimum:
/// the minimum is the run that nothing disturbed.
fn measure() -> Zeroing {
    const PAGES: usize = 16;
    const TURNS: usize = 24;
    let page = page_size();
    let Ok(layout) = std::alloc::Layout::from_size_align(PAGES * page, page) else {
        return Zeroing::Portable;
    };
    // SAFETY: the layout has a size.
    let buffer = unsafe { std::alloc::alloc_zeroed(layout) };
    if buffer.is_null() {
        return Zeroing::Portable;
    }
    let mut best = [u128::MAX; Zeroing::ALL.len()];
    for _ in 0..TURNS {
        for (zeroing, best) in Zeroing::ALL.into_iter().zip(&mut best) {
            if !zeroing.is_available() {
                continue;
            }
            let routine = zeroing.routine();
            // Dirty pages, since some CPUs drop stores of zero over zero.
            // SAFETY: the buffer has this many bytes.
            unsafe { buffer.write_bytes(0xA5, PAGES * page) };
            let start = Instant::now();
            for p in 0..PAGES {
                // SAFETY: page p lies in the buffer and is aligned.
                unsafe { routine.zero(buffer.add(p * page), page) };
            }
            *best = start.elapsed().as_nanos().min(*best);
        }
    }
    // SAFETY: allocated above with this layout.
    unsafe { std::alloc::dealloc(buffer, layout) };
    let winner = best
        .iter()
        .enumerate()
        .min_by_key(|(_, t)| **t)
        .map_or(0, |(i, _)| i);
    Zeroing::ALL[winner]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Aligned([u8; 4 * 4096]);

    #[test]
    fn every_routine_zeroes_its_range_and_nothing_else() {
        for zeroing in Zeroing::ALL.into_iter().filter(|z| z.is_available()) {
            zeroing.routine().zero_slice(&mut []);
            zeroing
                .routine()
                .zero_slice(&mut Box::new(Aligned([1; 4 * 4096])).0[..0]);
            let mut pages = Box::new(Aligned([0xFF; 4 * 4096]));
            zeroing.routine().zero_slice(&mut pages.0[4096..3 * 4096]);
            assert!(
                pages.0[4096..3 * 4096].iter().all(|&b| b == 0),
                "{zeroing} left bytes"
            );
            assert!(
                pages.0[..4096]
                    .iter()
                    .chain(&pages.0[3 * 4096..])
                    .all(|&b| b == 0xFF),
                "{zeroing} went too far"
            );
        }
    }

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for zeroing in Zeroing::ALL {
            assert_eq!(zeroing.name().parse(), Ok(zeroing));
        }
        assert!(
            "fast"
                .parse::<Zeroing>()
                .unwrap_err()
                .to_string()
                .contains("'fast'")
        );
    }

    #[test]
    #[should_panic(expected = "is_multiple_of")]
    fn an_odd_slice_is_refused() {
        let mut page = Box::new(Aligned([1; 4 * 4096]));
        Zeroing::Portable.routine().zero_slice(&mut page.0[..100]);
    }
}
