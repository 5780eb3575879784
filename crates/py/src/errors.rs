//! Exceptions: converts failures to exceptions of the package, with the texts that the command prints.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_core::device_file::ConfigError;
use floatgate_core::policies::Fault;
use floatgate_run::failure::Failure;
use floatgate_run::frontend::{Stopped, Subject};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

use crate::frontend::Frontend;

/// Creates an exception of the package, by its name in `floatgate.exceptions`. The package names the options of the
/// command in `text` by its own parameters.
pub fn exception(py: Python<'_>, name: &str, text: &str) -> PyErr {
    let made = py.import("floatgate.exceptions").and_then(|module| module.call_method1("_raised", (name, text)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Converts an error in a device configuration.
pub fn config_error(py: Python<'_>, error: &ConfigError) -> PyErr {
    let raised = exception(py, "ConfigError", &error.to_string());
    let problems: Vec<(&str, &str)> =
        error.problems().iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect();
    match raised.value(py).call_method1("_set_problems", (problems,)) {
        Ok(_) => raised,
        Err(error) => error,
    }
}

/// Returns the name of the exception for a failure.
fn name_of(subject: Subject) -> &'static str {
    match subject {
        Subject::Options => "OptionError",
        Subject::Device => "ConfigError",
        Subject::Workload => "WorkloadError",
        Subject::Trace => "TraceError",
        Subject::Precondition => "PreconditionError",
        Subject::Run => "SimulationError",
        Subject::Output => "OutputError",
        Subject::Result => "ResultError",
    }
}

/// Converts the failure of a run.
fn raised(py: Python<'_>, stopped: &Stopped) -> PyErr {
    match &stopped.failure {
        Failure::Mistake(error) | Failure::Fault(error) => match error.downcast_ref::<Fault>() {
            Some(fault) => policy_error(py, fault),
            None => exception(py, name_of(stopped.subject), &format!("{error:#}")),
        },
        Failure::Interrupted(what) => PyKeyboardInterrupt::new_err(*what),
    }
}

/// Converts the fault of a policy. An exception that the policy raised becomes the cause, with its own traceback.
/// Ctrl-C and similar exceptions are raised unchanged.
pub fn policy_error(py: Python<'_>, fault: &Fault) -> PyErr {
    let Some(cause) = fault.cause().downcast_ref::<PyErr>() else {
        return exception(py, "PolicyError", &fault.to_string());
    };
    if !cause.is_instance_of::<PyException>(py) {
        return cause.clone_ref(py);
    }
    let raised = exception(py, "PolicyError", &fault.to_string());
    raised.set_cause(py, Some(cause.clone_ref(py)));
    raised
}

/// Runs long work without Python's lock, until Ctrl-C. A panic, which is a defect of the simulator, becomes an
/// exception. `progress` is called periodically with the name of the part and its completed share.
pub fn enter<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Frontend) -> Result<T, Stopped> + Send,
) -> PyResult<T> {
    enter_as(py, false, progress, work)
}

/// Runs long work like [`enter`]. With `calls_python`, the work keeps Python's lock, because it calls policies in
/// Python so often that taking the lock for each call would cost more than the calls. Other threads run when Python's
/// interpreter switches, in the code of a policy, and at each poll of the frontend.
pub fn enter_as<T: Send>(
    py: Python<'_>,
    calls_python: bool,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Frontend) -> Result<T, Stopped> + Send,
) -> PyResult<T> {
    let run = || {
        let frontend = Frontend::new(progress);
        let done = catch_unwind(AssertUnwindSafe(|| work(&frontend)));
        (done.map_err(|panic| text_of(panic.as_ref())), frontend.into_error())
    };
    let (done, received) = if calls_python { run() } else { py.detach(run) };
    match (received, done) {
        (Some(error), _) => Err(error),
        (None, Ok(done)) => done.map_err(|stopped| raised(py, &stopped)),
        (None, Err(panic)) => Err(exception(
            py,
            "InternalError",
            &format!("{panic}\nThis is a defect of the simulator: please report it."),
        )),
    }
}

/// Returns the message of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic").to_owned()
}

/// Test hook: panics, so that tests can check the exception.
#[pyfunction]
#[pyo3(name = "_provoke_panic")]
pub fn provoke_panic(py: Python<'_>, text: &str) -> PyResult<()> {
    enter(py, None, |_| panic!("{text}"))
}
