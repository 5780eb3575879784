//! Deferred calls: tasks that run depth first, in the order in which they were pushed.

use super::fifo::Fifo;
use crate::sim::id::{ChannelId, LunId, PlaneId, Ppn, RequestId, TransactionId};

/// Units of a request that remain to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The request.
    pub request: RequestId,
    /// Index of the next unit to read.
    pub next: u32,
    /// Index after the last unit.
    pub end: u32,
    /// Flash read that is not queued yet and can take more units, or `NONE`.
    pub open: TransactionId,
}

/// Deferred call of a mapping scheme to itself. The scheme defines the meaning of the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Queue of waiting operations.
    pub line: Fifo,
    /// Argument of the call.
    pub number: u32,
    /// Number of the step to run.
    pub step: u8,
}

/// Deferred call. Each variant is named after its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Start the next operation of a LUN.
    Start(LunId),
    /// Run a step of the mapping scheme.
    Scheme(Call),
    /// Start the next operations of the LUNs that were held back.
    Release,
    /// Offer the writes of a pool to its idle planes.
    Offer(u32),
    /// Read further units of a request.
    Read(Reading),
    /// Read further units ahead of a stream. The second field is a flash read that is not queued yet and can take more
    /// units, or `NONE`.
    ReadAhead(u32, TransactionId),
    /// Search the buffer for units of a request, from the first index up to the second, exclusive.
    Search(RequestId, u32, u32),
    /// Admit writes, and write back units of the buffer.
    Admit,
    /// Continue to admit writes. `Some` if write-back has started: the room that the buffer had then.
    AdmitRest(Option<u32>),
    /// Write back this many of the picked units of the buffer.
    WriteOut(u32),
    /// Queue further program units whose `controller.fill_timeout` has passed.
    Fill,
    /// Deallocate the units of a request, starting at this index.
    Trim(RequestId, u32),
    /// Queue the program units that a request waits for.
    ReleaseUrgent,
    /// Receive a read that has waited for earlier writes.
    Receive(RequestId),
    /// Complete a host read whose data are in the buffer.
    EndRead(TransactionId),
    /// Resume host operations whose map entries were loaded. The second field is a flash read that is not queued yet
    /// and can take more units, or `NONE`.
    Translate(Fifo, TransactionId),
    /// Take the next step for a translation page that was programmed at this physical address.
    MapProgrammed(u32, Ppn),
    /// Let host writes use the space that garbage collection of a plane leaves to them.
    ResumeHost(PlaneId),
    /// Take the chosen step of garbage collection in a plane.
    Step(PlaneId),
    /// Have a write of the device itself wait for an address of the mapping scheme.
    Place(TransactionId),
    /// Queue the writes of a failed program again.
    QueueAgain(TransactionId),
    /// Take the next step of garbage collection in a plane, if one is due.
    Clean(PlaneId),
    /// Take the next steps of garbage collection in the planes of an idle die, from the first plane up to the second,
    /// exclusive.
    CollectIdle(u32, u32),
    /// Take the next step of garbage collection in the translation pages of a plane, if one is due.
    CollectMap(PlaneId),
    /// Grant a channel to the execution units that wait for it, until one of them occupies it.
    Grant(ChannelId),
    /// Make the device read-only if it cannot do without the worn-out blocks of a plane.
    CheckSpare(PlaneId),
    /// Complete the operation of the next plane of a multi-plane command.
    Finish(TransactionId),
    /// Complete the next write of the program command at this physical address, or the command itself.
    FinishWrites(Ppn, TransactionId),
    /// Update the map entry of a write that has been programmed.
    MapWritten(TransactionId),
    /// Free the write slot of a write that has been programmed, and complete its part of the request.
    CompleteProgrammed(TransactionId),
}

/// Stack of tasks.
///
/// The tasks that a task pushes run before those that were pushed together with it, in the order in which they were
/// pushed. This is the order of nested calls.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    stack: Vec<Task>,
    /// Tasks below this height are in reverse execution order. Tasks above it were pushed since the last task was
    /// taken, and are in execution order.
    ordered: usize,
    /// True if LUNs must not start operations before [`Tasks::release`].
    holds: bool,
    /// LUNs that were held back, in the order in which they will start.
    held: Vec<LunId>,
    /// Deliberate defect, and how often tasks were put in order.
    defect: Option<(Defect, u32)>,
}

/// Test hook: deliberate defect that tests must find.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Loses one of several tasks, now and then.
    Lose,
    /// Swaps the last two of several tasks.
    Swap,
}

impl Tasks {
    /// Creates an empty stack with a deliberate defect, if there is one.
    pub fn new(defect: Option<Defect>) -> Tasks {
        Tasks { defect: defect.map(|defect| (defect, 0)), ..Tasks::default() }
    }

    /// Returns `true` if there are no tasks and no LUN is held back.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty() && self.held.is_empty()
    }

    /// Pushes a task, which runs after those that were pushed since the last task was taken.
    #[inline]
    pub fn push(&mut self, task: Task) {
        self.stack.push(task);
    }

    /// Returns `true` if LUNs are to be held back.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Starts to hold back LUNs, until [`Tasks::release`]. Returns `true` if they were not held back before, and the
    /// caller has to release them.
    #[inline]
    pub fn hold_unless_held(&mut self) -> bool {
        !std::mem::replace(&mut self.holds, true)
    }

    /// Adds a LUN to those that are held back.
    #[inline]
    pub fn hold_back(&mut self, lun: LunId) {
        debug_assert!(self.holds);
        self.held.push(lun);
    }

    /// Pushes a [`Task::Start`] for each LUN that was held back, in their order.
    #[inline]
    pub fn release(&mut self) {
        self.holds = false;
        // There are rarely any.
        if !self.held.is_empty() {
            self.push_held();
        }
    }

    #[inline(never)]
    fn push_held(&mut self) {
        self.stack.extend(self.held.drain(..).map(Task::Start));
    }

    /// Returns `true` if tasks were pushed since the last task was taken.
    #[inline]
    pub fn any_new(&self) -> bool {
        self.stack.len() > self.ordered
    }

    /// Removes the next task if it starts a LUN, and returns the LUN. Matches the task in place, because copying a
    /// value whose fields were just written one by one is slow.
    #[inline]
    pub fn pop_start(&mut self) -> Option<LunId> {
        if self.stack.len() > self.ordered + 1 {
            self.order();
        }
        let Some(&Task::Start(lun)) = self.stack.last() else { return None };
        self.ordered = self.stack.len() - 1;
        self.stack.truncate(self.ordered);
        Some(lun)
    }

    /// Removes and returns the next task.
    #[inline]
    pub fn pop(&mut self) -> Option<Task> {
        if self.stack.len() > self.ordered + 1 {
            self.order();
        }
        let task = self.stack.pop();
        self.ordered = self.stack.len();
        task
    }

    /// Reverses the tasks that were pushed since the last task was taken.
    #[inline(never)]
    fn order(&mut self) {
        self.stack[self.ordered..].reverse();
        if self.defect.is_some() {
            self.damage();
        }
        self.ordered = self.stack.len();
    }

    /// Applies the deliberate defect to the new tasks, at least two, which are in reverse order.
    #[cold]
    fn damage(&mut self) {
        let Some((defect, times)) = &mut self.defect else { return };
        *times += 1;
        match defect {
            Defect::Lose if times.is_multiple_of(16) => _ = self.stack.remove(self.ordered),
            Defect::Lose => {}
            Defect::Swap => self.stack.swap(self.ordered, self.ordered + 1),
        }
    }
}

const _: () = assert!(size_of::<Task>() == 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    /// Visits task `number`, which calls `children[number]`, and records the order.
    fn nested(children: &[Vec<u32>], number: u32, order: &mut Vec<u32>) {
        order.push(number);
        children[number as usize].iter().for_each(|&child| nested(children, child, order));
    }

    /// Visits the same tree with tasks. Every third task pushes a task for its second half after its first half, like a
    /// handler whose later parts depend on the earlier ones.
    fn deferred(children: &[Vec<u32>], tasks: &mut Tasks, order: &mut Vec<u32>) {
        while let Some(task) = tasks.pop() {
            let (number, from) = match task {
                Task::Offer(number) => (number, 0),
                Task::Trim(RequestId(number), from) => (number, from as usize),
                _ => unreachable!("only `Offer` and `Trim` are pushed"),
            };
            let children = &children[number as usize];
            if from == 0 {
                order.push(number);
            }
            let half = children.len().div_ceil(2);
            let splits = number.is_multiple_of(3) && from == 0 && half > 0;
            let now = if splits { &children[..half] } else { &children[from..] };
            now.iter().for_each(|&child| tasks.push(Task::Offer(child)));
            if splits {
                tasks.push(Task::Trim(RequestId(number), half as u32));
            }
        }
    }

    #[test]
    fn tasks_run_in_the_order_of_nested_calls() {
        let mut rng = Rng::new(1, "tasks");
        for _ in 0..200 {
            // A random tree: each task is called by an earlier one.
            let mut children = vec![Vec::new(); 60];
            (1..60).for_each(|child| children[rng.below(child.into()) as usize].push(child));
            let (mut expected, mut order, mut tasks) = (Vec::new(), Vec::new(), Tasks::default());
            nested(&children, 0, &mut expected);
            tasks.push(Task::Offer(0));
            assert!(tasks.any_new());
            deferred(&children, &mut tasks, &mut order);
            assert_eq!(order, expected);
            assert!(tasks.is_empty() && !tasks.any_new());
        }
    }
}
