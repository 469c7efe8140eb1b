//! Making an object of a heap larger or smaller.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::class::{SIZES, class_of_layout};
use super::{AllocError, Heap};

impl Heap {
    /// Makes an object larger or smaller; it may move. On error it stays as it is. To make it smaller, and not more aligned,
    /// never fails: where there is no memory to move to, or the heap's limit forbids, the object stays as large as it is, and
    /// may be given back by its new layout all the same.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), unless there is an error.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub unsafe fn realloc(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        if let Some(debug) = self.classes().debug() {
            // SAFETY: the caller's promise.
            return unsafe { self.realloc_checked(debug, object, old, new) };
        }
        let same = match (class_of_layout(old), class_of_layout(new)) {
            (Some(a), Some(b)) => a == b,
            (None, None) => {
                let has = self.classes().usable_size(object).unwrap_or(0);
                // Half of a run is enough reason to stay where it is.
                new.size() <= has && new.size() > has / 2 && new.align() <= old.align()
            }
            _ => false,
        };
        if same {
            return Ok(object);
        }
        let to = match self.alloc(new) {
            Ok(to) => to,
            Err(_) if self.may_keep(object, old, new) => return Ok(object),
            Err(error) => return Err(error),
        };
        // SAFETY: both have at least this many bytes, and one of them is new.
        unsafe {
            to.copy_from_nonoverlapping(object, old.size().min(new.size()));
            self.dealloc(object, old);
        }
        Ok(to)
    }

    /// Whether an object that no memory was found to make smaller may stay as it is.
    #[cold]
    fn may_keep(&self, object: NonNull<u8>, old: Layout, new: Layout) -> bool {
        if new.size() > old.size() || new.align() > old.align() {
            return false;
        }
        // A large one is found by its address.
        if let Some(class) = class_of_layout(new) {
            self.classes().family().outgrow();
            let had = self.classes().usable_size(object).unwrap_or(0);
            let large = self.class_at(object).is_none();
            self.account().outgrow(had, large, SIZES[class]);
        }
        true
    }
}
