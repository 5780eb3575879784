//! Index of objects in the order of eviction.

use std::collections::BTreeMap;

/// Choice of the object to evict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The object that was accessed longest ago.
    #[default]
    Lru,
    /// The object that was written longest ago.
    Fifo,
}

/// Objects by key, and their order of eviction.
#[derive(Clone, Debug)]
pub struct Index<T> {
    policy: Policy,
    objects: BTreeMap<u64, (u64, T)>,
    order: BTreeMap<u64, u64>,
    next: u64,
}

impl<T: Copy> Index<T> {
    /// Creates an index without objects.
    pub fn new(policy: Policy) -> Index<T> {
        Index { policy, objects: BTreeMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Returns an object.
    pub fn peek(&self, key: u64) -> Option<T> {
        self.objects.get(&key).map(|(_, object)| *object)
    }

    /// Returns an object that is accessed.
    pub fn get(&mut self, key: u64) -> Option<T> {
        let (number, object) = self.objects.get_mut(&key)?;
        if self.policy == Policy::Lru {
            self.order.remove(number);
            *number = self.next;
            self.order.insert(self.next, key);
            self.next += 1;
        }
        Some(*object)
    }

    /// Adds an object, as the last one to evict.
    pub fn insert(&mut self, key: u64, object: T) {
        self.remove(key);
        self.objects.insert(key, (self.next, object));
        self.order.insert(self.next, key);
        self.next += 1;
    }

    /// Removes an object.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let (number, object) = self.objects.remove(&key)?;
        self.order.remove(&number);
        Some(object)
    }

    /// Removes the object to evict.
    pub fn evict(&mut self) -> Option<T> {
        let (_, key) = self.order.pop_first()?;
        self.objects.remove(&key).map(|(_, object)| object)
    }
}
