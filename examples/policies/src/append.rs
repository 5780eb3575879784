//! Toy mapping scheme `append`: each plane appends host writes to one block. When free blocks are few, it copies the
//! valid units of the block that has the fewest, and erases that block.

use std::collections::VecDeque;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Role;
use floatgate_core::has_whole_map;
use floatgate_core::mapping::*;
use floatgate_core::policies::{Class, Purpose};
use floatgate_core::results::ProgramCause;
use floatgate_core::saved_state::{Reader, StateError, Writer};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};

#[derive(Clone, Debug, Default)]
struct Plane {
    /// Block that is filled, and the number of its units that are programmed or bound.
    open: Option<BlockId>,
    next: u32,
    /// Block that is being emptied.
    victim: Option<BlockId>,
    gather: Gather,
    /// True while a program, or a read for it, is in flight.
    busy: bool,
    pending: VecDeque<TransactionId>,
}

/// State of the mapping scheme.
#[derive(Clone, Debug)]
pub struct Append {
    planes: Vec<Plane>,
    units: u32,
    group: u32,
}

impl Append {
    /// Creates the scheme of an empty device.
    pub fn new(device: &DeviceConfig) -> Append {
        let planes = vec![Plane::default(); device.total_planes() as usize];
        Append { planes, units: device.data_units_per_block(), group: device.units_per_program() }
    }

    /// Takes the next step of a plane: towards the copies of a victim, or towards the next host write.
    fn go_on(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let Append { planes, units, group } = self;
        let state = &mut planes[plane.index()];
        if state.busy {
            return;
        }
        if state.open.is_none() || state.next == *units {
            if cx.ftl().blocks.free_blocks(plane, Role::Data) == 0 {
                return; // An erase continues.
            }
            (state.open, state.next) = (Some(cx.ftl().blocks.open_logical(plane)), 0);
        }
        while let Some(victim) = state.victim.take().or_else(|| choose_victim(cx.ftl(), plane, state.open)) {
            let blocks = &cx.ftl().blocks;
            let all = blocks.first_unit(victim).0..blocks.first_unit(victim).0 + *units;
            let valid: Vec<Ppn> = all.map(Ppn).filter(|&ppn| blocks.is_valid(ppn)).take(*group as usize).collect();
            if valid.is_empty() {
                give_up(cx, victim, Purpose::Merge);
                continue;
            }
            state.victim = Some(victim);
            valid.into_iter().for_each(|ppn| state.gather.add(cx, (plane.0, Purpose::Merge), ppn));
            state.busy = !state.gather.is_ready(cx);
            return;
        }
        if let Some(id) = state.pending.pop_front() {
            state.busy = true;
            cx.enqueue(id);
        }
    }
}

/// Returns the block of a plane with the fewest valid units, if too few blocks are free or await their erase.
fn choose_victim(ftl: &Ftl, plane: PlaneId, open: Option<BlockId>) -> Option<BlockId> {
    let is_here = |block: &BlockId| ftl.blocks.plane_of(*block) == plane && Some(*block) != open;
    let coming = ftl.blocks.awaiting_erase().filter(is_here).count() as u32;
    if ftl.blocks.free_blocks(plane, Role::Data) + coming >= ftl.shape().soft {
        return None;
    }
    ftl.blocks.logical().filter(is_here).min_by_key(|&block| ftl.blocks.block(block).valid)
}

impl<C: Context + ?Sized> Mapping<C> for Append {
    has_whole_map!();

    fn changed(&mut self, _: &mut C, _: Lpn, _: Change) {}

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        let plane = PlaneId(cx.ops()[id].lpn.0 % self.planes.len() as u32);
        cx.ops()[id].plane = plane;
        self.planes[plane.index()].pending.push_back(id);
        self.go_on(cx, plane);
    }

    fn target(&self, _: &Ftl, of: Program) -> Target {
        let (Program::Write(Lpn(lpn)) | Program::Copies(lpn)) = of;
        Target { plane: Some(PlaneId(lpn % self.planes.len() as u32)), place: Place::Unknown }
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let Transaction { kind, plane, .. } = cx.ops()[id];
        let Plane { open, next, gather, pending, .. } = &mut self.planes[plane.index()];
        let ppn = Ppn(cx.ftl().blocks.first_unit((*open)?).0 + *next);
        (ppn.0..ppn.0 + self.group).for_each(|unit| cx.ftl().map.set_owner(Ppn(unit), PADDING));
        *next += self.group;
        if kind == Kind::MergeWrite {
            gather.bind_from(cx, ppn);
            cx.ftl().note_program(ProgramCause::Merge, gather.copies().len() as u32);
            return Some(Bound { class: Class::Gc, plane, ppn });
        }
        let more = pending.drain(..pending.len().min(self.group as usize - 1));
        let writes: Vec<TransactionId> = [id].into_iter().chain(more).collect();
        for (index, &write) in writes.iter().enumerate() {
            cx.bind(write, Ppn(ppn.0 + index as u32));
            cx.ops()[write].next = writes.get(index + 1).copied().unwrap_or(TransactionId::NONE);
        }
        cx.ftl().note_program(ProgramCause::Host, writes.len() as u32);
        Some(Bound { class: Class::HostProgram, plane, ppn })
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        let plane = match end {
            Ended::CopyRead(plane) => {
                if self.planes[plane as usize].gather.read_ended() {
                    cx.queue(Transaction::copying(Kind::MergeWrite, PlaneId(plane), plane, Purpose::Merge));
                }
                return true;
            }
            Ended::Writes(_, start) | Ended::Copies(_, start) => {
                let blocks = &cx.ftl().blocks;
                let plane = blocks.plane_of(blocks.block_of(start));
                self.planes[plane.index()].gather.end(cx);
                self.planes[plane.index()].busy = false;
                cx.program_ended(start);
                plane
            }
            Ended::Erase(plane) => plane,
            _ => return true,
        };
        self.go_on(cx, plane);
        true
    }

    fn step(&mut self, _: &mut C, _: Step) {}

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        keep_found(found, |_, _| None).map(drop)
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Busy("the scheme `append` is not saved".to_owned()))
    }

    fn load(&mut self, _: &mut Ftl, _: &mut Reader, _: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }

    fn recount(&self, _: &Ftl) -> Result<(), String> {
        Ok(())
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        for block in ftl.blocks.logical() {
            let open = self.planes.iter().find(|plane| plane.open == Some(block));
            let units = open.map_or(self.units, |plane| plane.next);
            found(KeptBlock { block, units, is_filled: units == self.units, kind: 0 });
        }
    }

    fn report(&self, _: &Ftl) -> SchemeReport {
        SchemeReport::default()
    }
}
