//! The ways to take any of several locks: the slots of a semaphore.

use super::Mutex;
use super::account::CallAccount;
use super::attempts::Attempts;
use super::call::LockCall;
use super::queueing::{self, Queued};
use super::slots::PermitSlots;
use crate::algorithm::acquire::WaitLimit;
use crate::api::guard::MutexGuard;
use crate::api::wait::Wait;
use crate::engine::local_queue::slots::TakenSlot;
use crate::events::error::Result;
use crate::events::event::GaveUpReason;

impl Mutex {
    /// Takes one of these slots, waiting as `wait` says; without it, never. The mutex is named like the semaphore, and
    /// has its settings.
    pub(crate) fn take_permit(
        &self,
        permits: &PermitSlots,
        wait: Option<&Wait>,
    ) -> Result<Option<(MutexGuard, TakenSlot)>> {
        self.client.check_process()?;
        let called_at = self.client.engine().readings();
        let mut account = CallAccount::open(&self.client, self.key().title(), called_at);
        let prepare = |limit| self.call(limit, called_at).map(|call| LockCall { permits: Some(permits), ..call });
        let result = match wait {
            None => prepare(WaitLimit::Once)
                .and_then(|call| Attempts::new(call, None, &Wait::unlimited(), &mut account).run_for_permit()),
            Some(wait) => wait.check_process().and_then(|()| {
                let call = prepare(self.wait_limit(wait, called_at))?;
                self.take_permit_in_turn(call, permits, wait, &mut account)
            }),
        };
        account.close(&result, if wait.is_some() { GaveUpReason::TimedOut } else { GaveUpReason::Held });
        result
    }

    /// Waits to be first among the threads of this client that want a permit, and then for a slot.
    fn take_permit_in_turn<'m>(
        &'m self,
        mut call: LockCall<'m>,
        permits: &'m PermitSlots,
        wait: &Wait,
        account: &mut CallAccount<'m>,
    ) -> Result<Option<(MutexGuard, TakenSlot)>> {
        let (ticket, position) = permits.slots().join(call.called_at);
        let position = permits.position(position, call.called_at.lease);
        let queued = (&ticket, position, call.called_at);
        match queueing::wait_in_queue(&mut call, queued, wait, account)? {
            Queued::Head => Attempts::new(call, Some((ticket, 0)), wait, account).run_for_permit(),
            Queued::OutOfTime(None) => Ok(None),
            Queued::OutOfTime(Some(cause)) => Err(self.client.unavailable("lock", self.resource(), cause)),
        }
    }
}
