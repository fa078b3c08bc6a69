//! The classes of locks that are counted apart, found by name without a lock.
//!
//! Classes are added and never removed, up to a limit. What exceeds it is counted together, as
//! `other`, so that names that a program makes up cannot fill the memory, nor the memory of a
//! metrics server.

use super::class::Class;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::OnceLock;

/// Most classes, not counting `other`.
const MOST: usize = 256;
/// Longest name of a class, in bytes. A longer one is counted as `other`.
const LONGEST: usize = 128;
/// The name of the class of all that have no other one.
pub(super) const OTHER: &str = "other";

/// The index of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassId(u16);

impl ClassId {
    const OTHER: ClassId = ClassId(MOST as u16);
}

/// All classes. A class is at the index of its hash, or at the first free one behind it.
pub(super) struct Classes {
    known: Box<[OnceLock<Box<Class>>]>,
    other: Class,
}

impl Classes {
    pub(super) fn new() -> Classes {
        Classes {
            known: (0..MOST).map(|_| OnceLock::new()).collect(),
            other: Class::new(OTHER),
        }
    }

    /// The class of this name, which is added if there is room.
    pub(super) fn find(&self, name: &str) -> ClassId {
        if name.len() > LONGEST || name == OTHER {
            return ClassId::OTHER;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name) as usize;
        // Another thread may add a class there first.
        let is_it = |index: &usize| {
            self.known[*index]
                .get_or_init(|| Box::new(Class::new(name)))
                .name()
                == name
        };
        let found = (0..MOST)
            .map(|step| hash.wrapping_add(step) % MOST)
            .find(is_it);
        found.map_or(ClassId::OTHER, |index| ClassId(index as u16))
    }

    pub(super) fn get(&self, id: ClassId) -> &Class {
        self.known
            .get(usize::from(id.0))
            .and_then(OnceLock::get)
            .map_or(&self.other, Box::as_ref)
    }

    /// All classes in which anything may have been counted, `other` last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Class> {
        let other = Some(&self.other).filter(|other| other.is_used());
        self.known
            .iter()
            .filter_map(OnceLock::get)
            .map(Box::as_ref)
            .chain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_class_and_what_does_not_fit_is_other() {
        let classes = Classes::new();
        let ids: Vec<ClassId> = (0..MOST)
            .map(|number| classes.find(&number.to_string()))
            .collect();
        assert!(ids.iter().all(|&id| id != ClassId::OTHER));
        for (number, &id) in ids.iter().enumerate() {
            assert_eq!(
                (classes.find(&number.to_string()), classes.get(id).name()),
                (id, number.to_string().as_str())
            );
        }
        assert_eq!(classes.find("one more"), ClassId::OTHER);
        assert_eq!(
            (classes.find(&"x".repeat(LONGEST + 1)), classes.find(OTHER)),
            (ClassId::OTHER, ClassId::OTHER)
        );
        assert_eq!(classes.get(ClassId::OTHER).name(), OTHER);
        assert_eq!(classes.iter().count(), MOST, "nothing was counted as other");
    }

    #[test]
    fn threads_that_add_the_same_names_agree() {
        let classes = Classes::new();
        let found: Vec<Vec<ClassId>> = std::thread::scope(|scope| {
            let find = || {
                (0..MOST)
                    .map(|number| classes.find(&format!("{number}")))
                    .collect()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(find)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(found.iter().all(|ids| ids == &found[0]));
        assert_eq!(classes.iter().count(), MOST);
    }
}
