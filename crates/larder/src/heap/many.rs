//! Many objects of a heap at once.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{AllocError, Heap};

impl Heap {
    /// Fills `out` with objects of `layout`.
    ///
    /// # Errors
    /// See [`AllocError`]; then none was taken.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let mut objects = [std::ptr::NonNull::dangling(); 100];
    /// heap.alloc_many(layout, &mut objects)?;
    /// // SAFETY: taken above with this layout, each put once.
    /// unsafe { heap.dealloc_many(&objects, layout) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_many(&self, layout: Layout, out: &mut [NonNull<u8>]) -> Result<(), AllocError> {
        for i in 0..out.len() {
            match self.alloc(layout) {
                Ok(object) => out[i] = object,
                Err(error) => {
                    // SAFETY: taken above.
                    unsafe { self.dealloc_many(&out[..i], layout) };
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives many objects back.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), for each.
    pub unsafe fn dealloc_many(&self, objects: &[NonNull<u8>], layout: Layout) {
        for &object in objects {
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(object, layout) };
        }
    }
}
