//! Loans: parts of the simulator that a mapping scheme in Python has during a call.
//!
//! Python objects cannot borrow. So the objects that a scheme gets hold a [`Loans`], which has the address of a part
//! during the call, and none afterwards.
#![allow(unsafe_code)] // Borrows by address.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use floatgate_core::mapping::{Context, Ftl, Recovering};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::errors::text_of;

/// Part that is lent.
#[derive(Clone, Copy)]
enum Lent {
    Nothing,
    Context(*mut (dyn Context + 'static)),
    Recovery(*mut (dyn Recovering + 'static)),
    Ftl(*const Ftl),
}

// SAFETY: the addresses are used only while the thread that lends them waits for the end of the call, and by one thread
// at a time, which holds the lock. The parts themselves may be sent between threads, like the device that has them.
unsafe impl Send for Lent {}

/// Parts that are lent to a scheme now.
pub struct Loans(Mutex<Lent>);

/// Takes the loan back at the end of a call.
struct End<'a>(&'a Loans);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Waits for a call of another thread.
        *self.0.lock() = Lent::Nothing;
    }
}

impl Loans {
    /// Creates an object without a loan.
    pub fn new() -> Loans {
        Loans(Mutex::new(Lent::Nothing))
    }

    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend<T>(&self, lent: Lent, call: impl FnOnce() -> T) -> T {
        *self.lock() = lent;
        let _end = End(self);
        call()
    }

    /// Lends a context for the duration of a call.
    pub fn lend_context<T>(&self, cx: &mut (dyn Context + '_), call: impl FnOnce() -> T) -> T {
        // SAFETY: only the lifetime changes, and `lend` takes the address back before the borrow ends.
        let cx = unsafe { std::mem::transmute::<&mut (dyn Context + '_), &mut (dyn Context + 'static)>(cx) };
        self.lend(Lent::Context(cx), call)
    }

    /// Lends a recovery for the duration of a call.
    pub fn lend_recovery<T>(&self, found: &mut (dyn Recovering + '_), call: impl FnOnce() -> T) -> T {
        // SAFETY: as in `lend_context`.
        let found =
            unsafe { std::mem::transmute::<&mut (dyn Recovering + '_), &mut (dyn Recovering + 'static)>(found) };
        self.lend(Lent::Recovery(found), call)
    }

    /// Lends the FTL for the duration of a call that does not change it.
    pub fn lend_ftl<T>(&self, ftl: &Ftl, call: impl FnOnce() -> T) -> T {
        self.lend(Lent::Ftl(ftl), call)
    }

    /// Uses what is lent. A panic of the simulator, which the scheme has caused, becomes an exception.
    fn with<T>(&self, using: impl FnOnce(Lent) -> PyResult<T>) -> PyResult<T> {
        let lent = match self.0.try_lock() {
            Ok(lent) => lent,
            Err(TryLockError::Poisoned(lent)) => lent.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(PyRuntimeError::new_err("the context of a mapping scheme is in use by another thread"));
            }
        };
        catch_unwind(AssertUnwindSafe(|| using(*lent))).unwrap_or_else(|panic| {
            let text = text_of(panic.as_ref());
            Err(PyRuntimeError::new_err(format!("the call breaks a rule of the simulator: {text}")))
        })
    }

    /// Uses the context.
    pub fn context<T>(&self, using: impl FnOnce(&mut dyn Context) -> PyResult<T>) -> PyResult<T> {
        self.with(|lent| match lent {
            // SAFETY: the address was lent and not taken back, and the lock ensures that there is no other reference.
            Lent::Context(cx) => using(unsafe { &mut *cx }),
            Lent::Nothing => Err(ended()),
            _ => Err(PyTypeError::new_err("this method of a mapping scheme has no context, so it can start nothing")),
        })
    }

    /// Uses the recovery.
    pub fn recovery<T>(&self, using: impl FnOnce(&mut dyn Recovering) -> PyResult<T>) -> PyResult<T> {
        self.with(|lent| match lent {
            // SAFETY: as in `context`.
            Lent::Recovery(found) => using(unsafe { &mut *found }),
            _ => Err(ended()),
        })
    }

    /// Reads the FTL.
    pub fn read<T>(&self, using: impl FnOnce(&Ftl) -> PyResult<T>) -> PyResult<T> {
        self.with(|lent| match lent {
            // SAFETY: as in `context`.
            Lent::Context(cx) => using(unsafe { &mut *cx }.ftl()),
            // SAFETY: as in `context`.
            Lent::Recovery(found) => using(unsafe { &mut *found }.ftl()),
            // SAFETY: as in `context`; the lender does not change the FTL either.
            Lent::Ftl(ftl) => using(unsafe { &*ftl }),
            Lent::Nothing => Err(ended()),
        })
    }

    /// Changes the FTL.
    pub fn change<T>(&self, using: impl FnOnce(&mut Ftl) -> PyResult<T>) -> PyResult<T> {
        self.with(|lent| match lent {
            // SAFETY: as in `context`.
            Lent::Context(cx) => using(unsafe { &mut *cx }.ftl()),
            // SAFETY: as in `context`.
            Lent::Recovery(found) => using(unsafe { &mut *found }.ftl()),
            Lent::Ftl(_) => Err(PyTypeError::new_err("this method of a mapping scheme must not change the FTL")),
            Lent::Nothing => Err(ended()),
        })
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err(
        "the context of a mapping scheme is valid only during the call that got it: do not keep it, or parts of it",
    )
}
