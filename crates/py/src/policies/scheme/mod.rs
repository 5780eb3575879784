//! Mapping schemes in Python.

mod context;
mod ftl;
mod gather;
mod loans;
mod operations;
mod values;

use std::fmt;
use std::sync::{Arc, OnceLock};

use floatgate_core::mapping::{
    Bound, Change, Context as Device, Ended, ExternalMapping, Ftl as CoreFtl, InHand, KeptBlock, LookUp, Mapping,
    Place, Program, Recovering as Recovery, SchemeReport, Step, Target,
};
use floatgate_core::policies::{Cause, Outside};
use floatgate_core::saved_state::{Reader, StateError, Writer};
use floatgate_core::sim::id::{Lpn, PlaneId, TransactionId};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use super::call::python;
use loans::Loans;
pub use values::Shape;

/// Adds the classes for mapping schemes to the extension module.
pub fn fill(module: &pyo3::Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PADDING", floatgate_core::mapping::PADDING)?;
    module.add_class::<context::Context>()?;
    module.add_class::<context::Tasks>()?;
    module.add_class::<ftl::Ftl>()?;
    module.add_class::<ftl::PageMap>()?;
    module.add_class::<ftl::Space>()?;
    module.add_class::<gather::Gather>()?;
    module.add_class::<gather::Recovering>()?;
    module.add_class::<operations::Transaction>()?;
    module.add_class::<operations::Transactions>()?;
    module.add_class::<values::Block>()?;
    module.add_class::<values::BlockState>()?;
    module.add_class::<values::Bound>()?;
    module.add_class::<values::Call>()?;
    module.add_class::<values::Change>()?;
    module.add_class::<values::Copy>()?;
    module.add_class::<values::Ended>()?;
    module.add_class::<values::FoundBlock>()?;
    module.add_class::<values::FoundMerge>()?;
    module.add_class::<values::InHand>()?;
    module.add_class::<values::KeptBlock>()?;
    module.add_class::<values::Kind>()?;
    module.add_class::<values::Location>()?;
    module.add_class::<values::LookUp>()?;
    module.add_class::<values::Place>()?;
    module.add_class::<values::Program>()?;
    module.add_class::<values::ProgramCause>()?;
    module.add_class::<values::Purpose>()?;
    module.add_class::<values::Role>()?;
    module.add_class::<values::SchemeReport>()?;
    module.add_class::<values::Shape>()?;
    module.add_class::<values::Step>()?;
    module.add_class::<values::Target>()?;
    module.add_class::<values::WaitCause>()
}

/// Methods of a scheme, bound to its object.
struct Methods {
    look_up: Py<PyAny>,
    changed: Py<PyAny>,
    place: Py<PyAny>,
    target: Py<PyAny>,
    bind: Py<PyAny>,
    ended: Py<PyAny>,
    step: Py<PyAny>,
    make_room: Py<PyAny>,
}

/// Mapping scheme in Python, which the simulator calls.
struct Scheme {
    policy: Py<PyAny>,
    methods: Methods,
    loans: Arc<Loans>,
    cx: Py<context::Context>,
    ftl: Py<ftl::Ftl>,
    found: Py<gather::Recovering>,
    /// First error of the scheme.
    error: OnceLock<Cause>,
}

impl Scheme {
    fn new(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Scheme> {
        let loans = Arc::new(Loans::new());
        let ftl = ftl::Ftl::new(py, &loans)?;
        let cx = context::Context::new(py, &loans, &ftl)?;
        let found = Py::new(py, gather::Recovering::new(&loans, ftl.clone_ref(py)))?;
        let method = |name| policy.getattr(py, name);
        let methods = Methods {
            look_up: method("look_up")?,
            changed: method("changed")?,
            place: method("place")?,
            target: method("target")?,
            bind: method("bind")?,
            ended: method("ended")?,
            step: method("step")?,
            make_room: method("make_room")?,
        };
        Ok(Scheme { policy, methods, loans, cx, ftl, found, error: OnceLock::new() })
    }

    /// Stores the error of a call, and returns a default.
    fn keep<T: Default>(&self, result: Result<T, Cause>) -> T {
        result.unwrap_or_else(|cause| {
            self.error.get_or_init(|| cause);
            T::default()
        })
    }

    /// Calls Python with a context.
    fn call<T: Default>(
        &self,
        cx: &mut (dyn Device + '_),
        call: impl FnOnce(Python<'_>, &Py<context::Context>) -> PyResult<T>,
    ) -> T {
        self.keep(self.loans.lend_context(cx, || python(|py| call(py, &self.cx))))
    }

    /// Calls Python with the FTL, which does not change.
    fn look<T>(&self, ftl: &CoreFtl, call: impl FnOnce(Python<'_>, &Py<ftl::Ftl>) -> PyResult<T>) -> Result<T, Cause> {
        self.loans.lend_ftl(ftl, || python(|py| call(py, &self.ftl)))
    }
}

/// Returns the result of a method, which has to be `what`.
fn returned<T>(py: Python<'_>, method: &str, what: &str, result: &Py<PyAny>) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    result.extract(py).map_err(|_| {
        let text = result.bind(py).repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!("{method} must return {what}, not {text}"))
    })
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a scheme in Python")
    }
}

impl<C: Device + ?Sized> Mapping<C> for Scheme {
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
        self.call(cx.as_dyn(), |py, cx| {
            let has = self.methods.look_up.call1(py, (cx, lpn.0, values::LookUp::from(what)))?;
            returned(py, "look_up", "True or False", &has)
        })
    }

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        self.call(cx.as_dyn(), |py, cx| {
            self.methods.changed.call1(py, (cx, lpn.0, values::Change::from(change))).map(|_| ())
        });
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        self.call(cx.as_dyn(), |py, cx| self.methods.place.call1(py, (cx, id.0)).map(|_| ()));
    }

    fn target(&self, ftl: &CoreFtl, of: Program) -> Target {
        let target = self.look(ftl, |py, view| {
            let found = self.methods.target.call1(py, (view, values::Program::from(of)))?;
            let target: values::Target = returned(py, "target", "a Target", &found)?;
            target.plane.map_or(Ok(()), |plane| ftl::plane_at(ftl, plane).map(|_| ()))?;
            Ok(Some(Target::from(target)))
        });
        self.keep(target).unwrap_or(Target { plane: Some(PlaneId(0)), place: Place::Unknown })
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let bound: Option<values::Bound> = self.call(cx.as_dyn(), |py, cx| {
            let bound = self.methods.bind.call1(py, (cx, id.0))?;
            returned(py, "bind", "a Bound or None", &bound)
        });
        let bound = bound.map(|bound| python(|_| bound.checked(cx.ftl()))).transpose();
        self.keep(bound)
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        self.call(cx.as_dyn(), |py, cx| {
            let goes_on = self.methods.ended.call1(py, (cx, values::Ended::from(end)))?;
            returned(py, "ended", "True or False", &goes_on)
        })
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        self.call(cx.as_dyn(), |py, cx| self.methods.step.call1(py, (cx, values::Step::from(step))).map(|_| ()));
    }

    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool) {
        self.call(cx.as_dyn(), |py, cx| self.methods.make_room.call1(py, (cx, plane.0, freed)).map(|_| ()));
    }

    fn can_go_on(&self, ftl: &CoreFtl, plane: PlaneId, hand: InHand) -> bool {
        self.keep(self.look(ftl, |py, ftl| {
            let hand = values::InHand::from(hand);
            let goes_on = self.policy.call_method1(py, "can_go_on", (ftl, plane.0, hand))?;
            returned(py, "can_go_on", "True or False", &goes_on)
        }))
    }

    fn recover(&mut self, found: &mut dyn Recovery) -> Result<(), String> {
        let recovered = self
            .loans
            .lend_recovery(found, || python(|py| self.policy.call_method1(py, "recover", (&self.found,)).map(|_| ())));
        recovered.map_err(|cause| cause.to_string())
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    fn load(&mut self, _: &mut CoreFtl, _: &mut Reader, _: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }

    fn recount(&self, ftl: &CoreFtl) -> Result<(), String> {
        let counted = self.look(ftl, |py, ftl| self.policy.call_method1(py, "recount", (ftl,)).map(|_| ()));
        counted.map_err(|cause| cause.to_string())
    }

    fn blocks(&self, ftl: &CoreFtl, found: &mut dyn FnMut(KeptBlock)) {
        let blocks = self.look(ftl, |py, view| {
            let listed = self.policy.call_method1(py, "blocks", (view,))?;
            let blocks = PyIterator::from_object(listed.bind(py))?;
            blocks
                .map(|block| {
                    let block: values::KeptBlock = returned(py, "blocks", "KeptBlocks", block?.as_unbound())?;
                    ftl::block_at(ftl, block.block)?;
                    Ok(block)
                })
                .collect::<PyResult<Vec<_>>>()
        });
        self.keep(blocks).iter().for_each(|block| found(block.into()));
    }

    fn report(&self, ftl: &CoreFtl) -> SchemeReport {
        let report = self.look(ftl, |py, ftl| {
            let report = self.policy.call_method1(py, "report", (ftl,))?;
            returned::<values::SchemeReport>(py, "report", "a SchemeReport", &report).map(Some)
        });
        self.keep(report).map(SchemeReport::from).unwrap_or_default()
    }
}

/// Mapping scheme in Python, as the provider returns it.
pub struct Provided(Scheme);

impl Provided {
    /// Creates the scheme of a policy.
    pub fn new(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Provided> {
        Scheme::new(py, policy).map(Provided)
    }

    /// Returns another scheme with the same state, from the method `fork` of the policy.
    fn forked(&self) -> Provided {
        Python::attach(|py| {
            let policy = self.0.policy.call_method0(py, "fork");
            let forked = policy.and_then(|policy| Provided::new(py, policy));
            forked.unwrap_or_else(|error| {
                // It is not called, because it has an error.
                let scheme = Scheme::new(py, self.0.policy.clone_ref(py));
                let scheme = scheme.unwrap_or_else(|_| unreachable!("the policy had all methods before"));
                scheme.error.get_or_init(|| Arc::new(error));
                Provided(scheme)
            })
        })
    }
}

impl Outside<dyn ExternalMapping> for Provided {
    fn policy(&self) -> &(dyn ExternalMapping + 'static) {
        &self.0
    }

    fn policy_mut(&mut self) -> &mut (dyn ExternalMapping + 'static) {
        &mut self.0
    }

    fn error(&self) -> Option<&Cause> {
        self.0.error.get()
    }

    fn copy(&self) -> Box<dyn Outside<dyn ExternalMapping>> {
        Box::new(self.forked())
    }
}
