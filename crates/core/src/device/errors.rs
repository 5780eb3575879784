//! Read errors: decodes the data of each read from flash, and repeats reads with too many wrong bits. `nand/errors.rs`
//! decides. See docs/model/errors.md.

use super::{Device, Timer};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::nand::array::Kind as Operation;
use crate::nand::errors::{Decoded, PageRead};
use crate::sim::id::{PlaneId, TransactionId};
use crate::work::{Kind, Task, Transaction, chain};

impl Device {
    /// Handles the end of an operation on a device with errors or rebuilds. Returns `true` for a read, which ends when
    /// its data have been decoded, or rebuilt.
    #[inline(never)]
    pub(super) fn takes_read(&mut self, id: TransactionId) -> bool {
        if self.errors.is_some() {
            return self.starts_decoding(id);
        }
        let is_read = Operation::from(self.transactions[id].kind) == Operation::Read;
        if is_read {
            self.end_page_read(id);
        }
        is_read
    }

    /// Notes the end of an operation in the history of its block. Returns `true` for a read, whose data are decoded
    /// now.
    fn starts_decoding(&mut self, id: TransactionId) -> bool {
        let Device { errors, transactions, ftl, array, .. } = self;
        let Some(errors) = errors else { return false };
        let ended = &transactions[id];
        match Operation::from(ended.kind) {
            Operation::Read => {
                let spans = ftl.shape().pages_per_unit > 1 || ended.kind == Kind::MapRead;
                errors.note_read(ftl.blocks.block_of(ended.ppn), if spans { ended.units.into() } else { 1 });
                Timer::Decoding.set_if(array, errors.start(id, self.now));
                return true;
            }
            Operation::Program | Operation::CopyBack => chain(transactions, id)
                .for_each(|id| errors.note_program(ftl.blocks.block_of(transactions[id].ppn), self.now)),
            Operation::Erase => chain(transactions, id).for_each(|id| errors.note_erase(transactions[id].block())),
        }
        false
    }

    /// Ends the decoding of a read: repeats the read if it had too many wrong bits, and ends it otherwise.
    pub(super) fn end_decoding(&mut self) {
        let Some((id, next)) = self.errors.as_mut().and_then(|errors| errors.end()) else { return };
        Timer::Decoding.set_if(&mut self.array, next);
        let read = self.transactions[id];
        let page = page_of(&self.ftl, &self.config, &read);
        let decoded = self.errors.as_ref().zip(page).map(|(errors, page)| errors.decoded(page, self.now));
        match decoded.unwrap_or(Decoded::Corrected) {
            Decoded::Again => return self.read_again(id),
            Decoded::Corrected => self.ftl.counters.errors.corrected[read.retries() as usize] += 1,
            Decoded::Uncorrectable => {
                self.ftl.counters.errors.uncorrectable += 1;
                if read.kind != Kind::MapRead {
                    self.ftl.fail_read(read.ppn);
                }
            }
        }
        self.observe(move |observers, view| observers.decoded(view, id, None));
        let plane = self.queue_refresh(id);
        self.end_page_read(id);
        if let Some(plane) = plane {
            self.tasks.push(Task::Clean(plane));
        }
    }

    /// Has the block of a read wait for its refresh, if the read needed enough retries and new data would need fewer.
    /// Returns the plane of the block.
    fn queue_refresh(&mut self, id: TransactionId) -> Option<PlaneId> {
        let Device { errors: Some(errors), ftl, transactions, config, .. } = self else { return None };
        let retries = ftl.refresh.as_ref()?.retries;
        let page = page_of(ftl, config, &transactions[id]).filter(|page| page.retries >= retries)?;
        let helps = errors.is_renewable(page, retries);
        (helps && ftl.refresh.as_mut()?.queue(&ftl.blocks, page.block)).then(|| ftl.blocks.plane_of(page.block))
    }

    /// Queues a read again, before others of its class.
    fn read_again(&mut self, id: TransactionId) {
        let plane = self.transactions[id].plane;
        let lun = self.array.lun_of(plane);
        self.transactions[id].repeat();
        self.ftl.counters.errors.retries += 1;
        self.dispatch.put_first(&mut self.transactions, lun, id);
        self.observe(move |observers, view| observers.decoded(view, id, Some(lun)));
        self.dispatch.note_queued(&mut self.array, id, self.now);
        self.tasks.push(Task::Start(lun));
    }
}

/// Returns the page that a read has read, or `None` in SLC mode, in which blocks have no errors.
fn page_of(ftl: &Ftl, config: &DeviceConfig, read: &Transaction) -> Option<PageRead> {
    if ftl.cells_of(read.ppn).is_some() {
        return None;
    }
    let block = ftl.blocks.block_of(read.ppn);
    let spans = ftl.shape().pages_per_unit > 1 || read.kind == Kind::MapRead;
    let of_unit = if spans { config.page_bytes() } else { config.unit_bytes() };
    Some(PageRead {
        block,
        page: ftl.shape().units_per_page.divide(read.ppn.0),
        erases: ftl.blocks.block(block).erases,
        bytes: u64::from(read.units) * of_unit,
        retries: read.retries(),
    })
}
