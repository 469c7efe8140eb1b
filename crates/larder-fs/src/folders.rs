//! Folders that have a part of the cache for themselves: each is a tenant of the block cache, found by its path.
//!
//! By its path and not by its number in the source, so that a folder that is deleted and made anew keeps its part, and one may be
//! named before it is there.

use std::path::{Component, Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use larder_cache::{CacheError, TenantId};

use crate::error::FsError;
use crate::filesystem::FileSystem;
use crate::inode::Inode;
use crate::options::FolderBudget;
use crate::stats::FolderStats;

/// Folders that lie deeper share the cache with the others.
const DEEPEST: usize = 4096;

struct Folder {
    path: PathBuf,
    tenant: TenantId,
}

impl Folder {
    /// How many names its path has, if the file with these names, from the file upwards, lies below.
    fn has(&self, names: &[Box<[u8]>]) -> Option<usize> {
        let mut rest = names.iter().rev();
        let mut all = self.path.components();
        let below = all.all(|part| {
            rest.next()
                .is_some_and(|name| part.as_os_str().as_encoded_bytes() == &**name)
        });
        // The last name is the file's own.
        (below && rest.len() > 0).then(|| names.len() - rest.len())
    }
}

#[derive(Default)]
struct All {
    folders: Vec<Folder>,
    last: u32,
}

#[derive(Default)]
pub(crate) struct Folders(RwLock<All>);

impl FileSystem {
    /// The tenant to which a file belongs, by the name that it was found by last.
    pub(crate) fn tenant(&self, inode: &Inode) -> TenantId {
        let all = self.folders.0.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        let mut names = Vec::new();
        let mut place = match all.folders.is_empty() {
            true => None,
            false => inode.place(),
        };
        while let Some((parent, name)) = place {
            names.push(name);
            if parent == self.root.id {
                let found = all.folders.iter();
                let found = found.filter_map(|folder| Some((folder.has(&names)?, folder.tenant)));
                return found.max().map(|(_, tenant)| tenant).unwrap_or_default();
            }
            place = match self.inodes.get(parent) {
                Ok(parent) if names.len() < DEEPEST => parent.place(),
                _ => None,
            };
        }
        TenantId::default()
    }

    /// Gives a folder a part of the cache, another one, or none.
    ///
    /// # Errors
    /// [`FsError::Folder`]; [`FsError::Cache`]: a part that it cannot have, or a rule that there is not.
    pub(crate) fn set_budget(&self, budget: &FolderBudget) -> Result<(), FsError> {
        let path = below(&budget.folder)?;
        let all = self.folders.0.write();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let known = all.folders.iter().position(|folder| folder.path == path);
        let Some(bytes) = budget.bytes else {
            if let Some(at) = known {
                let tenant = all.folders.swap_remove(at).tenant;
                self.cache.unlimit_tenant(tenant)?;
                self.cache.forget_tenant(tenant);
            }
            return Ok(());
        };
        let tenant = match known {
            Some(at) => all.folders[at].tenant,
            None => TenantId(all.last + 1),
        };
        let limited = self
            .cache
            .limit_tenant(tenant, bytes, budget.rule.as_deref());
        // Where only a write failed the limit holds all the same.
        if known.is_none() && matches!(limited, Ok(()) | Err(CacheError::Write { .. })) {
            all.last += 1;
            all.folders.push(Folder { path, tenant });
        }
        Ok(limited?)
    }

    /// What each folder with a part of the cache has done with it.
    pub(crate) fn folder_stats(&self) -> Vec<FolderStats> {
        let all = self.folders.0.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        let bytes = |blocks: usize| (blocks * self.cache.block_size()) as u64;
        let stats = all.folders.iter().filter_map(|folder| {
            let (capacity, rule) = self.cache.tenant_limit(folder.tenant)?;
            let stats = self.cache.tenant_stats(folder.tenant);
            Some(FolderStats {
                folder: folder.path.clone(),
                rule: rule.to_owned(),
                hits: stats.hits,
                misses: stats.misses,
                capacity_bytes: capacity as u64,
                resident_bytes: bytes(stats.resident),
                dirty_bytes: bytes(stats.dirty),
            })
        });
        stats.collect()
    }
}

/// A path below the mountpoint, of names only.
fn below(path: &Path) -> Result<PathBuf, FsError> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let plain = names.map(|part| matches!(part, Component::Normal(_)).then_some(part));
    let plain: Option<PathBuf> = plain.collect();
    plain
        .filter(|plain| !plain.as_os_str().is_empty())
        .ok_or_else(|| FsError::Folder {
            path: path.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_from_the_mountpoint_on() {
        assert_eq!(below(Path::new("./a//b/")).unwrap(), Path::new("a/b"));
        for bad in ["", ".", "/", "/a", "..", "a/../b"] {
            assert!(below(Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_lies_below_by_whole_names() {
        let folder = Folder {
            path: "a/b".into(),
            tenant: TenantId(1),
        };
        let depth = |path: &str| {
            let names: Vec<Box<[u8]>> = path
                .rsplit('/')
                .map(|name| name.as_bytes().into())
                .collect();
            folder.has(&names)
        };
        assert_eq!((depth("a/b/c"), depth("a/b/c/d")), (Some(2), Some(2)));
        for other in ["a/b", "a/bc/d", "a", "b/a/c", "x/a/b/c"] {
            assert_eq!(depth(other), None, "{other}");
        }
    }
}
