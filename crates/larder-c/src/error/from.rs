//! Which status an error of the library's becomes, and which system call is behind it.

use larder::arena::ArenaError;
use larder::heap::AllocError;
use larder::objects::{Misuse, ObjectError};
use larder::os::OsError;
use larder::pages::PoolError;

use super::{Failed, Why, larder_status};
use larder_status::*;

impl Failed {
    /// What the system said, where it was the system.
    pub(super) fn system(&self) -> Option<&OsError> {
        match &self.why {
            Why::System(os) => Some(os),
            Why::Arena(ArenaError::Memory { cause, .. }) => Some(cause),
            Why::Arena(ArenaError::Source { refusal, .. }) => refusal.cause.as_ref(),
            Why::Object(error) | Why::Alloc(AllocError::Memory(error)) => of_object(error),
            _ => None,
        }
    }
}

fn of_object(error: &ObjectError) -> Option<&OsError> {
    match error {
        ObjectError::System(os) | ObjectError::Pages(PoolError::System(os)) => Some(os),
        _ => None,
    }
}

fn status_of_system(error: &OsError) -> larder_status {
    const ENOMEM: i32 = 12;
    if error.raw_os_error() == ENOMEM {
        LARDER_MEMORY
    } else {
        LARDER_SYSTEM
    }
}

fn status_of_pool(error: &PoolError) -> larder_status {
    match error {
        PoolError::System(os) => status_of_system(os),
        PoolError::Limit { .. } => LARDER_LIMIT,
        PoolError::Exhausted { .. } => LARDER_EXHAUSTED,
        PoolError::List { .. } => LARDER_MEMORY,
        PoolError::EmptyRun
        | PoolError::ClusterSize { .. }
        | PoolError::LimitBytes { .. }
        | PoolError::ReserveBytes { .. } => LARDER_ARGUMENT,
        PoolError::Settings(_) => LARDER_SETTING,
        // The enum may grow.
        _ => LARDER_SYSTEM,
    }
}

fn status_of_object(error: &ObjectError) -> larder_status {
    match error {
        ObjectError::Layout { .. } => LARDER_ARGUMENT,
        ObjectError::TooMany { .. } => LARDER_EXHAUSTED,
        ObjectError::Limit { .. } => LARDER_LIMIT,
        ObjectError::Pages(pool) => status_of_pool(pool),
        ObjectError::System(os) => status_of_system(os),
        ObjectError::Refused => LARDER_CONSTRUCTOR,
        _ => LARDER_SYSTEM,
    }
}

impl From<OsError> for Failed {
    fn from(error: OsError) -> Self {
        Self {
            status: status_of_system(&error),
            why: Why::System(error),
        }
    }
}

impl From<PoolError> for Failed {
    fn from(error: PoolError) -> Self {
        if let PoolError::System(os) = error {
            return os.into();
        }
        Self {
            status: status_of_pool(&error),
            why: Why::Pool(error),
        }
    }
}

impl From<ArenaError> for Failed {
    fn from(error: ArenaError) -> Self {
        let status = match &error {
            ArenaError::NoSpace { .. } => LARDER_EXHAUSTED,
            ArenaError::Limit { .. } => LARDER_LIMIT,
            ArenaError::Source { .. } => LARDER_SOURCE,
            ArenaError::NotAllocated { .. } => LARDER_FOREIGN,
            ArenaError::WrongSize { .. } => LARDER_SIZE,
            ArenaError::Memory { cause, .. } => status_of_system(cause),
            ArenaError::Broken { .. } => LARDER_PANIC,
            // What makes no sense whatever the arena holds.
            _ => LARDER_ARGUMENT,
        };
        Self {
            status,
            why: Why::Arena(error),
        }
    }
}

impl From<ObjectError> for Failed {
    fn from(error: ObjectError) -> Self {
        Self {
            status: status_of_object(&error),
            why: Why::Object(error),
        }
    }
}

impl From<AllocError> for Failed {
    fn from(error: AllocError) -> Self {
        let status = match &error {
            AllocError::Limit { .. } => LARDER_LIMIT,
            AllocError::Memory(error) => status_of_object(error),
            AllocError::Foreign { .. } => LARDER_FOREIGN,
            _ => LARDER_SYSTEM,
        };
        Self {
            status,
            why: Why::Alloc(error),
        }
    }
}

impl From<Misuse> for Failed {
    fn from(error: Misuse) -> Self {
        Self {
            status: LARDER_FOREIGN,
            why: Why::Misuse(error),
        }
    }
}
