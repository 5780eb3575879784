//! Deferred calls: tasks that run depth first, in the order in which they were pushed.

use super::fifo::Fifo;
use crate::sim::id::{ChannelId, LunId, PlaneId, Ppn, RequestId, TransactionId};

/// The units of a request that are left to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The request.
    pub request: RequestId,
    /// The next unit to read.
    pub next: u32,
    /// The unit behind the last one.
    pub end: u32,
    /// A read of flash that is not queued yet and may take more units, or `NONE`.
    pub open: TransactionId,
}

/// A deferred call of a mapping scheme to itself. The scheme gives the numbers their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Operations that wait.
    pub line: Fifo,
    /// A number.
    pub number: u32,
    /// The step that is to be taken.
    pub step: u8,
}

/// A deferred call. Each variant is named by its action.
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
    /// Look for units of a request in the buffer, from the first number up to the second.
    Search(RequestId, u32, u32),
    /// Admit writes, and write units out of the buffer.
    Admit,
    /// Continue to admit writes. With a number, writing out has begun; the number is the room that the buffer had then.
    AdmitRest(Option<u32>),
    /// Write out this many of the picked units of the buffer.
    WriteOut(u32),
    /// Queue further program units whose `controller.fill_timeout` has passed.
    Fill,
    /// Deallocate the units of a request, starting with this one.
    Trim(RequestId, u32),
    /// Queue the program units that a request waits for.
    ReleaseUrgent,
    /// End a host read whose data are in the buffer.
    EndRead(TransactionId),
    /// Resume host operations whose map entries have arrived. The second part is a read of flash that is not queued yet
    /// and may take more units, or `NONE`.
    Translate(Fifo, TransactionId),
    /// Take the next step of a translation page that has been programmed at a place.
    MapProgrammed(u32, Ppn),
    /// Give the host the space that garbage collection of a plane leaves to it.
    GiveWay(PlaneId),
    /// Take the chosen step of garbage collection in a plane.
    Step(PlaneId),
    /// Queue the writes of a failed program again.
    QueueAgain(TransactionId),
    /// Take the next step of garbage collection in a plane, if one is due.
    Clean(PlaneId),
    /// Take the next steps of garbage collection in the planes of an idle die, from the first number up to the second.
    CollectIdle(u32, u32),
    /// Take the next step of garbage collection in the translation pages of a plane, if one is due.
    CollectMap(PlaneId),
    /// Grant a channel to the units that wait for it, until one of them occupies it.
    Grant(ChannelId),
    /// End the operation of the next plane of a command for several planes.
    Finish(TransactionId),
    /// End the next write of a program command at a place, or the command itself.
    FinishWrites(Ppn, TransactionId),
    /// Update the map entry of a write that has been programmed.
    MapWritten(TransactionId),
    /// Free the controller slot of a write that has been programmed, and complete its part of the request.
    Land(TransactionId),
}

/// A stack of tasks.
///
/// The tasks that a task pushes run before those that were pushed together with it, in the order in which they were
/// pushed. That is the order of nested calls.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    stack: Vec<Task>,
    /// The tasks below this height are in the reverse of the order in which they run. Those above were pushed since the
    /// last task was taken, and are in the order in which they run.
    ordered: usize,
    /// True if LUNs start nothing before [`Tasks::release`].
    holds: bool,
    /// The LUNs that were held back, in the order in which they start.
    held: Vec<LunId>,
}

impl Tasks {
    /// Returns `true` if there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty() && self.held.is_empty()
    }

    /// Adds a task behind those that were pushed since the last one was taken.
    #[inline]
    pub fn push(&mut self, task: Task) {
        self.stack.push(task);
    }

    /// Returns `true` if LUNs are held back.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Holds LUNs back from now on, until [`Tasks::release`].
    #[inline]
    pub fn hold(&mut self) {
        self.holds = true;
    }

    /// Holds LUNs back from now on, unless they are. Returns `true` if the caller has to release them.
    #[inline]
    pub fn hold_unless_held(&mut self) -> bool {
        !std::mem::replace(&mut self.holds, true)
    }

    /// Holds back a LUN.
    #[inline]
    pub fn hold_back(&mut self, lun: LunId) {
        debug_assert!(self.holds);
        self.held.push(lun);
    }

    /// Pushes a [`Task::Start`] for each LUN that was held back, in their order.
    #[inline]
    pub fn release(&mut self) {
        self.holds = false;
        // Mostly there are none.
        if !self.held.is_empty() {
            self.push_held();
        }
    }

    #[inline(never)]
    fn push_held(&mut self) {
        self.stack.extend(self.held.drain(..).map(Task::Start));
    }

    /// Swaps the last two LUNs that were held back: a deliberate defect, to show that tests find it.
    #[doc(hidden)]
    pub fn swap_held(&mut self) {
        if let [.., before, last] = self.held.as_mut_slice() {
            std::mem::swap(before, last);
        }
    }

    /// Returns `true` if tasks were pushed since the last one was taken.
    #[inline]
    pub fn any_new(&self) -> bool {
        self.stack.len() > self.ordered
    }

    /// Takes the next task if it starts a LUN. Reads the fields of the task one by one, because copying a value whose
    /// fields were just written one by one is slow.
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

    /// Takes the next task.
    #[inline]
    pub fn pop(&mut self) -> Option<Task> {
        if self.stack.len() > self.ordered + 1 {
            self.order();
        }
        let task = self.stack.pop();
        self.ordered = self.stack.len();
        task
    }

    /// Reverses the tasks that were pushed since the last one was taken.
    #[inline(never)]
    fn order(&mut self) {
        self.stack[self.ordered..].reverse();
        self.ordered = self.stack.len();
    }
}

const _: () = assert!(size_of::<Task>() == 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    /// Task `number` sets off `children[number]`.
    fn nested(children: &[Vec<u32>], number: u32, order: &mut Vec<u32>) {
        order.push(number);
        children[number as usize].iter().for_each(|&child| nested(children, child, order));
    }

    /// The same with tasks. Every third one pushes its rest behind its first half, like a caller that depends on what
    /// its first half sets off.
    fn deferred(children: &[Vec<u32>], tasks: &mut Tasks, order: &mut Vec<u32>) {
        while let Some(task) = tasks.pop() {
            let (number, from) = match task {
                Task::Offer(number) => (number, 0),
                Task::Trim(RequestId(number), from) => (number, from as usize),
                _ => unreachable!("only these are pushed"),
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
            // A random tree: each task is set off by an earlier one.
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
