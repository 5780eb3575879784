//! Counts of multi-plane and interleaved commands, by kind, dies and planes.

use super::array::Kind;

/// Counts of commands that make several planes or dies work together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parallel {
    /// Indexed by kind, then dies, then planes, counted from 1.
    counts: Vec<u64>,
    dies: usize,
    planes: usize,
}

/// Number of commands of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Kind of operation.
    pub kind: Kind,
    /// Number of dies of one chip that work.
    pub dies: u32,
    /// Number of planes that work, in all these dies.
    pub planes: u32,
    /// Number of commands.
    pub commands: u64,
}

impl Parallel {
    /// Creates empty counts for chips with `dies` dies of `planes` planes each. With 0 dies, no command can be counted.
    pub fn new(dies: u32, planes: u32) -> Parallel {
        let (dies, planes) = (dies as usize, dies as usize * planes as usize);
        Parallel { counts: vec![0; Kind::COUNT * dies * planes], dies, planes }
    }

    /// Counts a command.
    #[inline]
    pub fn note(&mut self, kind: Kind, dies: u32, planes: u32) {
        let index = self.index(kind, dies, planes);
        self.counts[index] += 1;
    }

    #[inline]
    fn index(&self, kind: Kind, dies: u32, planes: u32) -> usize {
        (kind as usize * self.dies + dies as usize - 1) * self.planes + planes as usize - 1
    }

    /// Adds the counts of other chips, whose numbers of dies and planes may differ.
    pub fn add(&mut self, other: &Parallel) {
        let (dies, planes) = (self.dies.max(other.dies), self.planes.max(other.planes));
        let mut sum = Parallel { counts: vec![0; Kind::COUNT * dies * planes], dies, planes };
        for Shape { kind, dies, planes, commands } in self.shapes().chain(other.shapes()) {
            let index = sum.index(kind, dies, planes);
            sum.counts[index] += commands;
        }
        *self = sum;
    }

    /// Copies `other`, without allocating memory if the sizes are unchanged.
    pub fn copy_from(&mut self, other: &Parallel) {
        self.counts.clone_from(&other.counts);
        (self.dies, self.planes) = (other.dies, other.planes);
    }

    /// Returns the counts since `earlier`.
    pub fn since(mut self, earlier: &Parallel) -> Parallel {
        self.counts.iter_mut().zip(&earlier.counts).for_each(|(now, before)| *now -= before);
        self
    }

    /// Returns the shapes that occurred with their counts, in the order of kinds.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> {
        let (dies, planes) = (self.dies.max(1), self.planes.max(1));
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(index, &commands)| Shape {
            kind: Kind::ALL[index / planes / dies],
            dies: (index / planes % dies) as u32 + 1,
            planes: (index % planes) as u32 + 1,
            commands,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_counted_separately() {
        let mut parallel = Parallel::new(2, 2);
        parallel.note(Kind::Program, 1, 2);
        parallel.note(Kind::Program, 2, 2);
        parallel.note(Kind::Program, 2, 2);
        parallel.note(Kind::Erase, 2, 4);
        let shapes: Vec<_> = parallel.shapes().map(|s| (s.kind, s.dies, s.planes, s.commands)).collect();
        assert_eq!(shapes, [(Kind::Program, 1, 2, 1), (Kind::Program, 2, 2, 2), (Kind::Erase, 2, 4, 1)]);
        let mut earlier = Parallel::default();
        earlier.copy_from(&parallel);
        parallel.note(Kind::Read, 1, 4);
        let since: Vec<_> = parallel.since(&earlier).shapes().map(|shape| shape.kind).collect();
        assert_eq!(since, [Kind::Read]);
    }
}
