//! The classes of resources that are counted apart, found by name without a lock.
//!
//! Classes are added and never removed, up to a limit. What comes after that is counted together, as `other`, so that
//! names that a program makes up cannot fill the memory, nor that of a metrics server.

use super::class::Class;
use crate::os::sync::{Mutex, lock};
use std::sync::OnceLock;

/// Most classes besides `other`.
pub(super) const MOST: usize = 256;
/// Longest name of a class, in bytes. A longer one is counted as `other`.
pub(super) const LONGEST: usize = 128;
/// The name of the class of all that have no other one.
pub(super) const OTHER: &str = "other";
/// Places in the table: twice as many as classes, so that a search is short.
const PLACES: usize = 2 * MOST;

/// Names a class of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassId(u16);

impl ClassId {
    const OTHER: ClassId = ClassId(PLACES as u16);
}

/// All classes.
pub(super) struct Classes {
    places: Box<[OnceLock<Box<Class>>]>,
    /// How many there are. Only a thread that adds one takes it.
    count: Mutex<usize>,
    other: Class,
}

impl Classes {
    pub(super) fn new() -> Classes {
        Classes {
            places: (0..PLACES).map(|_| OnceLock::new()).collect(),
            count: Mutex::new(0),
            other: Class::new(OTHER),
        }
    }

    /// The class of this name, which is added if there is room.
    pub(super) fn find(&self, name: &str) -> ClassId {
        if name.len() > LONGEST || name == OTHER {
            return ClassId::OTHER;
        }
        let mut place = hash(name) % PLACES;
        for _ in 0..PLACES {
            let class = match self.places[place].get() {
                Some(class) => class,
                None => match self.add(place, name) {
                    Some(class) => class,
                    None => return ClassId::OTHER,
                },
            };
            if class.name() == name {
                return ClassId(place as u16);
            }
            place = (place + 1) % PLACES;
        }
        ClassId::OTHER
    }

    /// Adds a class at an empty place, and gives the one that is there now: another thread may have been first. None
    /// when there are as many as there may be.
    fn add(&self, place: usize, name: &str) -> Option<&Class> {
        let mut count = lock(&self.count);
        let place = &self.places[place];
        if place.get().is_none() {
            if *count == MOST {
                return None;
            }
            *count += 1;
        }
        Some(place.get_or_init(|| Box::new(Class::new(name))))
    }

    pub(super) fn get(&self, id: ClassId) -> &Class {
        self.places.get(usize::from(id.0)).and_then(OnceLock::get).map_or(&self.other, Box::as_ref)
    }

    /// All classes in which anything may have been counted, `other` last.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        let other = Some((ClassId::OTHER, &self.other)).filter(|(_, other)| other.is_used());
        let id = |place: usize| ClassId(place as u16);
        let known = self.places.iter().enumerate();
        known.filter_map(move |(place, class)| Some((id(place), class.get()?.as_ref()))).chain(other)
    }
}

/// FNV-1a.
fn hash(name: &str) -> usize {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // The high bits are the better ones.
    (hash ^ (hash >> 32)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_class_and_what_does_not_fit_is_other() {
        let classes = Classes::new();
        let ids: Vec<ClassId> = (0..MOST).map(|number| classes.find(&number.to_string())).collect();
        assert!(ids.iter().all(|&id| id != ClassId::OTHER));
        for (number, &id) in ids.iter().enumerate() {
            assert_eq!((classes.find(&number.to_string()), classes.get(id).name()), (id, number.to_string().as_str()));
        }
        assert_eq!(classes.find("one more"), ClassId::OTHER);
        assert_eq!((classes.find(&"x".repeat(LONGEST + 1)), classes.find(OTHER)), (ClassId::OTHER, ClassId::OTHER));
        assert_eq!(classes.get(ClassId::OTHER).name(), OTHER);
        assert_eq!(classes.iter().count(), MOST, "nothing was counted as other");
    }

    #[test]
    fn threads_that_add_the_same_names_agree() {
        let classes = Classes::new();
        let found: Vec<Vec<ClassId>> = std::thread::scope(|scope| {
            let find = || (0..MOST).map(|number| classes.find(&format!("{number}"))).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(find)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|ids| ids == &found[0]));
        assert_eq!(classes.iter().count(), MOST);
    }
}
