//! Start of a flash log: emits events for the contents that a device has by then.

use super::Durability;
use super::flash::{Keep, Outbox, Reported};
use super::log::FlashLog;
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::sim::id::BlockId;

/// Starts the flash log of a device, which must be idle and have no dirty data (`is_idle`). `reported` gets the
/// events of each block, which the log does not keep then.
pub fn start_log(
    device: &DeviceConfig,
    (ftl, is_idle): (&mut Ftl, bool),
    mut durability: Option<&mut Durability>,
    keep: Keep,
    mut reported: Option<Reported<'_>>,
) -> Result<FlashLog, String> {
    if let Some(why) = device.mapping.scheme.needs(device).no_power_loss {
        return Err(why.to_owned());
    }
    if !is_idle {
        return Err("cannot make the device durable: it is not idle; advance it until it is".to_owned());
    }
    if !ftl.keep_for_recovery() {
        return Err("cannot make the device durable: after failures, no block is left for a recovery; raise \
                    capacity.spare"
            .to_owned());
    }
    let (mut log, mut outbox) = (FlashLog::new(device, keep), Outbox::default());
    if let Some(checkpoint) = durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
        // The accounts of the checkpoint so far have no sequence numbers.
        checkpoint.forget();
    }
    let blocks = || (0..device.total_blocks()).map(BlockId);
    let mut written: Vec<u32> = blocks().map(|block| ftl.blocks.written_of(block)).collect();
    ftl.scheme().blocks(ftl, &mut |kept| written[kept.block.index()] = kept.units);
    let journal = durability.and_then(|durability| durability.journal.as_ref());
    for (block, written) in blocks().zip(written) {
        log.emit_block(ftl, block, written, |lpn| journal.and_then(|journal| journal.page(lpn)));
        if let Some(reported) = &mut reported {
            log.take(&mut outbox);
            outbox.events.iter().for_each(|event| reported(event, &outbox.own));
            outbox.clear();
        }
    }
    Ok(log)
}
